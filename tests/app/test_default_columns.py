"""No view needs a horizontal scroll bar in its default columns; code may be wider than its room."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QAbstractScrollArea, QHeaderView

from devtools_app.jobs.latest import Latest
from devtools_app.sample_data import LOOP, SAMPLE
from devtools_app.views import VIEWS
from devtools_app.views.memory import MemoryPane
from devtools_app.widgets.timed_code import TimedCode
from inspector.tables.rows import RowField, row_table
from inspector.tables.table import Total
from inspector.units import Quantity
from tests.app.sessions import DATA
from tests.app.window_views import open_sample

pytestmark = [pytest.mark.gui, pytest.mark.slow]
LONG = (str(DATA / "corpus/v1.0.1/tinygpt_xnnpack/model.pte"),)  # more parts than rows
TRACE = (str(SAMPLE / "run.etdp"),)


@pytest.mark.parametrize(
    ("files", "size"),
    [(LOOP[:2], (1280, 720)), (LOOP[:2], (2560, 1440)), (TRACE, (1280, 720)), (LONG, (1280, 720))],
    ids=["small", "large", "trace", "long"],
)
def test_no_view_scrolls_sideways(
    make_window, qtbot, files: tuple[str, ...], size: tuple[int, int]
) -> None:
    window = make_window()
    window.resize(*size)
    open_sample(window, qtbot, files)
    found: dict[str, list[str]] = {}
    for spec in VIEWS:
        window.show_view(spec.name)
        qtbot.waitUntil(lambda: not any(job.busy for job in window.findChildren(Latest)))
        qtbot.wait(40)
        wide = [
            area.accessibleName() or type(area).__name__
            for area in window.findChildren(QAbstractScrollArea)
            if area.isVisible() and not isinstance(area, TimedCode)
            if area.horizontalScrollBar().isVisible()
        ]
        if wide:
            found[spec.name] = wide
    assert found == {}


@pytest.mark.parametrize("name", ["aten_leaky_relu_default_11", "aten_upsample_nearest2d_vec_1"])
def test_names_of_values_are_whole_beside_the_map_in_a_small_window(
    make_window, qtbot, name: str
) -> None:
    window = make_window()
    window.resize(1280, 720)
    open_sample(window, qtbot, LOOP[:2])
    window.show_view("memory")
    found = next(host.view for host in window.hosts if isinstance(host.view, MemoryPane))
    qtbot.waitUntil(lambda: found.table.rows.length > 0)
    fields = (
        RowField("value", mono=True),
        RowField("size", Quantity.SIZE, Total.SUM),
        RowField("producer"),
    )
    cells = [(name, 32768, "upsample_nearest2d.vec_out"), ("aten_erf_default", 8, "XNNPACK 0")]
    found.table.show_table(row_table(fields, cells, "values"))
    heads = found.table.findChildren(QHeaderView)
    head = next(one for one in heads if one.orientation() is Qt.Orientation.Horizontal)
    need = QFontMetrics(window.theme.mono()).horizontalAdvance(name) + 10
    assert head.sectionSize(0) >= need
    assert not head.isSectionHidden(1)
    assert not head.isSectionHidden(2)
