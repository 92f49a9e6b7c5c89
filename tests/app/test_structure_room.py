"""Structure in a small window: whole names of members beside whole lines of bytes."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QAbstractScrollArea, QApplication
from pytestqt.qtbot import QtBot

from devtools_app.views.structure import StructurePane
from tests.app.sessions import opened
from tests.app.view_bench import Bench

pytestmark = pytest.mark.gui
_MIDDLE = (1064, 580)  # of a window of 1280 by 720


def test_names_values_and_bytes_are_whole(qtbot: QtBot) -> None:
    bench = Bench(qtbot, StructurePane)
    pane = bench.pane
    assert isinstance(pane, StructurePane)
    pane.resize(*_MIDDLE)
    bench.open(opened("corpus/v1.5.1/convnet_xnnpack"))
    QApplication.processEvents()
    metrics = QFontMetrics(bench.theme.mono())
    room = pane.tree.columnWidth(0) - 2 * pane.tree.indentation() - 10
    assert metrics.horizontalAdvance("exported_program_state_dict") <= room
    assert metrics.horizontalAdvance("528,712 bytes, stored") <= pane.tree.columnWidth(2) - 10
    for area in pane.findChildren(QAbstractScrollArea):
        if area.isVisible():
            assert area.horizontalScrollBar().maximum() == 0, area.accessibleName()
