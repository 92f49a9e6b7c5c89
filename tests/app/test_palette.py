"""Typing to find."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QListView, QWidget

from devtools_app.dialogs.palette_dialog import PaletteDialog
from devtools_app.state.requests import ShowTensor
from devtools_app.viewmodels.fuzzy import Choice, best, prepare
from devtools_app.viewmodels.goto import goto_choices
from inspector.files.load import load_session
from inspector.tensors.sources import session_tensors
from tests.app.window_views import open_sample

_KINDS = ("node", "structure", "tensor")
NAMES = ["aten.relu", "aten_relu_1", "prelu", "aten.conv", "encoder.relu", "linear"]
CHOICES = [Choice(name, f"in {name}", payload=name) for name in NAMES]


def found(typed: str) -> list[str]:
    return [choice.title for choice in best(CHOICES, prepare(CHOICES), typed)]


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("aten", "aten.relu"),
        ("relu", "aten.relu"),
        ("RELU 1", "aten_relu_1"),
        ("prel", "prelu"),
        ("lnr", "linear"),
    ],
)
def test_best_match_comes_first(typed, first):
    assert found(typed)[0] == first


def test_best_needs_all_words_and_keeps_order_without_any():
    assert found("aten conv") == ["aten.conv"]
    assert found("") == NAMES
    assert found("zzz") == []


def test_best_is_fast_for_fifty_thousand_names():
    choices = [Choice(f"aten_convolution_default_{n}", f"layers.{n % 90}") for n in range(50_000)]
    texts = prepare(choices)
    started = time.process_time()
    assert best(choices, texts, "49999")[0].title.endswith("49999")
    assert time.process_time() - started < 1.0


def test_goto_choices_find_nodes_and_modules(data):
    folder = next(
        one
        for one in sorted((data / "corpus" / "v1.5.1").iterdir())
        if (one / "model.etrecord").exists()
    )
    session = load_session([folder])
    choices = goto_choices(session, session.methods[0])
    by_kind = {kind: [one for one in choices if one.icon == kind] for kind in _KINDS}
    assert sum(map(len, by_kind.values())) == len(choices)
    assert all(by_kind.values())
    places = [one.payload for kind in ("node", "structure") for one in by_kind[kind]]
    assert all(place.node and place.method for place in places)


@pytest.mark.parametrize("name", ["convnet_xnnpack", "convnet_portable", "tinygpt_xnnpack"])
def test_weights_are_found_by_the_names_of_their_modules(data, name):
    session = load_session([data / "corpus" / "v1.5.1" / name])
    choices = goto_choices(session, "forward")
    weights = {one.key: one for one in session_tensors(session)}
    found = [one for one in choices if isinstance(one.payload, ShowTensor)]
    assert len(found) > 3
    assert {weights[one.payload.key].origin for one in found} & {"logged", "recorded"} == set()
    named = next(one for one in found if one.title.endswith(".weight"))
    assert "f32 [" in named.detail
    assert named.title in [one.title for one in best(choices, prepare(choices), named.title)[:5]]


def test_goto_choices_of_nothing_are_none():
    from inspector.files.session import Session

    assert goto_choices(Session("empty", ()), "forward") == ()


@pytest.mark.gui
def test_palette_dialog_keys_pick(qtbot, theme):
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(800, 600)
    dialog = PaletteDialog(theme, window, "Go to", "…")
    qtbot.addWidget(dialog)
    dialog.show_choices(CHOICES)
    dialog._field.setText("relu")
    field, view = dialog.findChild(QLineEdit), dialog.findChild(QListView)
    assert view.model().rowCount() == 4
    qtbot.keyClick(field, Qt.Key.Key_Down)
    qtbot.keyClick(field, Qt.Key.Key_Down)
    qtbot.keyClick(field, Qt.Key.Key_Up)
    with qtbot.waitSignal(dialog.picked) as picked:
        qtbot.keyClick(field, Qt.Key.Key_Return)
    assert picked.args == [found("relu")[1]]
    assert field.accessibleName() == "Go to"


@pytest.mark.gui
def test_palette_dialog_without_match_says_so_and_picks_nothing(qtbot, theme):
    window = QWidget()
    qtbot.addWidget(window)
    dialog = PaletteDialog(theme, window, "Go to", "…")
    qtbot.addWidget(dialog)
    dialog.show_choices((), complete=False)
    assert "collecting" in dialog._note.text()
    dialog.show_choices(CHOICES)
    dialog._field.setText("zzz")
    assert dialog._note.text() == "no match"
    other = PaletteDialog(theme, window, "Go to", "…", "views: Ctrl+Shift+P")
    qtbot.addWidget(other)
    other.show_choices(CHOICES)
    other._field.setText("zzz")
    assert other._note.text() == "no match; views: Ctrl+Shift+P"
    with qtbot.assertNotEmitted(dialog.picked):
        qtbot.keyClick(dialog._field, Qt.Key.Key_Return)


@pytest.mark.gui
@pytest.mark.slow
@pytest.mark.qt_log_ignore("This plugin does not support")  # popups without a screen
def test_each_palette_names_the_other_where_nothing_matches(make_window, qtbot) -> None:
    window = make_window()
    open_sample(window, qtbot)
    for action, named in (("goto", "Ctrl+Shift+P"), ("commands", "Ctrl+P")):
        window.bound[action].trigger()
        dialog = next(one for one in window.findChildren(PaletteDialog) if one.isVisible())
        dialog._field.setText("no such thing")
        qtbot.waitUntil(lambda dialog=dialog, named=named: dialog._note.text().endswith(named))
        dialog.close()


@pytest.mark.gui
@pytest.mark.slow
@pytest.mark.qt_log_ignore("This plugin does not support")  # popups without a screen
def test_a_weight_of_a_delegate_is_one_name_away(make_window, qtbot) -> None:
    window = make_window()
    open_sample(window, qtbot)
    window.bound["goto"].trigger()
    dialog = next(one for one in window.findChildren(PaletteDialog) if one.isVisible())
    qtbot.waitUntil(lambda: dialog._note.text().endswith(f"{len(dialog._choices):,}"))
    weights = [one for one in dialog._choices if isinstance(one.payload, ShowTensor)]
    chosen = next(one for one in weights if one.detail.startswith("delegate"))
    dialog._field.setText(chosen.title)
    shown = next(row for row, one in enumerate(dialog._model.found) if one is chosen)
    dialog._list.setCurrentIndex(dialog._model.index(shown))
    qtbot.keyClick(dialog._field, Qt.Key.Key_Return)
    assert window.store.state.view == "tensor"
    assert window.store.state.tensor == chosen.payload.key


@pytest.mark.gui
@pytest.mark.slow
@pytest.mark.qt_log_ignore("This plugin does not support")  # popups without a screen
@pytest.mark.parametrize("name", ["my notes", "plan & size"])
def test_saved_arrangements_are_commands(make_window, qtbot, name: str) -> None:
    window = make_window()
    open_sample(window, qtbot)
    notes = window.docks.by_name["notes"]
    notes.show()
    window.arrangements.save(name)
    notes.close()
    window.bound["commands"].trigger()
    dialog = next(one for one in window.findChildren(PaletteDialog) if one.isVisible())
    dialog._field.setText(name)
    assert dialog._model.found[0].title == f"Arrangements: {name}"
    qtbot.keyClick(dialog._field, Qt.Key.Key_Return)
    assert notes.isVisible()
    window.arrangements.remove(name)
    assert name not in [one.text().replace("&&", "&") for one in window.all_actions()]
