"""File > Run…: starts the requested job, and opens its result next to the program."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from devtools_app.jobs.follower import JobProgress
from devtools_app.state.requests import Notice, OpenVariant, ShowView
from devtools_app.state.run_form import LEVELS, RunForm, runnable

if TYPE_CHECKING:  # the dialog brings parts of the inspector along, which start later
    from devtools_app.actions.host import CommandHost, Services
    from devtools_app.dialogs.bundle_dialog import BundleDialog
    from devtools_app.state.requests import AskBundle, Execute

PANEL = "run"
_NUMBER = re.compile(r"_\d+$")


class RunCommand:
    """Runs programs and opens their traces.

    Attributes:
        dialog: for bundled programs, None before
    """

    def __init__(self, services: Services, window: CommandHost) -> None:
        """Connect to the runs of a window.

        Args:
            services: with the runs, the preferences and the open sessions
            window: shows the panel
        """
        self._services = services
        self._window = window
        self._jobs = services.jobs
        self.dialog: BundleDialog | None = None
        self._bundled_from = ""
        self._left = ("", "")  # session and view in front when a run began
        self._jobs["run"].began.connect(lambda _job: self._leave())
        self._jobs.run_form = services.controller.settings.last_run
        self._jobs["run"].finished.connect(self._open)
        self._jobs["run"].ended.connect(self._tell_failure)

    def execute(self, request: Execute) -> None:
        """Start a job; the view that asked for it stays in front."""
        sentence = self._jobs["run"].start(request.job, request.target, about=request.session)
        if sentence:
            self._window.notice(Notice(sentence, "warning"))
            return
        self._remember(self._jobs.run_form)

    def _tell_failure(self, ended: JobProgress) -> None:
        """Offer the Run view for the reason where another view is in front."""
        from inspector.jobs.messages import Ended

        outcome = ended.outcome
        if outcome is None or outcome.ended in (Ended.FINISHED, Ended.CANCELLED):
            return
        if self._services.store.state.view != PANEL:
            offer = ("Show", ShowView(PANEL))
            self._window.notice(
                Notice(f"The run failed: {outcome.sentence}", "error", "", (offer,))
            )

    def ask_bundle(self, request: AskBundle) -> None:
        """Ask for the contents of a bundled program."""
        from devtools_app.dialogs.bundle_dialog import BundleDialog

        if self.dialog is not None:
            self.dialog.deleteLater()
        dialog = BundleDialog(
            self._services.theme,
            request.program,
            self._services.paths,
            self._services.parent,
            request.methods,
        )
        self.dialog = dialog
        self._bundled_from = request.session
        dialog.submitted.connect(self._bundle)
        dialog.open()

    def _bundle(self, job: object, target: str) -> None:
        from inspector.jobs.executing import BundleJob

        assert isinstance(job, BundleJob)
        sentence = self._jobs["run"].start(job, target, about=self._bundled_from, force=True)
        if sentence and self.dialog is not None:
            self.dialog.show_problem(sentence)
            return
        if self.dialog is not None:
            self.dialog.accept()
        self._window.show_view(PANEL)
        self._leave()

    def _leave(self) -> None:
        self._left = self._in_front()

    def _in_front(self) -> tuple[str, str]:
        state = self._services.store.state
        return state.current, state.view

    def _show(self, files: tuple[str, ...], what: str) -> None:
        """Open a new session of a result, or offer that to a user who went elsewhere."""
        if self._in_front() == self._left:
            self._services.controller.open_result(files)
        else:
            offer = ("Open", OpenVariant(files))
            self._window.notice(Notice(f"{what}.", offers=(offer,)))

    def _remember(self, form: RunForm) -> None:
        controller = self._services.controller
        # of this run, not of the next
        once = {"method": "", "folder": "", "level": LEVELS[0], "threads": form.fixed_threads}
        kept = replace(form, **once)
        controller.put_settings(replace(controller.settings, last_run=kept))

    def _open(self, execution: JobProgress) -> None:
        from inspector.jobs.executing import BundleJob, RunJob

        if isinstance(execution.job, BundleJob):
            bundle = os.path.abspath(execution.target)
            self._show((bundle,), f"{os.path.basename(bundle)} is written")
        elif isinstance(execution.job, RunJob):
            self._open_trace(execution, execution.job)

    def _open_trace(self, execution: JobProgress, job: object) -> None:
        """Show the trace with the program: in its session, or next to it if that has one."""
        from inspector.jobs.executing import RunJob, trace_files

        assert isinstance(job, RunJob)
        assert execution.outcome is not None
        trace = execution.outcome.result["trace"]
        if trace["failure"]:
            self._window.notice(Notice(f"The trace is incomplete: {trace['failure']}.", "warning"))
        result = trace_files(execution.target, execution.outcome.result)
        controller, sessions = self._services.controller, self._services.store.state.sessions
        one = next((one for one in sessions if one.id == execution.about), None)
        what = runnable(one.id, one.session) if one is not None else None
        if not result:
            return
        ran = f"{one.session.name if one is not None else Path(job.program).name} has run"
        if one is None or what is None or what.program != job.program:
            paths = (job.program, job.record, *job.data_files, *result)
            self._show(tuple(path for path in paths if path), ran)
            return
        folder, folders = Path(execution.target), {Path(one).parent for one in what.traces}
        ours = (place == folder or _is_earlier_run(place, folder) for place in folders)
        if all(ours):
            controller.read_with((*what.others, *result), one.id)
        else:
            self._show((*what.others, *result), ran)


def _is_earlier_run(place: Path, folder: Path) -> bool:
    """Return whether two folders are numbered runs of one program."""
    names = [_NUMBER.sub("", one.name) for one in (place, folder)]
    return place.parent == folder.parent and names[0] == names[1]
