"""A tour of every view of a window with files open, by a watchdog of its GUI thread.

The last line printed is JSON: its blocks, the seconds that each step took until the window had
settled, and the peak of the memory in MiB.

python -m tests.bench.tour FILE … [-- OTHER …]: each group of files is opened as a session.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication, QWidget
from typing_extensions import override

from tests.bench.child import peak_mib
from tests.bench.watchdog import Watchdog

SIZE = (1440, 900)
_LEAST = 0.02  # seconds of a block that is listed
_LOOK = 20  # ms between two looks whether the window has settled
_QUIET = 6  # looks in a row
_OVERLAYS = ("bytes", "time", "backend")
_WORKERS = (
    ("devtools_app.jobs.latest", "Latest"),
    ("devtools_app.widgets.exports", "Exports"),
    ("devtools_app.appearance.slices", "Slices"),
)
Step = tuple[str, Callable[[], object]]


class Tour(QObject):
    """Does one step after the other, each once the window has settled after the one before."""

    def __init__(self, paths: Sequence[tuple[str, ...]], folder: Path) -> None:
        super().__init__()
        self._paths = paths
        self._folder = folder
        self._watchdog = Watchdog(_LEAST)
        self._steps: Iterator[Step] | None = None
        self._began = self._settled = 0.0
        self._quiet = 0
        self.seconds: dict[str, float] = {}  # of the steps until the window had settled
        self._timer = QTimer(self, interval=_LOOK)
        self._timer.timeout.connect(self._look)
        self.window: QWidget | None = None
        QApplication.instance().installEventFilter(self)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if (
            event.type() == QEvent.Type.Paint
            and isinstance(watched, QWidget)
            and watched.isWindow()
        ):
            QApplication.instance().removeEventFilter(self)
            self.window = watched
            QTimer.singleShot(0, self._begin)
        return False

    def _begin(self) -> None:
        from devtools_app.shell.window import MainWindow

        assert isinstance(self.window, MainWindow)
        self.window.resize(*SIZE)
        self._steps = _steps(self.window, self._paths, self._folder)
        self._watchdog.start()
        self._timer.start()

    def _look(self) -> None:
        now = time.perf_counter()
        with self._watchdog.left_out():  # of 4,000 objects, 10 ms and more
            busy = _busy(self.window)
        if busy:
            self._quiet, self._settled = 0, now
            return
        self._quiet += 1
        if self._quiet < _QUIET:
            return
        if self._watchdog.step:
            taken = max(self._settled - self._began, 0.0)
            name = self._watchdog.step
            self.seconds[name] = max(taken, self.seconds.get(name, 0.0))
        self._quiet = 0
        step = next(self._steps, None)
        if step is None:
            self._watchdog.stop()
            self._timer.stop()
            self.window.close()
            return
        self._watchdog.step, act = step
        self._began = self._settled = time.perf_counter()
        sys.stderr.write(self._watchdog.step + "\n")
        sys.stderr.flush()
        QTimer.singleShot(0, act)

    def blocks(self) -> list[dict[str, object]]:
        """Return the blocks, the longest first."""
        found = sorted(self._watchdog.blocks, key=lambda one: -one.seconds)
        return [{**asdict(one), "seconds": one.seconds, "what": one.what} for one in found]


def _busy(window: QWidget) -> bool:
    if window.theme.busy:
        return True
    workers = (one for kind in _WORKERS for one in _children(window, *kind))
    plots = _children(window, "devtools_app.widgets.plot", "Plot")
    return any(one.busy for one in workers) or any(plot.waiting for plot in plots)


def _children(window: QWidget, module: str, kind: str) -> list[QObject]:
    """Return objects of a class; there are none before its module was imported, which is not ours.

    The window imports it in a thread.
    """
    found = sys.modules.get(module)
    return window.findChildren(getattr(found, kind)) if hasattr(found, kind) else []


def _steps(window, paths: Sequence[tuple[str, ...]], folder: Path) -> Iterator[Step]:
    for group in paths:
        yield "open", lambda group=group: window.controller.open(group)
    for group, names in window.tabs.items():
        for name in names:
            yield from _in_view(window, f"{group.value} {name}", name, folder)
    for name in window.docks.by_name:
        yield from _in_view(window, name, name, folder)
    yield from _in_tables(window)
    yield from _in_graph(window)
    for _ in range(2):
        yield "another theme", window.bound["next_theme"].trigger
    for _ in range(len(paths)):
        yield "close", window.bound["close_session"].trigger


def _in_view(window, title: str, name: str, folder: Path) -> Iterator[Step]:
    from devtools_app.state.requests import Select
    from inspector.tables.selection import NOTHING

    yield title, lambda: window.open_view(name)
    chosen = _middle_node(window)
    if chosen is not None:
        yield f"{title}, a node selected", lambda: window.router(Select(chosen))
        yield f"{title}, no node selected", lambda: window.router(Select(NOTHING))
    path = folder / f"{title}.tsv"
    window.context.paths.save_file = lambda *_arguments: str(path)
    yield f"{title}, Ctrl+E", window.bound["export_table"].trigger


def _middle_node(window):
    from inspector.graph.model_graph import COMPILED, model_graph
    from inspector.tables.selection import Selection, SelectionKind

    state = window.store.state
    if state.session is None or (graph := model_graph(state.session, state.method)) is None:
        return None
    nodes = graph.nodes
    if not nodes:
        return None
    middle = nodes[len(nodes) // 2]
    where = (state.method, COMPILED, middle.name)
    return Selection(SelectionKind.NODE, *where, instruction=middle.instruction)


def _in_tables(window) -> Iterator[Step]:
    from devtools_app.views.operators import OperatorsPane

    yield "operators", lambda: window.show_view("operators")
    pane = next(iter(window.findChildren(OperatorsPane)), None)
    if pane is None:
        return
    table = pane.panel
    for at, column in enumerate(table.rows.columns):
        if hasattr(table, "sort_by"):
            yield f"sort by {column.title}", lambda at=at: table.sort_by(at, descending=True)
    for text in ("relu", "nothing-of-the-kind", ""):
        yield f"filter {text!r}", lambda text=text: table.set_filter_text(text)


def _in_graph(window) -> Iterator[Step]:
    from devtools_app.views.graph import GraphPane

    yield "look graph", lambda: window.show_view("graph")
    for overlay in _OVERLAYS:
        yield f"graph by {overlay}", lambda overlay=overlay: window.store.update(overlay=overlay)
    pane = next(iter(window.findChildren(GraphPane)), None)
    if pane is None:
        return
    yield "graph, all boxes open", pane.boxes.open_all
    yield "graph, a search", lambda: (pane.search.box.show_text("relu"), pane.search.search())
    for _ in range(6):
        yield "graph, zoom", lambda: pane.canvas.zoom(1.6)
    yield "graph, pan", lambda: pane.canvas.pan(90, 60)
    yield "graph, whole", pane.canvas.fit


def main() -> int:
    """Run the tour; a signal SIGUSR1 prints what all threads are doing."""
    faulthandler.register(signal.SIGUSR1)
    groups: list[tuple[str, ...]] = [()]
    for word in sys.argv[1:]:
        groups = [*groups, ()] if word == "--" else [*groups[:-1], (*groups[-1], word)]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ETSCOPE_SETTINGS"] = str(Path(folder, "settings.json"))
        from devtools_app.app import create_application, run

        create_application()
        tour = Tour([group for group in groups if group], Path(folder))
        run(())
        found = {"blocks": tour.blocks(), "seconds": tour.seconds, "peak": peak_mib()}
        sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
