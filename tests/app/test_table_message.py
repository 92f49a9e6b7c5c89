"""The message of a table without rows is built when it is first seen."""

from __future__ import annotations

import pytest

from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.table_view import TableView

pytestmark = pytest.mark.gui


def test_table_says_what_it_needs_as_soon_as_it_is_seen(qtbot, theme):
    view = TableView(theme, "operators")
    qtbot.addWidget(view)
    view.set_need(Need("No trace", "Open an ETDump."))
    assert view._message is None  # not visible yet: a message costs milliseconds to build
    view.show()
    assert view._message is not None
    assert view._message.isVisible()
    assert view._message.accessibleName() == "No trace. Open an ETDump."
    view.set_need(Need("No record"))
    assert view._message.accessibleName() == "No record."
