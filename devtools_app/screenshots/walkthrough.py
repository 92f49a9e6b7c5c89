"""The screenshots of the walk-through: one pass through the loop in the real window."""

from __future__ import annotations

import tempfile
from pathlib import Path

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QPainter, QPixmap
from PySide6.QtWidgets import QMenu

from devtools_app.sample_data import MODULE
from devtools_app.screenshots import window as shots
from devtools_app.screenshots.job_panels import PATIENCE, SIZE, until, write_panels, write_sweep
from devtools_app.shell.window import MainWindow
from devtools_app.state.requests import Select
from devtools_app.views.editing import EditMenu, edits_menu
from inspector.jobs.messages import Ended
from inspector.jobs.run import JobRun
from inspector.recipes.compile_job import PROGRAM, RECORD, CompileJob, Rules
from inspector.recipes.recipe import RECIPE
from inspector.recipes.source import Source
from inspector.tables.selection import Selection, SelectionKind
from schema.backends import DEFAULT

OPERATOR = "aten.convolution.default"
NODE = "aten_convolution_default_1"


def write_loop(folder: Path) -> None:
    """Write the screenshots; the program is compiled, changed, run and compared for them.

    Raises: NotReadyError if a step did not finish
    """
    with tempfile.TemporaryDirectory() as place:
        result = Path(place) / "keyword_spotter"
        _compile(result)
        with shots.open_window([str(result / PROGRAM), str(result / RECORD)]) as window:
            _steps(window, folder)
            write_panels(window, folder)
            swept = Path(place) / "sweep"
            fixed = result / "model_variants" / "keyword_spotter_1" / RECIPE
            write_sweep(window, fixed, swept, folder / "sweep_light.png")


def _compile(folder: Path) -> None:
    rules = Rules(deny_ops=(OPERATOR,))
    job = CompileJob(
        Source(str(MODULE), "build"), partitioners=(DEFAULT.partitioners[0].alias,), rules=rules
    )
    run = JobRun(job, folder)
    outcome = run.wait(PATIENCE)
    run.close()
    if outcome is None or outcome.ended is not Ended.FINISHED:
        raise shots.NotReadyError(outcome.sentence if outcome is not None else "no compile")


def _steps(window: MainWindow, folder: Path) -> None:
    chosen = Selection(SelectionKind.NODE, "forward", "compiled", NODE)
    window.router(Select(chosen))
    window.show_view("node")
    _write(window, shots.Shot("graph", SIZE, selection=chosen), folder / "loop_why.png")
    _point(window, chosen, folder / "loop_change.png")
    window.show_view("recipe")
    until(lambda: not window.jobs.previews.busy)
    _write(window, shots.Shot("graph", SIZE, selection=chosen), folder / "loop_recipe.png")
    window.bound["recompile"].trigger()
    until(lambda: not window.jobs.recompiling.busy)
    until(lambda: len(window.store.state.sessions) > 1 and not window.jobs["measure"].running)
    window.show_view("node")
    _write(window, shots.Shot("compare", SIZE), folder / "loop_compare.png")
    window.store.update(overlay="change")
    _write(window, shots.Shot("graph", SIZE, dark=True), folder / "loop_changed_dark.png")


def _point(window: MainWindow, chosen: Selection, path: Path) -> None:
    """Point at a change in its menu, draw both, and apply it."""
    menu = edits_menu(window, chosen, window.context)
    edits = menu.findChildren(EditMenu)[0]
    action = edits.action_of("let-in", "operator")
    submenu = action.parent()
    assert isinstance(submenu, QMenu)
    menu.setActiveAction(submenu.menuAction())
    submenu.setActiveAction(action)
    action.hover()
    until(lambda: not window.jobs.previews.busy)
    view = shots.take(window, shots.Shot("graph", SIZE, selection=chosen))
    with QPainter(view) as painter:
        at = QPoint(SIZE[0] - 900, 200)
        for one in (menu, submenu):
            image = _image(one)
            painter.fillRect(QRect(at, image.size()), window.palette().window())
            painter.drawPixmap(at, image)
            at += QPoint(image.width() + 2, 60)
    shots.save(view, path)
    action.trigger()
    menu.deleteLater()


def _image(menu: QMenu) -> QPixmap:
    menu.resize(menu.sizeHint())
    return menu.grab()


def _write(window: MainWindow, shot: shots.Shot, path: Path) -> None:
    shots.write(window, shot, path)
    shots.print_line(str(path))
