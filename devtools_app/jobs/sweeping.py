"""A sweep in the window: the engine of the command line, in a thread."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from devtools_app.jobs.gui_thread import gui_thread
from devtools_app.jobs.history import JobHistory
from inspector.units import format_elapsed

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.experiments.sweeps.engine import Sweep
    from inspector.experiments.sweeps.request import SweepRequest
    from inspector.experiments.sweeps.results import PointResult
    from inspector.jobs.messages import Outcome

_EVERY = 0.25  # seconds between two reports of current activity
_Lines = list[tuple[int, str, str]]


@dataclass(frozen=True, slots=True)
class SweepState:
    """How far a sweep is.

    Attributes:
        target: folder of its files
        total: number of points, 0 until they are known
        left: points that have not ended
        at_work: current activity
        seconds: since it was started
        cancelling: whether cancelling was requested
        outcome: None while it runs
    """

    target: str
    total: int = 0
    left: int = 0
    at_work: tuple[str, ...] = ()
    seconds: float = 0.0
    cancelling: bool = False
    outcome: Outcome | None = None

    @property
    def done(self) -> int:
        """Return how many points have ended."""
        return self.total - self.left


class _Stopped(Exception):  # noqa: N818 - not an error
    """The sweep was cancelled; finished points are kept."""


class Sweeping(QObject):
    """Runs one sweep at a time.

    Signals:
        changed(): ``current`` has changed
        began(folder): the results file of a sweep is there
    """

    changed = Signal()
    began = Signal(str)

    def __init__(self, history: JobHistory, parent: QObject | None = None) -> None:
        """Start without a sweep.

        Args:
            history: that sweeps are recorded in
            parent: owner
        """
        super().__init__(parent)
        self._history = history
        self.current: SweepState | None = None
        self._key = ""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._gui = gui_thread()

    @property
    def running(self) -> bool:
        """Return whether a sweep runs."""
        return self.current is not None and self.current.outcome is None

    def start(self, request: SweepRequest, target: str) -> str:
        """Start a sweep or go on with the one in its folder; return why not, in one sentence."""
        from inspector.experiments.sweeps.results import RESULTS
        from inspector.jobs.output_folder import FolderError, check_folder

        if self.running:
            return "A sweep runs already: cancel it first."
        folder = Path(os.path.abspath(target))
        try:
            check_folder(folder, force=(folder / RESULTS).is_file())
        except FolderError as error:
            return f"{error}."
        subject = str(Path(*Path(request.recipe).parts[-2:]))
        self._key = self._history.begin("sweep", subject, request, str(folder), self.cancel)
        self.current = SweepState(str(folder))
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._work, args=(request, folder, self._stop), name="sweep"
        )
        self._thread.start()
        self.changed.emit()
        return ""

    def cancel(self) -> None:
        """Stop the sweep; finished points are kept."""
        if self.running and self.current is not None:
            self._stop.set()
            self.current = replace(self.current, cancelling=True)
            self.changed.emit()

    def shut_down(self) -> None:
        """Stop the sweep and wait for its workers to end; called before the window closes."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self.running:
            from inspector.jobs.messages import Ended, Outcome

            self._end(Outcome(Ended.CANCELLED, "stopped with the window; points are kept"))

    # ---- in the thread
    def _work(self, request: SweepRequest, folder: Path, stop: threading.Event) -> None:
        from inspector.experiments.sweeps.grid import GridError
        from inspector.jobs.messages import Ended, Outcome
        from inspector.recipes.recipe import RecipeError
        from schema.errors import FormatError

        try:
            outcome = self._swept(request, folder, stop)
        except _Stopped:
            outcome = Outcome(Ended.CANCELLED, "cancelled; finished points are kept")
        except (GridError, RecipeError, FormatError, OSError) as error:
            outcome = Outcome(Ended.FAILED, str(error))
        except Exception as error:  # noqa: BLE001 - the window goes on
            outcome = Outcome(Ended.FAILED, f"{type(error).__name__}: {error}")
        self._gui.post(self, self._end, outcome)

    def _swept(self, request: SweepRequest, folder: Path, stop: threading.Event) -> Outcome:
        from inspector.experiments.sweeps.engine import LocalRunner, Sweep, run_to_end
        from inspector.experiments.sweeps.plan import plan_of_request
        from inspector.experiments.sweeps.results import Status
        from inspector.jobs.messages import Ended, Outcome

        began, last = time.monotonic(), 0.0
        plan = plan_of_request(request)
        total = len(plan.points)
        workers = min(request.workers or os.cpu_count() or 1, total)
        runner = LocalRunner(folder, plan.settings, workers)

        def report(sweep: Sweep, ended: Sequence[PointResult]) -> None:
            nonlocal last
            now = time.monotonic()
            if stop.is_set():
                raise _Stopped
            if ended or now - last > _EVERY:
                last = now
                state = SweepState(
                    str(folder), total, sweep.left, tuple(sweep.at_work()), now - began
                )
                self._gui.post(self, self._take, state, _lines(ended))

        try:
            sweep = Sweep(plan, folder, runner)
            results = run_to_end(sweep, report)
        finally:
            runner.close()
        failed = results.count(Status.FAILED)
        words = f"{failed:,} of {total:,} points failed" if failed else ""
        return Outcome(Ended.FAILED if failed == total else Ended.FINISHED, words)

    # ---- on the thread of the window
    def _take(self, state: SweepState, lines: _Lines) -> None:
        former = self.current
        if former is None or former.outcome is not None:
            return
        self.current = replace(state, cancelling=former.cancelling)
        if lines:
            self._history.note(self._key, lines)
        if not former.total:
            self.began.emit(state.target)
        self.changed.emit()

    def _end(self, outcome: Outcome) -> None:
        if self.current is None or self.current.outcome is not None:
            return
        self.current = replace(self.current, outcome=outcome, at_work=())
        self._history.end(self._key, outcome)
        self.changed.emit()


def _lines(ended: Sequence[PointResult]) -> _Lines:
    """Return a line of the log for each point that has ended."""
    from inspector.experiments.sweeps.grid import value_text
    from inspector.experiments.sweeps.results import Status

    found: _Lines = []
    for one in ended:
        what = ", ".join(f"{name}={value_text(value)}" for name, value in one.changes.items())
        failed = one.status is Status.FAILED
        level = logging.WARNING if failed else logging.INFO
        seconds = sum(one.seconds.values())
        words = one.sentence if failed else f"done in {format_elapsed(seconds, 1)}"
        found.append((level, f"{what}: {words}", "point"))
    return found
