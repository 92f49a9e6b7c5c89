"""Screenshots of views that show a job: stages, gap, steps, a bisection, a sweep."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QEventLoop
from PySide6.QtWidgets import QApplication, QWidget

from devtools_app.screenshots import window as shots
from devtools_app.shell.window import MainWindow

SIZE = (1440, 900)
PATIENCE = 600.0  # seconds
_PANEL_HEIGHT = 330
_STEPS = 5
_BOUND = "1e-9"  # no two kernels agree to that, so that there is something to find
_GRIDS = ("rules.min_nodes=1,3,8", "memory_planner=greedy,naive")
_View = TypeVar("_View", bound=QWidget)


def write_gap(window: MainWindow, folder: Path) -> None:
    """Write a screenshot of the numeric gap of the session shown, at its largest difference."""
    fill_gap(window)
    _write(window, "gap", folder / "gap_light.png")


def fill_gap(window: MainWindow) -> None:
    """Compare the values of the session shown, and choose the largest difference."""
    from devtools_app.views.gap import GapPane

    pane = _view(window, "gap", GapPane)
    pane.compare()
    until(lambda: not pane.gap_runner.running)
    shots.settle(window)
    pane.table.sort_by(4, descending=True)
    pane.table.show_current(None)
    pane.table.step(1)


def compare_and_measure(window: MainWindow) -> None:
    """Fill the numeric gap of the session shown, and measure it beside the other one."""
    from devtools_app.views.compare import ComparePane

    fill_gap(window)
    pane = _view(window, "compare", ComparePane)
    shots.settle(window)
    pane.measure()
    until(lambda: not pane.measurer.follower.running)


def write_panels(window: MainWindow, folder: Path) -> None:
    """Write screenshots of the stages, of steps and of a bisection of the session shown."""
    window.store.update(overlay="time")
    _write(window, "stages", folder / "stages_light.png")
    _write_steps(window, folder / "step_light.png")
    _write_bisection(window, folder / "bisect_light.png")


def write_sweep(window: MainWindow, recipe: Path, place: Path, path: Path) -> None:
    """Write a screenshot of a sweep over a recipe, at a Pareto-optimal point.

    Args:
        window: to capture
        recipe: that is varied
        place: new folder for its files
        path: of the image

    Raises: NotReadyError if the sweep did not finish
    """
    from devtools_app.views.sweep import SweepPane

    grids = [word for grid in _GRIDS for word in ("--grid", grid)]
    command = [sys.executable, "-m", "devtools_app", "sweep", str(recipe), *grids]
    done = subprocess.run(
        [*command, "--runs", "20", "-o", str(place)], capture_output=True, timeout=PATIENCE
    )
    if done.returncode:
        raise shots.NotReadyError(done.stderr.decode("utf-8", "replace"))
    window.controller.open((str(place / "results.json"),))
    pane = _view(window, "sweep", SweepPane)
    until(lambda: pane.table.rows.length > 0)
    pane.table.step(1)
    _write(window, "sweep", path)


def until(done: Callable[[], bool]) -> None:
    """Run the event loop until a condition holds.

    Raises: NotReadyError after a timeout
    """
    end = time.monotonic() + PATIENCE
    while not done():
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)
        if time.monotonic() > end:
            raise shots.NotReadyError("a job did not finish")
        time.sleep(0.005)


def _write_steps(window: MainWindow, path: Path) -> None:
    from devtools_app.views.step import StepView

    view = _view(window, "step", StepView)
    until(lambda: view.call.count() > 0)
    view.begin()
    for _ in range(_STEPS):
        until(lambda: _at_rest(window))
        view.step_on()
    until(lambda: _at_rest(window))
    view.values.step(1)
    until(lambda: _at_rest(window))
    _write(window, "step", path)
    window.jobs["step"].cancel()
    until(lambda: not window.jobs["step"].running)


def _at_rest(window: MainWindow) -> bool:
    """Return whether the call waits for its next step, or cannot be stepped through."""
    walk = window.jobs["step"].current
    if walk is None or walk.outcome is not None:
        raise shots.NotReadyError("the call cannot be stepped through")
    return walk.state.ready


def _write_bisection(window: MainWindow, path: Path) -> None:
    from devtools_app.views.bisect import BisectView

    view = _view(window, "bisect", BisectView)
    view.value.setText(_BOUND)
    view.start()
    until(lambda: not window.jobs["bisect"].running)
    _write(window, "bisect", path)


def _view(window: MainWindow, name: str, kind: type[_View]) -> _View:
    window.show_view(name)
    until(lambda: any(isinstance(host.view, kind) for host in window.hosts))
    return next(host.view for host in window.hosts if isinstance(host.view, kind))


def _write(window: MainWindow, view: str, path: Path) -> None:
    chosen = window.store.state.selection
    shots.write(window, shots.Shot(view, SIZE, selection=chosen), path)
    shots.print_line(str(path))
