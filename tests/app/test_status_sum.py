"""The sum in the status line is shown with all of its parts or with none."""

from __future__ import annotations

import re

import pytest
from PySide6.QtWidgets import QLabel

from devtools_app.sample_data import LOOP

pytestmark = pytest.mark.gui


def _words(label: QLabel) -> str:
    return re.sub(r"<[^>]*>|&nbsp;", " ", label.text())


def test_a_sum_that_does_not_fit_shows_the_time_alone(make_window, qtbot) -> None:
    window = make_window()
    window.controller.open(tuple(LOOP[:2]))
    line = window.status
    qtbot.waitUntil(lambda: any("method" in _words(one) for one in line.findChildren(QLabel)))
    label = next(one for one in line.findChildren(QLabel) if "method" in _words(one))
    line.setMinimumWidth(0)
    line.resize(1800, line.height())
    whole = _words(label)
    assert re.search(r"method\s+=\s+.*delegates\s+\+\s+.*operators", whole)
    line.resize(520, line.height())
    assert re.fullmatch(r"\s*[\d.]+ .s\s+method\s+=\s+…\s*", _words(label))
    first = label.toolTip().splitlines()[0]
    assert first.split() == whole.split()
