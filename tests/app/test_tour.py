"""The tour of the sample: five steps, left at any of them; tabs without a stale highlight."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QHoverEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QTabBar

from devtools_app.jobs.latest import Latest
from devtools_app.sample_data import LOOP
from devtools_app.viewmodels.tour_steps import STEPS, slowest_outside
from inspector.files.load import load_session
from tests.app.window_views import RECORDER_VIEWS, open_sample

pytestmark = [pytest.mark.gui, pytest.mark.slow]


def begun(make_window, qtbot):
    window = make_window()
    window.resize(1280, 720)
    window.activateWindow()
    window.bound["tour"].trigger()
    qtbot.waitUntil(lambda: window.tour.running, timeout=20_000)
    return window


def test_tour_opens_the_sample_and_goes_through_its_views(make_window, qtbot) -> None:
    window = begun(make_window, qtbot)
    card = window.tour.card
    seen = []
    for number, step in enumerate(STEPS):
        assert card.isVisible()
        assert step.title in card.text
        assert f"{number + 1} of {len(STEPS)}" in card.accessibleName()
        seen.append(window.store.state.view)
        qtbot.waitUntil(lambda: not any(one.busy for one in window.findChildren(Latest)))
        assert card.forward.hasFocus()  # views that become ready do not take the keyboard
        if step.selects:
            selection = window.store.state.selection
            assert selection == slowest_outside(window.store.state.session, "forward")
            assert selection.node
        QTest.keyClick(card.forward, Qt.Key.Key_Return)
    assert seen == [step.view for step in STEPS]
    assert not window.tour.running
    assert not card.isVisible()


def test_panel_that_a_step_speaks_of_is_in_front(make_window, qtbot) -> None:
    window = begun(make_window, qtbot)
    guide, node = (window.docks.by_name[name] for name in ("guide", "node"))
    guide.bring_up()
    QTest.keyClick(window.tour.card.forward, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: node.in_front and node.host.view is not None)
    assert not guide.in_front
    assert window.tour.card.forward.hasFocus()


def test_tour_is_left_by_escape_at_any_step(make_window, qtbot) -> None:
    window = begun(make_window, qtbot)
    QTest.keyClick(window.tour.card.forward, Qt.Key.Key_Return)
    assert window.tour.running
    QTest.keyClick(window, Qt.Key.Key_Escape)
    assert not window.tour.running
    assert not window.tour.card.isVisible()
    assert window.store.state.view == STEPS[1].view
    window.bound["tour"].trigger()  # the sample is open
    assert window.tour.running
    assert len(window.store.state.sessions) == 2


def test_slowest_node_outside_is_what_operators_lists_first() -> None:
    found = slowest_outside(load_session(LOOP[:2]), "forward")
    assert "topk" in found.node


def test_no_tab_stays_highlighted_after_they_were_filled(make_window, qtbot) -> None:
    window = make_window(views=RECORDER_VIEWS[:3])
    open_sample(window, qtbot)
    bar = next(one for one in window.centre.findChildren(QTabBar) if one.count() > 2)

    def colours() -> list[str]:
        image = bar.grab().toImage()
        box = bar.tabRect(1)
        return [
            image.pixelColor(x, y).name()
            for x in range(box.left(), box.right())
            for y in range(box.top(), box.bottom())
        ]

    plain = colours()
    at = QPointF(bar.tabRect(1).center())
    QApplication.sendEvent(bar, QHoverEvent(QEvent.Type.HoverEnter, at, at, at))
    QApplication.sendEvent(bar, QHoverEvent(QEvent.Type.HoverMove, at, at, at))
    assert colours() != plain
    names = window.centre.names
    window.centre.show_views(names[0], "", names[:2])
    window.centre.show_views(names[0], "", names)
    assert colours() == plain
