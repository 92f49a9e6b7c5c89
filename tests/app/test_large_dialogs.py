"""Dialogs with large text in a small window: inside of it, no words cut, all fields reached."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QDialog,
    QScrollArea,
    QWidget,
)

from devtools_app.appearance.look import BASE_SIZE
from devtools_app.appearance.theme import Theme
from devtools_app.dialogs import dialog_room
from devtools_app.dialogs.about import AboutDialog
from devtools_app.dialogs.bundle_dialog import BundleDialog
from devtools_app.dialogs.compile_dialog import CompileDialog
from devtools_app.dialogs.devices_dialog import DevicesDialog
from devtools_app.dialogs.disk_dialog import DiskDialog
from devtools_app.dialogs.preferences import Preferences
from devtools_app.state.compile_form import CompileForm
from devtools_app.state.settings import Settings
from devtools_app.widgets.files import PathChooser
from tests.app.clipped import cut_texts
from tests.inspector.sessions import DATA

pytestmark = [pytest.mark.gui, pytest.mark.slow]
ROOM = QSize(1280, 720)
Make = Callable[[Theme, QWidget, Path], QDialog]


def _bundle(theme: Theme, parent: QWidget, folder: Path) -> QDialog:
    program = folder / "model.pte"
    shutil.copyfile(DATA / "runs/convnet_portable/model.pte", program)
    dialog = BundleDialog(theme, str(program), PathChooser(), parent, ("forward", "other"))
    dialog.set_module(str(folder / "a_module_that_is_not_there_and_has_a_long_name.py"))
    return dialog


def _devices(theme: Theme, parent: QWidget, _folder: Path) -> QDialog:
    dialog = DevicesDialog(theme, parent)
    dialog._report("Not saved: a name has letters, digits, - and _ only. " * 3, good=False)
    return dialog


def _disk(theme: Theme, parent: QWidget, folder: Path) -> QDialog:
    return DiskDialog(theme, (str(folder / "model.pte"),), (), parent)


DIALOGS: dict[str, Make] = {
    "preferences": lambda theme, parent, _folder: Preferences(theme, Settings(), parent),
    "devices": _devices,
    "disk": _disk,
    "bundle": _bundle,
    "compile": lambda theme, parent, _folder: CompileDialog(
        theme, CompileForm(), PathChooser(), parent
    ),
    "about": lambda theme, parent, _folder: AboutDialog(theme, parent),
}


@pytest.mark.parametrize("size", [BASE_SIZE, 20, 2 * BASE_SIZE])
@pytest.mark.parametrize("name", DIALOGS)
def test_dialog_fits_a_small_window_with_large_text(
    qtbot, theme: Theme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, size: int
) -> None:
    monkeypatch.setattr(dialog_room, "screen_of", lambda _widget: ROOM)
    theme.set_size(size)
    parent = QDialog()
    qtbot.addWidget(parent)
    parent.resize(ROOM)
    dialog = DIALOGS[name](theme, parent, tmp_path)
    dialog.show()
    qtbot.wait(60)
    assert dialog.width() <= ROOM.width()
    assert dialog.height() <= ROOM.height()
    assert cut_texts(dialog) == []
    for area in dialog.findChildren(QScrollArea):
        page = area.widget()
        assert page.minimumSizeHint().width() <= area.viewport().width(), area.accessibleName()
    for button in dialog.findChildren(QAbstractButton):
        if button.isVisible() and button.text() in ("OK", "Cancel", "Close", "Compile", "Make"):
            assert dialog.rect().contains(button.geometry().center())
            assert not button.visibleRegion().isEmpty()
    dialog.close()


def test_fields_below_the_edge_scroll_into_view_with_the_keyboard(
    qtbot, theme: Theme, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialog_room, "screen_of", lambda _widget: ROOM)
    theme.set_size(2 * BASE_SIZE)
    parent = QDialog()
    qtbot.addWidget(parent)
    parent.resize(ROOM)
    dialog = Preferences(theme, Settings(), parent)
    dialog.show()
    qtbot.wait(60)
    area = dialog.findChild(QScrollArea)
    assert isinstance(area, QScrollArea)
    assert area.verticalScrollBar().maximum() > 0
    dialog.activateWindow()
    dialog._mapping.setFocus()
    area.verticalScrollBar().setValue(0)
    qtbot.keyClick(dialog._mapping, Qt.Key.Key_Tab)
    assert QApplication.focusWidget() is dialog._editor
    assert not dialog._editor.visibleRegion().isEmpty()
    dialog.close()
