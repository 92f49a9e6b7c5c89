"""No view needs a horizontal scroll bar in its default columns; code may be wider than its room."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QAbstractScrollArea

from devtools_app.jobs.latest import Latest
from devtools_app.sample_data import LOOP, SAMPLE
from devtools_app.views import VIEWS
from devtools_app.widgets.timed_code import TimedCode
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
