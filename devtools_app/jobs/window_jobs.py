"""The jobs of the window: followers, running jobs, and shutdown."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from devtools_app.jobs.follower import JobFollower
from devtools_app.jobs.history import JobHistory
from devtools_app.jobs.measuring import Measurements, OutputErrorRuns
from devtools_app.jobs.previewing import Previews
from devtools_app.jobs.recompiling import Recompiling
from devtools_app.jobs.sweeping import Sweeping
from devtools_app.state.run_form import RunForm


class WindowJobs(QObject):
    """Holds a follower for each kind of job of the table; jobs that share one exclude each other.

    Signals:
        changed(): a job began, progressed or ended

    Attributes:
        run_form: settings of the Run panel
        measurements: of sessions
        output_errors: of sessions, computed in the background
        previews: effects of recipe edits on partitions
        recompiling: builds variants by Ctrl+R
        history: the jobs of this window and of earlier ones
        sweeping: the sweep that runs or ran last
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.run_form = RunForm()
        self.history = JobHistory(self)
        self.sweeping = Sweeping(self.history, self)
        self.sweeping.changed.connect(self.changed)
        self._followers: dict[str, JobFollower] = {}
        self.measurements = Measurements(self["measure"], self)
        self.output_errors = OutputErrorRuns(self._follower("errors of outputs", asked=False), self)
        self.previews = Previews(self)
        self.recompiling = Recompiling(lambda: self.previews.server, self)
        self.recompiling.changed.connect(self.changed)
        self.history.watch(self.recompiling.follower)

    def __getitem__(self, name: str) -> JobFollower:
        """Return the follower of a kind of job, by the name its line of the table shares."""
        return self._followers.get(name) or self._follower(name)

    def _follower(self, name: str, *, asked: bool = True) -> JobFollower:
        found = self._followers[name] = JobFollower(self)
        found.changed.connect(self.changed)
        self.history.watch(found, asked=asked)
        return found

    def labels(self) -> tuple[str, ...]:
        """Return the labels of running jobs, each once."""
        found: list[str] = []
        for follower in (*self._followers.values(), self.recompiling.follower):
            if follower.running and follower.current is not None:
                from inspector.jobs.table import kind_of

                label = kind_of(follower.current.job).label
                is_recompile = follower is self.recompiling.follower and label == "compiling"
                found.append("recompiling" if is_recompile else label)
        found += ["sweeping"] if self.sweeping.running else []
        return tuple(dict.fromkeys(found))

    def shut_down(self) -> None:
        """End all jobs; called before the window closes."""
        self.sweeping.shut_down()
        self.recompiling.shut_down()
        self.previews.shut_down()
        for follower in self._followers.values():
            follower.shut_down()
        self.history.close()
