"""The dialog of an anonymised copy: what it says, where it may write, what it writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton

from devtools_app.dialogs.colleague_dialog import ColleagueDialog
from devtools_app.sample_data import LOOP
from devtools_app.shell.window import MainWindow
from tests.app.window_views import open_sample

pytestmark = [pytest.mark.gui, pytest.mark.slow]


def opened(make_window, qtbot) -> tuple[MainWindow, ColleagueDialog]:
    window = make_window()
    assert not window.bound["colleague"].isEnabled()
    open_sample(window, qtbot, LOOP)
    window.bound["colleague"].trigger()
    return window, window.findChild(ColleagueDialog)


def test_copy_is_written_and_opens_in_another_window(make_window, qtbot, tmp_path: Path) -> None:
    window, dialog = opened(make_window, qtbot)
    words = " ".join(label.text() for label in dialog.findChildren(QLabel))
    for part in ("Weights", "notes", "shapes", "In the copy", "Not in the copy"):
        assert part in words, part
    folder = dialog.findChild(QLineEdit)
    assert Path(folder.text()).name.endswith("_anonymised")
    write = next(one for one in dialog.findChildren(QPushButton) if one.text() == "Write the copy")
    folder.setText(str(tmp_path))
    (tmp_path / "file").write_text("x")
    assert "not empty" in dialog.problem
    assert not write.isEnabled()
    folder.setText(str(tmp_path / "file"))
    assert "file" in dialog.problem
    target = tmp_path / "for them"
    folder.setText(str(target))
    assert write.isEnabled()
    write.click()
    qtbot.waitUntil(lambda: "written to" in dialog.outcome, timeout=60_000)
    assert not write.isEnabled()
    dialog.reject()
    other = make_window()
    other.controller.open((str(target / "workspace.etscope"),))
    count = len(window.store.state.sessions)
    qtbot.waitUntil(lambda: len(other.store.state.sessions) == count, timeout=60_000)
    assert other.store.state.view == window.store.state.view


def test_folder_that_cannot_be_written_is_named(make_window, qtbot, tmp_path: Path) -> None:
    _, dialog = opened(make_window, qtbot)
    (tmp_path / "file").write_text("x")
    dialog.findChild(QLineEdit).setText(str(tmp_path / "file" / "below"))
    dialog.write()
    qtbot.waitUntil(
        lambda: any("No copy" in one.text() for one in dialog.findChildren(QLabel)), timeout=60_000
    )
    dialog.reject()
