"""The runs, verifications and bundlings of the window: started, watched and cancelled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from devtools_app.dialogs.run_form import RunForm
from devtools_app.jobs.follower import Follower, Progress

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.jobs.executing import ExecutingJob
    from inspector.jobs.process import Worker


@dataclass(frozen=True, slots=True)
class Execution(Progress):
    """A job as it stands.

    Attributes:
        job: what is done
        session: id of the session it was started from
        target: folder or file it writes, empty for none
    """

    job: ExecutingJob
    session: str
    target: str


class Running(Follower[Execution]):
    """Does one job at a time; ``finished`` brings its execution.

    Attributes:
        form: what the panel asks for
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.form = RunForm()

    def start(
        self, job: ExecutingJob, session: str, target: str = "", *, worker: Worker | None = None
    ) -> str:
        """Do a job; return one sentence if it cannot be started.

        Args:
            job: what to do
            session: id of the session it is about
            target: folder or file, whose content is replaced
            worker: one that was started ahead and has no job yet
        """
        from inspector.jobs.output_folder import FolderError
        from inspector.jobs.run import JobRun

        if self.running:
            return "Something runs already; cancel it first."
        place = Path(target) if target else None
        try:
            run = JobRun(job, place, force=True, worker=worker)
        except FolderError as error:
            return f"{error}."
        self._follow(run, Execution(job, session, target))
        return ""
