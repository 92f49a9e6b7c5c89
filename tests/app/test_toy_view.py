"""A view is one file and one line in the table of views."""

from __future__ import annotations

from pathlib import Path

import pytest

from devtools_app import views
from devtools_app.views import VIEWS
from devtools_app.views.spec import Area, entry

pytestmark = pytest.mark.gui

DATA = Path(__file__).parents[1] / "data"
TOY = '''
"""How long the names of the methods are."""

from PySide6.QtWidgets import QLabel

from devtools_app.views.spec import Area, ViewSpec


class ToyView(QLabel):
    def __init__(self, context):
        super().__init__()
        self.setAccessibleName("lengths")

    def show_state(self, state):
        session = state.open_session.session if state.open_session else None
        names = session.methods if session else ()
        self.setText(", ".join(f"{name}: {len(name)}" for name in names))


SPEC = ViewSpec("toy_lengths", "Lengths", Area.CENTRE, ToyView, "size")
'''


def test_a_view_is_one_file_and_one_line(
    qtbot, make_window, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "toy_lengths.py").write_text(TOY, "utf-8")
    monkeypatch.setattr(views, "__path__", [*views.__path__, str(tmp_path)])
    line = entry("toy_lengths", "Lengths", Area.CENTRE, "size")
    window = make_window(views=(*VIEWS, line))
    with qtbot.waitSignal(window.controller.opener.ended, timeout=20_000):
        window.controller.open((str(DATA / "corpus/v1.5.1/convnet_xnnpack"),))
    window.show_view("toy_lengths")
    host = next(host for host in window.hosts if host.spec.name == "toy_lengths")
    assert host.spec.title == "Lengths"
    qtbot.waitUntil(lambda: getattr(host.view, "text", str)() == "forward: 7", timeout=5_000)
