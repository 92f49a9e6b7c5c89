"""What the window keeps and offers: workspaces, settings, pictures, commands, dialogs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QFileDialog, QLabel
from shiboken6 import isValid

from devtools_app.actions.keys import sheet_sections
from devtools_app.actions.table import ACTIONS
from devtools_app.appearance.look import ThemeMode
from devtools_app.sample_data import SAMPLE
from devtools_app.shell.window import MainWindow
from devtools_app.state import requests
from devtools_app.state.settings import SettingsFile
from devtools_app.widgets.badge import key_width
from devtools_app.widgets.card_page import CardPage
from devtools_app.widgets.image import save_image
from tests.app.window_views import RECORDER_VIEWS, node, open_sample

pytestmark = [pytest.mark.gui, pytest.mark.slow]
CONTROL, SHIFT, ALT = (
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.AltModifier,
)


@pytest.fixture
def window(make_window) -> MainWindow:
    return make_window(views=RECORDER_VIEWS)


@pytest.fixture
def opened(window, qtbot) -> MainWindow:
    open_sample(window, qtbot)
    return window


def strip_text(window: MainWindow) -> str:
    return window.strip.text


# -- workspace, settings, export ------------------------------------------------------------


def test_window_workspace_brings_everything_back(opened, qtbot, tmp_path, make_window, monkeypatch):
    path = tmp_path / "mine.etscope"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_args: (str(path), ""))
    opened.router(requests.Select(node("a")))
    opened.bound["bookmark"].trigger()
    opened.router(requests.SetNote("A", "slow"))
    opened.store.update(view="two", split_view="one", overlay="bytes", filter_text="/conv/")
    qtbot.keyClick(opened, Qt.Key.Key_S, CONTROL)
    assert path.exists()
    other = make_window(views=RECORDER_VIEWS)
    open_sample(other, qtbot, (str(SAMPLE / "model.pte"),))
    with qtbot.waitSignal(other.controller.opener.ended, timeout=20_000):
        other.controller.open((str(path),))
    state = other.store.state
    assert [one.id for one in state.sessions] == ["A", "B"]
    assert state.current == "B"
    assert (state.view, state.split_view, state.overlay) == ("two", "one", "bytes")
    assert state.filter_text == "/conv/"
    assert state.selection.node == "a"
    assert state.notes == {"B": "slow"}
    assert state.bookmarks[0].place.session == "B"
    assert other.controller.workspace_path == path


def test_window_saves_again_without_asking(opened, tmp_path, monkeypatch):
    path = tmp_path / "mine"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_args: (str(path), ""))
    opened.bound["save_workspace"].trigger()
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_args: pytest.fail("asked"))
    opened.router(requests.SetNote("A", "later"))
    opened.bound["save_workspace"].trigger()
    saved = json.loads(path.with_suffix(".etscope").read_text(encoding="utf-8"))
    assert saved["notes"] == {"A": "later"}


@pytest.mark.parametrize("content", [b"{", b"{}", b'{"etscope_workspace": 1}', b"\x00" * 64])
def test_window_damaged_workspace_is_said(window, qtbot, tmp_path, content):
    path = tmp_path / "bad.etscope"
    path.write_bytes(content)
    window.controller.open((str(path),))
    assert "bad.etscope" in strip_text(window)


def test_window_workspace_in_a_place_that_cannot_be_written_is_said(opened, tmp_path):
    (tmp_path / "file").write_text("x")
    assert not opened.controller.save_workspace(tmp_path / "file" / "w.etscope", {})
    assert "cannot be saved" in strip_text(opened)


def test_window_remembers_view_layout_and_theme(make_window, settings_file: SettingsFile, qtbot):
    window = make_window(views=RECORDER_VIEWS)
    open_sample(window, qtbot)
    window.show_view("two")
    window.docks.by_name["right"].close()
    window.bound["next_theme"].trigger()
    window.bound["bigger"].trigger()
    assert window.theme.palette.dark
    window.close()
    found = settings_file.load()
    assert (found.theme, found.font_size, found.view) == (ThemeMode.DARK, 14, "two")
    again = make_window(views=RECORDER_VIEWS)
    assert again.store.state.view == "two"
    open_sample(again, qtbot)
    assert again.store.state.view == "one"  # what one opens begins where one gets an overview
    assert not again.docks.by_name["right"].isVisible()
    assert again.docks.by_name["left"].isVisible()
    again.bound["reset_layout"].trigger()
    assert again.docks.by_name["right"].isVisible()


def test_window_damaged_preferences_are_said_and_kept(make_window, settings_file):
    settings_file.path.parent.mkdir(parents=True)
    settings_file.path.write_bytes(b"{oh")
    window = make_window(views=RECORDER_VIEWS)
    assert "settings.json.damaged" in strip_text(window)
    window.close()
    kept = settings_file.path.with_name("settings.json.damaged")
    assert kept.read_bytes() == b"{oh"
    assert settings_file.load().view == "one"


@pytest.mark.parametrize("layout", ["", "rubbish", "AAAA", "\N{SNOWMAN}"])
def test_window_odd_layout_leaves_the_usual_one(window, qtbot, layout):
    assert not window.docks.restore(layout)
    open_sample(window, qtbot)
    assert window.docks.by_name["left"].isVisible()


def test_window_preferences_reach_units_and_sessions(opened):
    from inspector.tables.selection import Units

    settings = replace(
        opened.controller.settings, units=Units("ms", "KiB"), tick="us", font_size=16
    )
    opened.commands.take_preferences(settings)
    state = opened.store.state
    assert state.units == Units("ms", "KiB")
    assert state.session.options.source_time_scale == "us"
    assert state.sessions[0].revision == 1
    assert opened.theme.size == 16


def test_window_unit_for_this_run_is_not_remembered(opened, settings_file):
    controller = opened.controller
    controller.take_tick_for_now("us")
    options = opened.store.state.session.options
    assert (options.source_time_scale, options.time_scale_assumed) == ("us", False)
    assert controller.preferences.tick == "us"
    controller.put_preferences(replace(controller.preferences, font_size=15))
    assert opened.store.state.session.options.source_time_scale == "us"
    assert (settings_file.load().tick, settings_file.load().font_size) == ("", 15)
    controller.put_preferences(replace(controller.preferences, tick=""))
    assert opened.store.state.session.options.time_scale_assumed
    controller.put_preferences(replace(controller.preferences, tick="ms"))
    assert settings_file.load().tick == "ms"
    assert opened.store.state.session.options.source_time_scale == "ms"


def test_window_watching_for_this_run_is_shown_and_not_remembered(opened, settings_file):
    assert not opened.bound["watch"].isChecked()
    opened.controller.watch_for_now()
    assert opened.bound["watch"].isChecked()
    opened.controller.put_settings(replace(opened.controller.settings, font_size=15))
    assert not settings_file.load().watch
    opened.bound["watch"].trigger()
    assert not opened.bound["watch"].isChecked()
    assert not opened.controller.watching
    opened.bound["watch"].trigger()
    assert settings_file.load().watch


@pytest.mark.parametrize("size", [9, 13, 18, 24])
def test_window_of_any_text_size_shows_its_name_and_the_search_key(opened, qtbot, size):
    opened.commands.set_font_size(size)
    qtbot.waitUntil(lambda: not opened.theme.busy)
    qtbot.wait(20)
    name = opened.menuBar().cornerWidget(Qt.Corner.TopLeftCorner)
    assert name.font().pixelSize() == size
    assert name.width() >= name.sizeHint().width()
    file = opened.menuBar().actions()[0]
    words_end = name.geometry().right() - name.contentsMargins().right()
    assert opened.menuBar().actionGeometry(file).left() >= words_end
    find = opened.top_bar._find
    words = find.fontMetrics().horizontalAdvance(find.text())
    assert find.width() >= words + key_width("Ctrl P", opened.theme)


@pytest.mark.parametrize("size", [13, 18, 24])
def test_cards_that_do_not_fit_can_be_scrolled_to(qtbot, theme, size):
    page = CardPage("Overview")
    card = QLabel("a line that is not broken " * 2)
    page.add_left(card)
    page.add_right(QLabel("another"))
    page.end()
    qtbot.addWidget(page)
    page.resize(700, 300)
    theme.set_size(size)
    page.show()
    qtbot.waitUntil(lambda: not theme.busy)
    qtbot.wait(20)
    bar = page.horizontalScrollBar()
    seen = page.viewport().width() + bar.maximum()
    assert seen >= card.mapTo(page.widget(), card.rect().topRight()).x()
    assert bar.isVisible() is (bar.maximum() > 0)
    other = page.widget().findChildren(QLabel)[1]
    assert (other.y() > card.y()) is (size > 13)


def test_window_text_size_by_keys(window, qtbot):
    qtbot.keyClick(window, Qt.Key.Key_Plus, CONTROL)
    assert window.theme.size == 14
    qtbot.keyClick(window, Qt.Key.Key_Minus, CONTROL)
    assert window.theme.size == 13


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_window_exports_a_picture_of_the_view(opened, tmp_path, monkeypatch, suffix):
    path = tmp_path / f"view.{suffix}"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_args: (str(path), ""))
    opened.bound["export_image"].trigger()
    head = path.read_bytes()[:100]
    assert head.startswith(b"\x89PNG") if suffix == "png" else b"<?xml" in head


def test_picture_that_cannot_be_written_is_an_error(opened, tmp_path):
    for name in ("x.png", "x.svg"):
        with pytest.raises(OSError, match="x"):
            save_image(opened, tmp_path / "nowhere" / name)


def test_window_export_without_table_says_so(opened):
    opened.bound["export_table"].trigger()
    assert "no table" in opened.status.message


# -- keyboard ---------------------------------------------------------------------------------


def test_window_dialogs_begin_beside_what_is_shown(opened, monkeypatch, make_window):
    asked = []
    for name in ("getOpenFileNames", "getExistingDirectory", "getSaveFileName"):
        answer = "" if name == "getExistingDirectory" else ("", "")
        monkeypatch.setattr(
            QFileDialog, name, lambda *args, found=answer: asked.append(args[2]) or found
        )
    for name in ("open", "open_folder", "add_files", "export_image", "save_workspace_as"):
        opened.bound[name].trigger()
    assert len(asked) == 5
    assert all(one.startswith(str(SAMPLE)) for one in asked)
    opened.close()
    asked.clear()
    later = make_window(views=RECORDER_VIEWS)
    later.bound["open"].trigger()
    assert asked == [str(SAMPLE)]


def test_status_line_says_a_sentence_alone(opened, qtbot):
    unit = opened.status._unit
    qtbot.waitUntil(unit.isVisible)
    opened.status.show_message("Ctrl+1 comes back here")
    opened.router(requests.Select(node("a")))
    qtbot.wait(20)
    assert opened.status.message
    assert not unit.isVisible()
    opened.status.clear_message()
    assert unit.isVisible()


def test_actions_have_unique_keys_and_all_are_on_the_sheet():
    keys = [key for spec in ACTIONS for key in spec.keys]
    keys += [f"Ctrl+{n}" for n in range(10)] + [f"Alt+{n}" for n in range(10)]
    assert len(keys) == len(set(keys))
    shown = {words for lines in sheet_sections().values() for _, words in lines}
    assert {spec.text.rstrip("…") for spec in ACTIONS if spec.keys} <= shown


def test_window_palette_lists_every_command(opened, qtbot, monkeypatch):
    from devtools_app.dialogs.palette_dialog import PaletteDialog

    offered = []
    monkeypatch.setattr(PaletteDialog, "popup", lambda self: offered.append(self._choices))
    qtbot.keyClick(opened, Qt.Key.Key_P, CONTROL | SHIFT)
    titles = [choice.title for choice in offered[0]]
    assert len(titles) > 30
    assert {"Two", "Reload", "Go to Below two"} <= set(titles)
    reload = next(choice for choice in offered[0] if choice.title == "Reload")
    assert reload.hint == "F5"
    opened.commands.palettes._run(opened.bound["next_theme"])
    assert opened.theme.palette.dark


def test_window_goto_offers_nodes_and_goes_there(opened, qtbot, monkeypatch):
    from devtools_app.dialogs.palette_dialog import PaletteDialog

    offered = []
    monkeypatch.setattr(PaletteDialog, "popup", lambda self: None)
    monkeypatch.setattr(
        PaletteDialog, "show_choices", lambda self, found, complete=True: offered.append(found)
    )
    qtbot.keyClick(opened, Qt.Key.Key_P, CONTROL)
    qtbot.waitUntil(lambda: bool(offered and offered[-1]), timeout=20_000)
    choice = next(one for one in offered[-1] if one.icon == "node")
    opened.commands.palettes._picked(choice.payload)
    assert opened.store.state.selection == choice.payload


@pytest.mark.parametrize("name", ["keys", "about", "preferences"])
def test_window_dialogs_open_and_close_by_keyboard(window, qtbot, name):
    window.bound[name].trigger()
    dialog = next(one for one in window.findChildren(QDialog) if one.isVisible())
    assert dialog.accessibleName()
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not isValid(dialog), timeout=20_000)  # none is left to be restyled


def test_window_theme_menu_ticks_what_is_on(window, qtbot):
    def ticked() -> list[str]:
        return [one.text() for one in window.menus._theme_menu.actions() if one.isChecked()]

    window.commands.set_theme(ThemeMode.DARK)
    qtbot.waitUntil(lambda: ticked() == ["Dark"])
    window.menus._theme_menu.actions()[1].trigger()
    qtbot.waitUntil(lambda: ticked() == ["Light"])
    assert not window.theme.palette.dark
