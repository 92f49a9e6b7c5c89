"""The main window, with small views that remember what they were shown."""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QFileDialog,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QTabBar,
    QWidget,
)

from devtools_app.app import ExceptionHook
from devtools_app.sample_data import SAMPLE
from devtools_app.shell.window import MainWindow
from devtools_app.state import requests
from devtools_app.state.variant_steps import compared_sessions
from devtools_app.widgets.empty_state import EmptyState
from schema.errors import FormatError
from tests.app.window_views import RECORDER_VIEWS, SAMPLE_FILES, Recorder, node, open_sample, view

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


# -- opening ---------------------------------------------------------------------------------


def test_window_starts_with_the_start_page_alone(window):
    assert window._pages.at_start
    assert not any(dock.isVisible() for dock in window.docks.by_name.values())
    assert window.windowTitle() == "ETScope"


def test_window_makes_the_empty_pages_of_views_when_they_are_shown(window, qtbot):
    assert not window.findChildren(EmptyState)
    open_sample(window, qtbot, (str(SAMPLE / "model.pte"),))
    assert not window.findChildren(EmptyState)
    window.show_view("timed")
    assert [host.spec.name for host in window.hosts if host.findChildren(EmptyState)] == ["timed"]


def test_window_shows_an_opened_session(opened):
    assert opened.windowTitle().startswith("keyword_net")
    assert not opened._pages.at_start
    assert opened.store.state.method == "forward"
    assert view(opened, "one").shown[-1] is opened.store.state
    assert opened.controller.settings.recents[0] == SAMPLE_FILES


@pytest.mark.qt_log_ignore("This plugin does not support")  # popups without a screen
def test_window_offers_a_compile_first_where_one_is_asked_for(window, qtbot):
    assert "Compile…" in [b.text() for b in window.findChildren(QAbstractButton) if b.isVisible()]
    window.commands.palettes.commands()
    dialog = window.commands.palettes._commands
    dialog._field.setText("compile")
    assert dialog._model.found[0].title == "Compile…"
    dialog._field.setText("panel")
    panels = {choice.title: choice.detail for choice in dialog._model.found if choice.detail}
    names = {dock.windowTitle() for dock in window.docks.by_name.values()}
    assert set(panels) == {f"Panel {name}" for name in names}
    assert set(panels.values()) <= {"on", "off"}
    dialog.hide()


def test_window_opens_the_sample_from_its_start_page(window, qtbot):
    with qtbot.waitSignal(window.controller.opener.ended, timeout=20_000):
        window.bound["sample"].trigger()
    state = window.store.state
    assert [one.session.name for one in state.sessions] == [
        *("keyword_spotter", "keyword_spotter_changed"),
    ]
    assert state.session is state.sessions[0].session
    qtbot.waitUntil(lambda: len(window.store.state.history.variants) == 2)
    assert [one.id for one in compared_sessions(window.store.state)] == ["A", "B"]


def test_start_page_behind_a_session_is_built_again_once_it_is_seen(window, qtbot):
    page = window._start_page
    first = page.widget()
    with qtbot.waitSignal(window.controller.opener.ended, timeout=20_000):
        window.bound["sample"].trigger()
    assert window.controller.settings.recents
    assert page.widget() is first
    while window.store.state.sessions:
        window.bound["close_session"].trigger()
    qtbot.waitUntil(page.isVisible)
    assert page.widget() is not first
    tips = [one.toolTip() for one in page.findChildren(QPushButton)]
    assert ["\n".join(paths) for paths in window.controller.settings.recents] == [
        tip for tip in tips if tip
    ]


def drag(window: MainWindow, data: QMimeData, kind: type[QDropEvent], at: QWidget) -> bool:
    """Let the system drag something over a widget or drop it there; return whether it is taken."""
    place = at.mapTo(window, at.rect().center())
    button, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    place = QPointF(place) if kind is QDropEvent else place
    event = kind(place, Qt.DropAction.CopyAction, data, button, none)
    event.ignore()
    QApplication.sendEvent(window.windowHandle(), event)
    return event.isAccepted()


@pytest.mark.parametrize("where", [QWidget, QLineEdit, QPlainTextEdit])
def test_window_takes_files_dropped_anywhere(opened, qtbot, where):
    field = where(opened)
    field.setGeometry(opened.rect())
    field.show()
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(path) for path in SAMPLE_FILES])
    assert drag(opened, data, QDragEnterEvent, field)
    assert drag(opened, data, QDragMoveEvent, field)
    with qtbot.waitSignal(opened.controller.opener.ended, timeout=20_000):
        assert drag(opened, data, QDropEvent, field)
    assert len(opened.store.state.session.files) == len(SAMPLE_FILES)
    assert len(opened.store.state.sessions) == 2
    if isinstance(field, QLineEdit):
        assert field.text() == ""


@pytest.mark.parametrize("address", ["", "https://github.com/model.pte"])
def test_window_does_not_take_text_or_addresses(window, address):
    data = QMimeData()
    data.setText("hello")
    if address:
        data.setUrls([QUrl(address)])
    with_text = window.centralWidget()
    assert not drag(window, data, QDragEnterEvent, with_text)


def test_window_unreadable_file_is_said_in_place_and_can_be_copied(window, qtbot, tmp_path):
    path = tmp_path / "photo.jpg"
    path.write_bytes(b"\xff\xd8\xff\xe0 not ours" * 9)
    open_sample(window, qtbot, (str(path),))
    assert "photo.jpg" in strip_text(window)
    window.strip.copy()
    assert "photo.jpg" in QGuiApplication.clipboard().text()
    assert window.store.state.sessions == ()
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    window.commands.clear()
    assert strip_text(window) == ""


def test_window_missing_file_is_a_sentence(window, qtbot, tmp_path):
    open_sample(window, qtbot, (str(tmp_path / "gone.pte"),))
    assert "gone.pte" in strip_text(window)
    assert "Traceback" not in strip_text(window)


def test_window_forgets_recent_files_that_are_gone(window, qtbot, tmp_path):
    path = tmp_path / "model.pte"
    path.write_bytes((SAMPLE / "model.pte").read_bytes())
    open_sample(window, qtbot, (str(path),))
    assert window.controller.settings.recents == ((str(path),),)
    path.unlink()
    open_sample(window, qtbot, (str(path),))
    assert window.controller.settings.recents == ()


def test_window_loader_with_a_bug_is_said_too(make_window, qtbot):
    def load(*_args, **_kwargs):
        raise ZeroDivisionError("deliberate")

    window = make_window(load=load, views=RECORDER_VIEWS)
    open_sample(window, qtbot, ("x.pte",))
    assert "bug" in strip_text(window)


def test_window_dialog_pairs_siblings_and_offers_the_file_alone(window, qtbot, monkeypatch):
    chosen = str(SAMPLE / "model.pte")
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_args: ([chosen], ""))
    with qtbot.waitSignal(window.controller.opener.ended, timeout=20_000):
        window.bound["open"].trigger()
    assert len(window.store.state.session.files) == len(SAMPLE_FILES)
    assert "found beside model.pte" in strip_text(window)
    with qtbot.waitSignal(window.controller.opener.ended, timeout=20_000):
        window.controller.open_alone(chosen)
    assert [Path(file.path).name for file in window.store.state.session.files] == ["model.pte"]
    assert [one.id for one in window.store.state.sessions] == ["A"]


def test_window_adds_files_to_the_session_shown(window, qtbot, monkeypatch):
    open_sample(window, qtbot, (str(SAMPLE / "model.pte"),))
    more = [str(SAMPLE / "run.etdp")]
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_args: (more, ""))
    with qtbot.waitSignal(window.controller.opener.ended, timeout=20_000):
        window.router(requests.ChooseFiles(beside=True))
    state = window.store.state
    assert (len(state.sessions), len(state.session.files)) == (1, 2)


def test_window_opens_a_folder(window, qtbot, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_args: str(SAMPLE))
    with qtbot.waitSignal(window.controller.opener.ended, timeout=20_000):
        window.bound["open_folder"].trigger()
    assert len(window.store.state.session.files) == len(SAMPLE_FILES)


def test_window_cancel_of_a_file_dialog_opens_nothing(window, qtbot, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_args: ([], ""))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_args: "")
    with qtbot.assertNotEmitted(window.controller.opener.started, wait=30):
        for name in ("open", "open_folder", "add_files"):
            window.bound[name].trigger()


def test_window_reload_reads_again_and_keeps_the_selection(opened, qtbot):
    opened.router(requests.Select(node("aten_relu_default")))
    with qtbot.waitSignal(opened.controller.opener.ended, timeout=20_000):
        qtbot.keyClick(opened, Qt.Key.Key_F5)
    one = opened.store.state.sessions[0]
    assert (one.id, one.revision) == ("A", 1)
    assert opened.store.state.selection.node == "aten_relu_default"


def test_window_several_sessions_are_shown_one_by_one(opened, qtbot):
    open_sample(opened, qtbot, (str(SAMPLE / "model.pte"),))
    assert opened.store.state.current == "B"
    qtbot.keyClick(opened, Qt.Key.Key_Tab, CONTROL)
    assert opened.store.state.current == "A"
    opened.top_bar.session_chosen.emit("B")
    assert opened.store.state.current == "B"
    qtbot.keyClick(opened, Qt.Key.Key_W, CONTROL)
    assert [one.id for one in opened.store.state.sessions] == ["A"]
    opened.router(requests.CloseSession("A"))
    assert opened._pages.at_start


def test_window_watch_reloads_changed_files(window, qtbot, tmp_path):
    path = tmp_path / "model.pte"
    path.write_bytes((SAMPLE / "model.pte").read_bytes())
    open_sample(window, qtbot, (str(path),))
    window.bound["watch"].trigger()
    assert window.controller.settings.watch
    assert window.bound["watch"].isChecked()
    with qtbot.waitSignal(window.controller.opener.ended, timeout=20_000):
        path.write_bytes((SAMPLE / "model.pte").read_bytes())
    assert window.store.state.sessions[0].revision == 1


# -- views -----------------------------------------------------------------------------------


def test_window_refreshes_only_what_can_be_seen(opened):
    two = next(host for host in opened.hosts if host.spec.name == "two")
    assert two.view is None
    opened.show_view("two")
    assert view(opened, "two").shown == [opened.store.state]
    before = len(view(opened, "one").shown)
    opened.store.update(overlay="bytes")
    assert len(view(opened, "one").shown) == before
    opened.show_view("one")
    assert view(opened, "one").shown[-1].overlay == "bytes"


def test_window_same_state_is_not_shown_twice(opened):
    before = len(view(opened, "one").shown)
    opened.hosts[0].refresh()
    opened.show_view("one")
    assert len(view(opened, "one").shown) == before


def test_window_view_that_lacks_a_file_says_which(window, qtbot):
    open_sample(window, qtbot, (str(SAMPLE / "model.pte"),))
    window.show_view("timed")
    host = next(host for host in window.hosts if host.spec.name == "timed")
    assert host.view is None
    assert host._empty.accessibleName().startswith("No trace")
    with qtbot.waitSignal(window.controller.opener.ended, timeout=20_000):
        window.controller.open_beside((str(SAMPLE / "run.etdp"),))
    assert view(window, "timed").shown


def test_window_view_with_a_bug_leaves_the_others_alone(opened, caplog):
    caplog.set_level(logging.CRITICAL)
    opened.show_view("broken")
    host = next(host for host in opened.hosts if host.spec.name == "broken")
    assert "ZeroDivisionError" in host._error.accessibleName()
    host._copy_details()
    assert "deliberate" in QGuiApplication.clipboard().text()
    assert view(opened, "left").shown[-1] is opened.store.state
    opened.store.update(method="fine")
    assert host._stack.currentWidget() is host.view


def test_window_split_shows_two_views(opened, qtbot):
    opened.bound["split"].trigger()
    assert opened.store.state.split_view == "two"
    rows = [bar for bar in opened.centre.findChildren(QTabBar) if bar.isVisible()]
    assert len(rows) == 2
    right = next(bar for bar in rows if bar.accessibleName() == "Views at the right")
    right.setCurrentIndex(0)
    assert opened.store.state.split_view == "one"
    opened.bound["split"].trigger()
    assert opened.store.state.split_view == ""
    assert not opened.bound["split"].isChecked()


def test_window_tabs_and_state_follow_each_other(opened, qtbot):
    bar = next(bar for bar in opened.centre.findChildren(QTabBar))
    bar.setCurrentIndex(1)
    assert opened.store.state.view == "two"
    opened.store.update(view="one")
    assert bar.currentIndex() == 0
    qtbot.keyClick(opened, Qt.Key.Key_2, ALT)
    assert (opened.store.state.view, bar.currentIndex()) == ("two", 1)


def test_window_combos_and_state_follow_each_other(opened):
    opened.top_bar.overlay_chosen.emit("backend")
    assert opened.store.state.overlay == "backend"
    opened.top_bar.method_chosen.emit("other")
    assert opened.store.state.method == "other"


# -- requests, history, bookmarks -----------------------------------------------------------


def test_window_history_by_keys(opened, qtbot):
    for name in ("a", "b"):
        opened.router(requests.Select(node(name)))
    qtbot.keyClick(opened, Qt.Key.Key_Left, ALT)
    assert opened.store.state.selection.node == "a"
    qtbot.keyClick(opened, Qt.Key.Key_Right, ALT)
    assert opened.store.state.selection.node == "b"
    qtbot.keyClick(opened, Qt.Key.Key_Backspace)
    assert opened.store.state.selection.node == "a"
    qtbot.keyClick(opened, Qt.Key.Key_Escape)
    assert not opened.store.state.selection


def test_window_select_can_bring_a_view_to_the_front(opened):
    opened.router(requests.Select(node("a"), view="two"))
    assert opened.store.state.view == "two"
    opened.router(requests.ShowView("below2"))
    assert opened.docks.by_name["below2"].isVisible()
    assert opened.active_view()[0].name == "below2"


def test_window_bookmarks_by_keys(opened, qtbot):
    opened.router(requests.Select(node("a")))
    qtbot.keyClick(opened, Qt.Key.Key_B, CONTROL)
    opened.router(requests.Select(node("b")))
    qtbot.keyClick(opened, Qt.Key.Key_1, CONTROL)
    assert opened.store.state.selection.node == "a"
    opened.router(requests.GoTo(opened.store.state.past[-1]))
    assert opened.store.state.selection.node == "b"


def test_window_find_and_step_reach_the_view_in_front(opened, qtbot):
    opened.show_view("two")
    qtbot.keyClick(opened, Qt.Key.Key_F, CONTROL)
    assert QApplication.focusWidget() is view(opened, "two").field
    view(opened, "two").setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    view(opened, "two").setFocus()
    qtbot.keyClick(opened, Qt.Key.Key_Period)
    qtbot.keyClick(opened, Qt.Key.Key_Comma)
    assert view(opened, "two").steps == [1, -1]


def test_window_letters_in_a_field_are_letters(opened, qtbot):
    opened.router(requests.Select(node("a")))
    opened.router(requests.Select(node("b")))
    field = view(opened, "one").field
    field.setFocus()
    qtbot.keyClicks(field, "a.,?x")
    qtbot.keyClick(field, Qt.Key.Key_Backspace)
    assert field.text() == "a.,?"
    assert opened.store.state.selection.node == "b"
    assert view(opened, "one").steps == []


def test_window_escape_in_a_filter_clears_the_filter_only(opened, qtbot):
    from devtools_app.widgets.filter_box import FilterBox

    opened.router(requests.Select(node("a")))
    box = FilterBox("Filter")
    box.setParent(view(opened, "one"))
    box.show()
    box.setFocus()
    qtbot.keyClicks(box, "conv")
    qtbot.keyClick(box, Qt.Key.Key_Escape)
    assert box.text() == ""
    assert opened.store.state.selection.node == "a"


def test_window_notes_belong_to_a_session(opened):
    opened.router(requests.SetNote("A", "slow"))
    assert opened.store.state.notes == {"A": "slow"}
    opened.router(requests.ShowStatus("done"))
    assert opened.status.message == "done"


def test_window_unknown_request_is_an_error(opened):
    with pytest.raises(KeyError):
        opened.router("open the door")


def test_window_open_source_says_when_it_cannot(opened, tmp_path, monkeypatch):
    from dataclasses import replace

    opened.router(requests.OpenSource("/nowhere/model.py", 3))
    assert "not on this machine" in strip_text(opened)
    source = tmp_path / "model.py"
    source.write_text("x = 1\n")
    settings = replace(
        opened.controller.settings, source_roots=(str(tmp_path),), editor="no-such-editor"
    )
    opened.controller.put_settings(settings)
    opened.router(requests.OpenSource("/build/model.py", 1))
    assert "not installed" in strip_text(opened)
    started = []
    monkeypatch.setattr(
        "devtools_app.actions.commands.QProcess.startDetached",
        lambda program, words: started.append([program, *words]) or True,
    )
    opened.controller.put_settings(
        replace(settings, editor=f"'{sys.executable}' {{file}}:{{line}}")
    )
    opened.router(requests.OpenSource("/build/model.py", 4))
    assert started == [[sys.executable, f"{source}:4"]]


# -- errors, end ------------------------------------------------------------------------------


def test_mishap_becomes_a_message_not_a_crash(window, caplog):
    caplog.set_level(logging.CRITICAL)
    hook = ExceptionHook()
    told = []
    hook.happened.connect(lambda text, details: told.append((text, details)))
    try:
        int("no number")
    except ValueError as error:
        hook.take(type(error), error, error.__traceback__)
    assert "ValueError" in told[0][0]
    assert "Traceback" in told[0][1]


def test_mishap_in_a_thread_is_told_on_the_gui_thread(window, qtbot, caplog):
    caplog.set_level(logging.CRITICAL)
    hook = ExceptionHook()
    restore = hook.install()
    try:
        with qtbot.waitSignal(hook.happened) as told:
            worker = threading.Thread(target=lambda: 1 / 0)
            worker.start()
        worker.join()
    finally:
        restore()
    assert "ZeroDivisionError" in told.args[0]
    assert sys.excepthook is not hook.take


def test_window_close_stops_everything(opened, qtbot):
    views = [host.view for host in opened.hosts if isinstance(host.view, Recorder)]
    opened.close()
    assert views
    assert all(one.closed for one in views)
    assert not opened.controller.opener.busy


def test_window_closed_while_opening_stops_reading(make_window, qtbot):
    begun, stopped = threading.Event(), threading.Event()

    def load(_paths, _options=None, *, cancel=None, progress=None):
        begun.set()
        cancel.wait(10)
        stopped.set()
        raise FormatError("a", "b")

    window = make_window(load=load, views=RECORDER_VIEWS)
    window.controller.open(("x.pte",))
    assert begun.wait(60)
    window.close()
    assert stopped.wait(5)
