"""Benchmarks of the window: start, a large graph, a large table."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable
from pathlib import Path

from tests.bench import files
from tests.bench.child import ask
from tests.bench.result import Result

_STARTS = 7

# Both print the seconds from the start of the process, which the parent names, to the first paint.
_FIRST_PAINT = """
import sys, time
from PySide6.QtCore import QEvent, QObject
class Eye(QObject):
    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint:
            print(time.time() - float(sys.argv[1]), flush=True)
            self.app.exit()
            self.app.removeEventFilter(self)
        return False
eye = Eye()
"""
_WINDOW = (
    _FIRST_PAINT
    + """
import tempfile
from pathlib import Path
from devtools_app.app import create_application, make_window
from devtools_app.state.settings import SettingsFile
app = eye.app = create_application()
with tempfile.TemporaryDirectory() as folder:
    window = make_window(app, SettingsFile(Path(folder) / "settings.json"))
    window.installEventFilter(eye)
    window.show()
    app.exec()
    window.removeEventFilter(eye)
    window.close()
"""
)
_EMPTY = (
    _FIRST_PAINT
    + """
from PySide6.QtWidgets import QApplication, QMainWindow
app = eye.app = QApplication([])
window = QMainWindow()
window.installEventFilter(eye)
window.show()
app.exec()
window.removeEventFilter(eye)
"""
)


def window_start(_folder: Path) -> Iterable[Result]:
    """From the start of the process to the first paint, beside an empty window of Qt's."""
    ours, floor = (_first_paint(code) for code in (_WINDOW, _EMPTY))
    detail = f"an empty QMainWindow {floor:.3f} s"
    yield Result("window shown", ours, "s", 0.7, detail=detail)


def _first_paint(code: str) -> float:
    ask(code, str(time.time()))
    return statistics.median(float(ask(code, str(time.time()))) for _ in range(_STARTS))


_GRAPH = """
import json, sys, time
from PySide6.QtWidgets import QApplication
from devtools_app.appearance.theme import Theme
from devtools_app.appearance.look import ThemeMode
from devtools_app.viewmodels.layout.cluster_tree import expand_all
from devtools_app.viewmodels.layout.engine import LayoutCache, lay_out
from devtools_app.viewmodels.scene import opening_set
from devtools_app.widgets.graph_canvas import GraphCanvas
from tests.app.layout_scenes import transformer
app = QApplication([])
canvas = GraphCanvas(Theme(app, ThemeMode.LIGHT).canvas)
canvas.resize(1400, 900)
canvas.show()
app.processEvents()
scene = transformer(715)
def shown(opened):
    start = time.perf_counter()
    canvas.set_graph(lay_out(scene, opened, LayoutCache()))
    canvas.repaint()
    return time.perf_counter() - start
def frames():
    found = []
    for step in range(120):
        start = time.perf_counter()
        if step % 3 == 2:
            canvas.zoom(1.25 if step % 2 else 0.8)
        else:
            canvas.pan(37 if step % 4 < 2 else -31, 53 if step % 5 < 3 else -47)
        canvas.repaint()
        found.append(time.perf_counter() - start)
    return sorted(found)[int(len(found) * 0.95)]
figures = [len(scene.names)]
for opened in (opening_set(scene.tree), expand_all(scene.tree)):
    figures.append(shown(opened))
    canvas.fit()
    figures.append(frames())
    for _ in range(12):
        canvas.zoom(1.4)
    figures.append(frames())
print(json.dumps(figures))
"""


def large_graph(_folder: Path) -> Iterable[Result]:
    """A graph of ten thousand nodes in modules: laid out, drawn, moved; collapsed and open."""
    nodes, *figures = ask(_GRAPH)
    for way, shown, whole, near in (("collapsed", *figures[:3]), ("all open", *figures[3:])):
        limit = 1.0 if way == "collapsed" else None
        name = f"graph of {nodes:,} nodes {way}"
        yield Result(f"{name}, laid out and drawn", shown, "s", limit)
        yield Result(f"{name}, p95 of pan and zoom", 1e3 * max(whole, near), "ms", 33.0)


# as in the window, garbage is not collected inside of what is measured
_HUGE = """
import gc, json, time
gc.disable()
import numpy as np
from PySide6.QtWidgets import QApplication
from devtools_app.appearance.theme import Theme
from devtools_app.appearance.look import ThemeMode
from devtools_app.viewmodels.canvas_data import GraphOverlay
from devtools_app.viewmodels.layout.cluster_tree import toggle
from devtools_app.viewmodels.layout.engine import LayoutCache, lay_out
from devtools_app.viewmodels.opening import opened_or_readable
from devtools_app.widgets.graph_canvas import GraphCanvas
from tests.app.layout_scenes import transformer
app = QApplication([])
canvas = GraphCanvas(Theme(app, ThemeMode.LIGHT).canvas)
canvas.resize(2560, 1440)
canvas.show()
app.processEvents()
scene = transformer(3572)
count = len(scene.names)
heat = np.linspace(0.0, 1.0, count)
canvas.set_overlay(GraphOverlay("time", heat, None, heat / count))
cache = LayoutCache()
def timed(act):
    start = time.perf_counter()
    act()
    canvas.repaint()
    return time.perf_counter() - start
opened = timed(lambda: canvas.set_graph(opened_or_readable(scene, None, cache)))
expanded = canvas.placed.expanded | {("model",)}
canvas.set_graph(lay_out(scene, expanded, cache))
paths = [path for path in scene.tree.paths if len(path) == 2][:9]
toggles = [
    timed(lambda: canvas.set_graph(lay_out(scene, toggle(expanded, path), cache), path))
    for path in paths
]
frames = []
for near in (False, True):
    canvas.fit()
    for _ in range(12 if near else 0):
        canvas.zoom(1.4)
    for step in range(120):
        if step % 3 == 2:
            frames.append(timed(lambda: canvas.zoom(1.25 if step % 2 else 0.8)))
        else:
            frames.append(timed(lambda: canvas.pan(37 if step % 4 < 2 else -31, 53)))
print(json.dumps([count, opened, max(toggles), sorted(frames)[int(len(frames) * 0.95)]]))
"""


def huge_graph(_folder: Path) -> Iterable[Result]:
    """A graph of fifty thousand nodes at 2560x1440: opened, a box toggled, moved."""
    nodes, opened, toggled, frame = ask(_HUGE)
    name = f"graph of {nodes:,} nodes"
    yield Result(f"{name}, opened", opened, "s", 2.0)
    yield Result(f"{name}, a box among 3,572 opened or closed", 1e3 * toggled, "ms", 100.0)
    yield Result(f"{name}, p95 of pan and zoom", 1e3 * frame, "ms", 16.7)


_TABLE = """
import json, time
from PySide6.QtWidgets import QApplication
from devtools_app.appearance.theme import Theme
from devtools_app.appearance.look import ThemeMode
from inspector.tables.operators import operators_table
from inspector.tables.row_order import RowOrder
from inspector.tables.selection import Units
from devtools_app.widgets.table_view import TableView
from tests.app.sessions import chain_session
app = QApplication([])
table = operators_table(chain_session(100_000), "forward", Units()).table
view = TableView(Theme(app, ThemeMode.LIGHT), "operators")
view.resize(1400, 900)
view.show()
app.processEvents()
def timed(act):
    start = time.perf_counter()
    act()
    app.processEvents()
    return time.perf_counter() - start
figures = {"rows": table.length, "show": timed(lambda: view.show_table(RowOrder(table)))}
for at, column in enumerate(table.columns):
    figures[f"sort by {column.title}"] = timed(lambda at=at: view.sort_by(at, descending=True))
for text in ("relu", "/re.u/", "sin", "nothing-of-the-kind", ""):
    figures[f"filter {text!r}"] = timed(lambda text=text: view.set_filter_text(text))
print(json.dumps(figures))
"""


def large_table(_folder: Path) -> Iterable[Result]:
    """A hundred thousand rows of the operators table: shown, sorted by each column, filtered."""
    figures = ask(_TABLE)
    rows = figures.pop("rows")
    for kind in ("show", "sort", "filter"):
        of_kind = {name: value for name, value in figures.items() if name.startswith(kind)}
        slowest = max(of_kind, key=of_kind.__getitem__)
        limit = None if kind == "show" else 100.0
        detail = f"slowest of {len(of_kind)}: {slowest}"
        yield Result(f"{rows:,} rows, {kind}", 1e3 * of_kind[slowest], "ms", limit, detail=detail)


_TIMELINE = """
import gc, json, sys, time
gc.disable()
from PySide6.QtWidgets import QApplication
from devtools_app.appearance.theme import Theme
from devtools_app.appearance.look import ThemeMode
from devtools_app.viewmodels.layout.timeline_found import search_events
from devtools_app.viewmodels.timeline_content import timeline_content
from devtools_app.views.timeline_range import range_content
from devtools_app.widgets.timeline_canvas import TimelineCanvas
from inspector.files.load import load_session
from inspector.profile.time_range import TimeRange
from inspector.tables.selection import Units
app = QApplication([])
canvas = TimelineCanvas(Theme(app, ThemeMode.LIGHT).canvas)
canvas.resize(2560, 1440)
canvas.show()
app.processEvents()
def timed(act):
    start = time.perf_counter()
    act()
    return time.perf_counter() - start
def opened():
    global session, content
    session = load_session([sys.argv[1]])
    content = timeline_content(session, "", sys.argv[2])
    canvas.set_data(content.timeline.data, content.places)
    canvas.repaint()
def frames():
    found = []
    for step in range(120):
        start = time.perf_counter()
        if step % 3 == 2:
            canvas.zoom(1.25 if step % 2 else 0.8)
        else:
            canvas.pan(37 if step % 4 < 2 else -31, 0)
        canvas.repaint()
        found.append(time.perf_counter() - start)
    return sorted(found)[int(len(found) * 0.95)]
figures = {"opened": timed(opened), "events": len(content.timeline.data.start)}
canvas.fit()
figures["whole"] = frames()
for _ in range(12):
    canvas.zoom(1.4)
figures["near"] = frames()
canvas.fit()
data = content.timeline.data
name = data.names[int(data.label[len(data.label) // 2])]
def search():
    canvas.set_found(search_events(data, name))
figures["search"] = timed(search)
figures["found"] = frames()
span = TimeRange(content.places.end * 0.1, content.places.end * 0.9, content.run)
figures["range"] = timed(lambda: range_content(session, "", span, Units()))
print(json.dumps(figures))
"""


def large_timeline(folder: Path) -> Iterable[Result]:
    """A timeline of a million events at 2560x1440: opened, drawn, moved, searched, with a range."""
    for runs, chosen in ((1, ""), (1000, "clock")):
        figures = ask(_TIMELINE, str(files.million_events(folder, runs=runs)), chosen)
        name = f"timeline of {figures['events']:,} events in {runs} runs"
        yield Result(f"{name}, opened and drawn", figures["opened"], "s", 2.0)
        moved = max(figures["whole"], figures["near"], figures["found"])
        detail = ", ".join(f"{one} {1e3 * figures[one]:.1f}" for one in ("whole", "near", "found"))
        yield Result(f"{name}, p95 of pan and zoom", 1e3 * moved, "ms", 16.7, detail=detail)
        yield Result(f"{name}, search", 1e3 * figures["search"], "ms", 50.0)
        yield Result(f"{name}, range", figures["range"], "s", 2.0)


GUI_CASES = (window_start, large_graph, huge_graph, large_table, large_timeline)
