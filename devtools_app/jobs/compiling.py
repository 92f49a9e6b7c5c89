"""The compile that the window runs: started, watched and cancelled; the work is in a worker."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal
from typing_extensions import override

from devtools_app.jobs.follower import KEPT_LINES, Follower, Progress

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from devtools_app.dialogs.compile_form import CompileForm
    from inspector.jobs.compile_server import CompileServer
    from inspector.jobs.messages import Message, Outcome, Ready
    from inspector.jobs.process import Worker
    from inspector.recipes.compile_job import CompileJob

__all__ = ["KEPT_LINES", "Compile", "Compiling"]


@dataclass(frozen=True, slots=True)
class Compile(Progress):
    """A compile as it stands.

    Attributes:
        job: what is compiled
        folder: where the files go
    """

    job: CompileJob
    folder: str


class Compiling(Follower[Compile]):
    """Runs one compile at a time; ``finished`` brings the paths of its files.

    Signals:
        known(ready): a worker says which names there are
    """

    known = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._warm: Worker | None = None
        self._told = False

    def warm(self) -> None:
        """Start a worker ahead: it loads torch while the user fills in the dialog."""
        from inspector.jobs.process import Worker

        if self._warm is None and self._run is None:
            try:
                self._warm = Worker()
            except OSError:
                return  # the compile itself will say so
            self._told = False
            self._watch()

    def cool(self) -> None:
        """End a worker that was started ahead and is not wanted."""
        worker, self._warm = self._warm, None
        if worker is not None:
            worker.close()

    def start(self, form: CompileForm) -> str:
        """Compile what the dialog asks for; return one sentence if it cannot be started.

        Args:
            form: source, options and folder
        """
        return self.start_job(form.job(), form.folder, force=form.replace)

    def start_in(self, server: CompileServer, job: CompileJob, folder: str) -> str:
        """Compile by a warm worker, which redoes what is new; return a sentence if it cannot.

        Args:
            server: keeps the worker
            job: what to compile
            folder: for the files
        """
        try:
            run = server.start_compile(job, Path(folder), stages=True)
        except OSError as error:
            return f"{error}."
        self._follow(run, Compile(job, folder))
        return ""

    def start_job(self, job: CompileJob, folder: str, *, force: bool = False) -> str:
        """Compile; return one sentence if it cannot be started.

        Args:
            job: what to compile
            folder: for the files
            force: replace files that exist in it
        """
        from inspector.jobs.output_folder import FolderError
        from inspector.jobs.run import JobRun

        if self.running:
            return "A compile is running; cancel it first."
        worker, self._warm = self._warm, None
        try:
            run = JobRun(job, Path(folder), force=force, worker=worker, stages=True)
        except FolderError as error:
            self._warm = worker
            return f"{error}."
        self._follow(run, Compile(job, folder))
        return ""

    @override
    def shut_down(self) -> None:
        self._rest()
        self.cool()
        super().shut_down()

    @override
    def _poll(self) -> None:
        if self._warm is not None:
            self._warm.take()
            self._tell_names(self._warm.ready)
        super()._poll()

    @override
    def _wanted(self) -> bool:
        return self.running or (self._warm is not None and not self._told)

    def _tell_names(self, ready: Ready | None) -> None:
        if ready is not None and not self._told:
            self._told = True
            self.known.emit(ready)

    @override
    def _heard(self, current: Compile, messages: list[Message]) -> Compile:
        from inspector.jobs.messages import Ready

        for message in messages:
            if isinstance(message, Ready):
                self._told = False
                self._tell_names(message)
        return super()._heard(current, messages)

    @override
    def _result(self, current: Compile) -> Any:
        assert current.outcome is not None
        return made_files(current.folder, current.outcome)


def made_files(folder: str, outcome: Outcome) -> tuple[str, ...]:
    """Return the files of a compile that are opened together."""
    from inspector.recipes.compile_job import PROGRAM, RECORD

    made = [str(file["path"]) for file in outcome.result["files"]]
    data = sorted(name for name in made if name.endswith(".ptd"))
    return tuple(str(Path(folder).absolute() / name) for name in (PROGRAM, RECORD, *data))
