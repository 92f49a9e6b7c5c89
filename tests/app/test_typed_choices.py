"""What is typed into a list of a form is taken as typed, by keys that go where the keyboard is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from devtools_app.dialogs.choice_fields import ChoiceBox
from devtools_app.dialogs.compile_dialog import CompileDialog
from devtools_app.dialogs.list_field import ListField
from devtools_app.state.compile_form import CompileForm
from devtools_app.viewmodels.field_choices import FieldChoice, Vocabulary
from devtools_app.widgets.files import PathChooser
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.source import Source

pytestmark = [
    pytest.mark.gui,
    pytest.mark.slow,
    pytest.mark.qt_log_ignore("This plugin does not support"),  # menus without a screen
]

MODEL = "import torch\n\ndef build():\n    return torch.nn.ReLU(), (torch.ones(2),)\n"
LISTED = ("demo-add-mul", "demo-all", "xnnpack")


@pytest.fixture
def dialog(qtbot, theme, tmp_path: Path):
    model = tmp_path / "model.py"
    model.write_text(MODEL)
    parent = QLabel()
    qtbot.addWidget(parent)
    job = replace(CompileJob(Source(str(model), "build")), partitioners=())
    shown = CompileDialog(theme, CompileForm(job).fresh(), PathChooser(), parent)
    shown.show()
    shown.activateWindow()
    listed = tuple(FieldChoice(one, f"what {one} is") for one in LISTED)
    shown.fields.offer(Vocabulary(partitioners=listed))
    yield shown
    shown.shut_down()


def field_of(dialog: CompileDialog) -> tuple[ListField, ChoiceBox]:
    found = dialog.fields.widgets["partitioners"]
    assert isinstance(found, ListField)
    assert isinstance(found.adding, ChoiceBox)
    return found, found.adding


def typed(qtbot, text: str) -> None:
    """Send each key to what has the keyboard then."""
    for letter in text:
        qtbot.keyClicks(focus(), letter)


def focus() -> QWidget:
    found = QApplication.activePopupWidget() or QApplication.focusWidget()
    assert found is not None
    return found.focusProxy() or found.focusWidget() or found


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize(
    "name", ["{folder}/d.py:part", "{folder}/missing.py", "d.py:Demo", "demo", "x:per_op_mode=True"]
)
def test_typed_name_is_added_as_typed(
    dialog, qtbot, tmp_path: Path, name: str, *, opened: bool
) -> None:
    text, (one, box) = name.format(folder=tmp_path), field_of(dialog)
    box.setFocus()
    if opened:
        box.showPopup()
    typed(qtbot, text)
    assert one.values == ()
    assert box.currentText() == text
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Return)
    assert one.values == (text,)
    assert box.currentText() == ""
    assert dialog.form().job.partitioners == (text,)


def test_entry_is_chosen_by_arrows_in_the_open_list(dialog, qtbot) -> None:
    one, box = field_of(dialog)
    box.setFocus()
    box.showPopup()
    view = box.view()
    view.setCurrentIndex(view.model().index(0, 0))
    second = str(box.itemData(1))
    one.offer(Vocabulary(partitioners=(FieldChoice("others"),)))  # which come while it is open
    qtbot.keyClick(view, Qt.Key.Key_Down)
    qtbot.keyClick(view, Qt.Key.Key_Return)
    assert one.values == (second,)
    assert box.currentText() == ""


@pytest.mark.parametrize("name", ["{folder}/missing.py:part", "{folder}/bad.py:part"])
def test_typed_file_is_checked_at_its_field(dialog, qtbot, tmp_path: Path, name: str) -> None:
    (tmp_path / "bad.py").write_text("class Mine(:\n")
    _, box = field_of(dialog)
    box.setFocus()
    typed(qtbot, name.format(folder=tmp_path))
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(dialog.problem_of("partitioners")), timeout=20_000)
    assert Path(name).name.partition(":")[0] in dialog.problem_of("partitioners")


@pytest.mark.parametrize("restyled", [False, True])
def test_names_that_arrive_leave_the_keyboard_in_the_line_in_use(
    dialog: CompileDialog, qtbot, restyled: bool
) -> None:
    field, _ = field_of(dialog)
    field.show_value(("xnnpack", "demo-all"))
    button = next(
        one for one in field.findChildren(QWidget) if one.accessibleName().startswith("Move demo")
    )
    button.setFocus()
    assert QApplication.focusWidget() is button
    if restyled:
        field._rebuild()  # as after a change of theme
    else:
        field.offer(Vocabulary(partitioners=(FieldChoice("other", "another one"),)))
    assert focus().accessibleName() == button.accessibleName()
    assert (focus() is button) is not restyled
    qtbot.keyClick(focus(), Qt.Key.Key_Space)
    assert field.values == ("demo-all", "xnnpack")


@pytest.mark.parametrize(("key", "expected"), [("Key_Down", "wider"), ("Key_Up", "first")])
def test_arrow_keys_go_on_from_the_value_that_is_shown(
    qtbot, theme, tmp_path: Path, key: str, expected: str
) -> None:
    """They began at the empty entry above the first of the list."""
    model = tmp_path / "model.py"
    model.write_text("".join(f"def {name}():\n    pass\n" for name in ("first", "build", "wider")))
    parent = QLabel()
    qtbot.addWidget(parent)
    shown = CompileDialog(
        theme, CompileForm(CompileJob(Source(str(model), "build"))).fresh(), PathChooser(), parent
    )
    shown.show()
    field = shown.fields.widgets["source.function"]
    assert isinstance(field, ChoiceBox)
    assert field.currentText() == "build"
    field.setFocus()
    qtbot.keyClick(field, getattr(Qt.Key, key))
    assert field.currentText() == expected
    assert shown.form().job.source.function == expected
    shown.shut_down()
