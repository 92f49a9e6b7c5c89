"""Starts a job of the history again, with the same request."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from devtools_app.jobs.measuring import session_keys
from devtools_app.state.requests import (
    DoWithJob,
    Execute,
    JobAction,
    Notice,
    OpenPaths,
    StartSweep,
    TrustCode,
)
from devtools_app.state.run_form import default_folder
from devtools_app.state.state import OpenSession
from devtools_app.state.trusted_code import is_agreed

if TYPE_CHECKING:
    from devtools_app.actions.host import CommandHost, Services
    from inspector.experiments.sweeps.request import SweepRequest
    from inspector.jobs.bisect import BisectJob
    from inspector.jobs.evaluate import EvalJob
    from inspector.jobs.executing import BundleJob, MeasureJob, RunJob
    from inspector.jobs.gap import GapJob
    from inspector.jobs.generating import GenerateJob
    from inspector.jobs.history import JobEntry

# the view that shows the jobs of a kind
_VIEWS: Mapping[str, str] = {
    "compile": "compile",
    "run": "run",
    "verify": "run",
    "bundle": "run",
    "gap": "gap",
    "generate": "generate",
    "bisect": "bisect",
    "evaluate": "evaluate",
    "measure": "compare",
    "backend_plan": "backends",
    "calibrate": "roofline",
    "step": "step",
    "sweep": "sweep",
}


def view_of(kind: str) -> str:
    """Return the view that shows jobs of a kind, empty for none."""
    return _VIEWS.get(kind, "")


def _by_command(_entry: JobEntry, _job: object) -> str:
    return "Jobs of this kind start from their own view or from a terminal: Copy as command."


class JobRestart:
    """Starts jobs again; those of sessions need their sessions to be open."""

    def __init__(self, services: Services, window: CommandHost) -> None:
        """Connect to the jobs of a window.

        Args:
            services: with the jobs and the open sessions
            window: shows messages and views
        """
        self._services = services
        self._window = window
        self._jobs = services.jobs
        self._starts: Mapping[str, Callable[[JobEntry, Any], str | None]] = {
            "compile": self._compile,
            "run": self._run,
            "verify": self._verify,
            "bundle": self._bundle,
            "gap": self._gap,
            "generate": self._generate,
            "bisect": self._bisect,
            "evaluate": self._evaluate,
            "measure": self._measure,
            "calibrate": self._calibrate,
            "step": lambda _entry, _job: "",
            "sweep": self._sweep,
        }

    def start(self, entry: JobEntry, job: object) -> None:
        """Start a job again; confirm before running code that is not trusted yet."""
        code = tuple(path for path in code_of(job) if not is_agreed(path))
        if code:
            again = DoWithJob(entry.id, JobAction.AGAIN)
            text = f"This runs the code in {' and '.join(code)}, with your rights."
            offers = (("Run it", TrustCode(code, again)),)
            question = Notice(text, "warning", offers=offers, decline="Do not run", leaves=True)
            self._window.notice(question)
            return
        start = self._starts.get(entry.kind, _by_command)
        problem = start(entry, job)
        if problem:
            self._window.notice(Notice(problem, "warning"))
        elif problem is not None:
            self._window.dismiss_notice()
            self._window.show_view(view_of(entry.kind))

    def _compile(self, entry: JobEntry, job: object) -> str:
        return self._jobs["compile"].start(job, entry.target, force=True, stages=True)

    def _run(self, _entry: JobEntry, job: RunJob) -> str:
        sessions = self._sessions_with((job.program,))
        target = default_folder(job.program, job.device)  # the former run stays
        self._services.ask(Execute(job, sessions[0].id if sessions else "", target))
        return ""

    def _verify(self, _entry: JobEntry, job: RunJob) -> str:
        sessions = self._sessions_with((job.program,))
        self._services.ask(Execute(job, sessions[0].id if sessions else ""))
        return ""

    def _bundle(self, entry: JobEntry, job: BundleJob) -> str:
        return self._jobs["run"].start(job, entry.target, about="", force=True)

    def _gap(self, _entry: JobEntry, job: GapJob) -> str | None:
        sessions = self._needed([job.files])
        if sessions is None:
            return None
        self._services.controller.show(sessions[0].id)
        return self._jobs["gap"].start(job, about=sessions[0], replace_running=True)

    def _generate(self, _entry: JobEntry, job: GenerateJob) -> str:
        sessions = self._sessions_with((job.program,))
        return self._jobs["generate"].start(job, about=sessions[0].id if sessions else "")

    def _bisect(self, entry: JobEntry, job: BisectJob) -> str:
        done = entry.state == "finished"  # another one goes on where it was
        program = str(job.compile.source)
        return self._jobs["bisect"].start(job, entry.target, about=program, force=done)

    def _evaluate(self, entry: JobEntry, job: EvalJob) -> str | None:
        sessions = self._needed([_files(one) for one in job.variants])
        if sessions is None:
            return None
        force = entry.state == "finished"
        return self._jobs["evaluate"].start(job, entry.target, about=sessions, force=force)

    def _measure(self, _entry: JobEntry, job: MeasureJob) -> str | None:
        sessions = self._needed([_files(one) for one in job.programs])
        if sessions is None:
            return None
        self._services.store.update(compared=tuple(one.id for one in sessions))
        about = session_keys(sessions)
        return self._jobs["measure"].start(job, about=about, replace_running=True)

    def _calibrate(self, _entry: JobEntry, job: object) -> str:
        return self._jobs["calibrate"].start(job)

    def _sweep(self, entry: JobEntry, job: SweepRequest) -> None:
        self._services.ask(StartSweep(job, entry.target))

    def _sessions_with(self, paths: Iterable[str]) -> tuple[OpenSession, ...]:
        """Return the open sessions that have all of some files."""
        wanted = {os.path.abspath(path) for path in paths}
        found = self._services.store.state.sessions
        return tuple(
            one
            for one in found
            if wanted <= {os.path.abspath(file.path) for file in one.session.files}
        )

    def _needed(self, sides: Sequence[Sequence[str]]) -> tuple[OpenSession, ...] | None:
        """Return an open session for each of some programs; None after a message if one is closed.

        Args:
            sides: files of each, of which the first must be in its session
        """
        found: list[OpenSession] = []
        for files in sides:
            one = next(iter(self._sessions_with(files[:1])), None)
            if one is None:
                text = f"{files[0]} is not open: open it, then start the job again."
                offer = ("Open", OpenPaths(tuple(files)))
                self._window.notice(Notice(text, "warning", offers=(offer,)))
                return None
            found.append(one)
        return tuple(found)


def _files(job: RunJob) -> tuple[str, ...]:
    return tuple(path for path in (job.program, job.record, *job.data_files) if path)


def code_of(job: object) -> tuple[str, ...]:
    """Return the files whose code a job runs."""
    from inspector.jobs.evaluate import EvalJob
    from inspector.recipes.compile_job import CompileJob, code_files
    from inspector.recipes.emission import file_of, in_file
    from inspector.recipes.source import SourceKind

    compiled = getattr(job, "compile", job)
    if isinstance(compiled, CompileJob):
        return code_files(compiled)
    own = tuple(getattr(job, "libraries", ()))
    if isinstance(job, EvalJob):
        source = job.reference.source
        if source is not None and source.kind is SourceKind.PYTHON:
            own = (source.path,)
        own += tuple(file_of(text) for text in (job.data, job.metric) if in_file(text))
    return tuple(dict.fromkeys(own))
