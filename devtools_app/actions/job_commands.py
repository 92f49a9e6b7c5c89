"""Actions of the Jobs panel on a job: again, open, copy as command, clean, bug report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devtools_app.actions.job_restart import JobRestart, view_of
from devtools_app.state.requests import DoWithJob, JobAction, Notice, OpenPaths
from schema.objects.plural import plural

if TYPE_CHECKING:
    from devtools_app.actions.host import CommandHost, Services
    from inspector.jobs.history import JobEntry

_REPORTS = "Zip archive (*.zip);;Text (*.txt)"
_OTHER = "Another version of ETScope recorded this job: it cannot be done from here."


class JobCommands:
    """Handles requests about jobs of the history."""

    def __init__(self, services: Services, window: CommandHost) -> None:
        """Connect to the jobs of a window.

        Args:
            services: with the jobs and the open sessions
            window: shows messages and views
        """
        self._services = services
        self._window = window
        self.restart = JobRestart(services, window)
        self._does: Mapping[JobAction, Callable[[JobEntry], object]] = {
            JobAction.AGAIN: self._again,
            JobAction.OPEN: self._open,
            JobAction.FOLDER: self._show_folder,
            JobAction.COPY: self._copy,
            JobAction.CLEAN: self._ask_to_clean,
            JobAction.REMOVE: self._remove,
            JobAction.REPORT: self._report,
        }

    def do(self, job: str, what: JobAction) -> None:
        """Do something with a job; one that is unknown is ignored."""
        entry = self._services.jobs.history.find(job)
        if entry is not None:
            self._does[what](entry)

    def _warn(self, text: str) -> None:
        self._window.notice(Notice(text, "warning"))

    def _request(self, entry: JobEntry) -> Any:  # noqa: ANN401 - each kind has its own
        """Return the requested job, None after a message if another version wrote it."""
        from inspector.experiments.sweeps.request import requested_job
        from schema.objects.codec import ContentError

        try:
            return requested_job(entry)
        except (ContentError, KeyError):
            self._warn(_OTHER)
            return None

    def _again(self, entry: JobEntry) -> None:
        job = self._request(entry)
        if job is not None:
            self.restart.start(entry, job)

    def _copy(self, entry: JobEntry) -> None:
        from PySide6.QtGui import QGuiApplication

        from inspector.experiments.sweeps.request import job_command

        job = self._request(entry)
        command = "" if job is None else job_command(job, entry.target)
        if command:
            QGuiApplication.clipboard().setText(command)
            self._window.show_status("Copied the command that does the same")
        elif job is not None:
            self._warn(f"No command does the same: this {entry.kind} is of the window alone.")

    def _open(self, entry: JobEntry) -> None:
        from inspector.jobs.messages import Ended
        from inspector.jobs.results import result_paths

        paths = result_paths(entry)
        if paths:
            self._services.ask(OpenPaths(paths))
        elif (view := view_of(entry.kind)) and not _has_files(entry):
            self._window.show_view(view)
        elif entry.state == Ended.FINISHED.value:
            self._warn(f"The files of this job are gone: {entry.target}.")
        else:
            self._warn(f"This {entry.kind} has no result: {entry.state}.")

    def _show_folder(self, entry: JobEntry) -> None:
        from PySide6.QtCore import QUrl
        from PySide6.QtGui import QDesktopServices

        place = Path(entry.target)
        folder = place if place.is_dir() else place.parent
        if not entry.target or not folder.is_dir():
            self._warn(f"{folder if entry.target else 'Its folder'} is gone.")
            return
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))

    # ---- the output folder
    def _ask_to_clean(self, entry: JobEntry) -> None:
        """Ask before the files that a job wrote are deleted."""
        from inspector.files.written_folders import written_by_job
        from inspector.jobs.history import reading
        from inspector.units import format_bytes

        try:
            found = written_by_job(Path(entry.target)) if entry.target else None
        except OSError as error:
            self._warn(f"{entry.target}: {error.strerror or error}.")
            return
        if found is None:
            self._warn("No files of jobs are in its folder." if entry.target else _NO_FOLDER)
            return
        files = {str(found.path / name) for name in found.files}
        if used := files & self._in_use():
            self._warn(
                f"{os.path.basename(min(used))} of this job is open: close its session first."
            )
            return
        what = f"{plural(len(files), 'file')}, {format_bytes(found.size)}"
        others = len(reading(self._services.jobs.history.entries, files))
        needed = f" {plural(others, 'other job')} began with them." if others else ""
        text = f"Delete what this job wrote into {entry.target}: {what}?{needed}"
        offer = (f"Delete {what}", DoWithJob(entry.id, JobAction.REMOVE))
        question = Notice(text, "warning", offers=(offer,), decline="Keep", leaves=True)
        self._window.notice(question)

    def _remove(self, entry: JobEntry) -> None:
        from inspector.files.written_folders import removed, written_by_job
        from inspector.units import format_bytes

        self._window.dismiss_notice()
        try:
            found = written_by_job(Path(entry.target))
            freed = removed(found) if found is not None else 0
        except OSError as error:
            self._warn(f"Not all was deleted: {error.filename}: {error.strerror or error}.")
        else:
            self._window.show_status(f"Deleted {format_bytes(freed)} of {entry.target}")
        self._services.jobs.history.cleaned.emit()

    def _in_use(self) -> set[str]:
        state = self._services.store.state
        paths: Iterable[str] = (file.path for one in state.sessions for file in one.session.files)
        return {os.path.abspath(path) for path in (*paths, state.sweep) if path}

    # ---- a bug report
    def _report(self, entry: JobEntry) -> None:
        from inspector.jobs.bug_report import write_report

        services = self._services
        name = f"etscope-{entry.kind}-{entry.id.rpartition('-')[0]}.zip"
        path = services.paths.save_file(services.parent, "Save the bug report", name, _REPORTS)
        if not path:
            return
        try:
            write_report(Path(path), entry)
        except OSError as error:
            self._warn(f"{path}: {error.strerror or error}.")
        else:
            self._window.show_status(f"Wrote {path}: versions, request and log, no weights")


_NO_FOLDER = "This job wrote no folder."


def _has_files(entry: JobEntry) -> bool:
    return entry.kind in ("compile", "run", "bundle", "sweep")
