"""The comparison of numbers that the window runs: started, watched and cancelled, in a worker."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.jobs.gap import GapJob, GapRun
    from inspector.numerics.report import GapReport

KEPT_BYTES = 512 << 20  # of tensors for a closer look
_POLL_MS = 50


@dataclass(frozen=True, slots=True)
class Gap:
    """A comparison as it stands.

    Attributes:
        job: what is compared
        stage: what it is doing
        done: nodes that were compared
        total: how many there are
        report: what was found, None while it runs and when it failed
        error: why it did not finish, empty when nothing is wrong
        folder: where tensors are kept
        running: whether it is at work
    """

    job: GapJob
    stage: str = "start"
    done: int = 0
    total: int = 0
    report: GapReport | None = None
    error: str = ""
    folder: Path = Path()
    running: bool = True


class Gapping(QObject):
    """Runs one comparison at a time and tells how it goes.

    Signals:
        changed(): there is another ``current``
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._current: Gap | None = None
        self._run: GapRun | None = None
        self._timer: QTimer | None = None  # made when first wanted: there may be no application yet

    @property
    def current(self) -> Gap | None:
        """Return the comparison that runs or ran last, None before the first."""
        return self._current

    def start(self, job: GapJob) -> None:
        """Compare; a comparison before it is given up, with its tensors."""
        from inspector.jobs.gap import GapRun

        self._close()
        try:
            self._run = GapRun(replace(job, keep=KEPT_BYTES))
        except OSError as error:
            self._current = Gap(job, error=f"The comparison cannot be started: {error}.")
            self._current = replace(self._current, running=False)
            self.changed.emit()
            return
        self._current = Gap(job, folder=self._run.folder)
        if self._timer is None:
            self._timer = QTimer(self)
            self._timer.timeout.connect(self._poll)
        self._timer.start(_POLL_MS)
        self.changed.emit()

    def cancel(self) -> None:
        """Ask the comparison to end."""
        if self._run is not None:
            self._run.cancel()

    def shut_down(self) -> None:
        """End everything and remove the tensors."""
        self._close()

    def _close(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        run, self._run = self._run, None
        if run is not None:
            run.close()

    def _poll(self) -> None:
        from inspector.jobs.messages import Counted, Ended, Stage

        run, current = self._run, self._current
        if run is None or current is None:
            return
        outcome = run.outcome  # before the messages, of which there are no more afterwards
        before = current
        for message in run.take():
            if isinstance(message, Stage) and message.seconds is None:
                current = replace(current, stage=message.stage)
            elif isinstance(message, Counted):
                current = replace(current, done=message.done, total=message.total)
        if outcome is not None:
            if self._timer is not None:
                self._timer.stop()
            wrong = "" if outcome.ended is Ended.FINISHED else outcome.sentence
            current = replace(current, running=False, report=run.report, error=wrong)
        if current != before:
            self._current = current
            self.changed.emit()
