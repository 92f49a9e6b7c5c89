"""Fields with one name take it from their list, from a file, or as typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QStyleOptionViewItem

from devtools_app.dialogs.choice_fields import ChoiceBox, NameField
from devtools_app.dialogs.form_files import actions_of
from devtools_app.dialogs.recipe_fields import RecipeFields
from devtools_app.viewmodels.field_choices import FieldChoice, Vocabulary, may_be_in_file
from devtools_app.viewmodels.recipe_form import FieldKind, FormField, all_fields
from inspector.recipes.compile_job import CompileJob, Quantization
from inspector.recipes.source import Source
from schema.recipe.planners import PLANNERS
from tests.app.test_form_fields import Paths

JOB = CompileJob(Source("model.py", "build"), quantising=Quantization("static"))
NAMED = [one for one in all_fields(JOB) if may_be_in_file(one) and one.kind is FieldKind.TEXT]
KNOWN = Vocabulary(quantizers=(FieldChoice("ethos-u", "Arm: U55"), FieldChoice("vgf", "no", False)))


pytestmark = [
    pytest.mark.gui,
    pytest.mark.slow,
    pytest.mark.qt_log_ignore("This plugin does not support"),  # lists without a screen
]
both_ways = pytest.mark.parametrize("form", [False, True], ids=["panel", "dialog"], indirect=True)
each_name = pytest.mark.parametrize("one", NAMED, ids=[one.path for one in NAMED])


@pytest.fixture
def form(qtbot, theme, tmp_path: Path, request: pytest.FixtureRequest) -> RecipeFields:
    found = RecipeFields(theme, Paths(str(tmp_path / "own.py")), live=request.param)
    qtbot.addWidget(found)
    found.show_job(JOB)
    found.offer(KNOWN)
    for group in found._groups.values():
        group.open()
    found.resize(460, 900)
    found.show()
    return found


@pytest.fixture
def found(form: RecipeFields) -> list[tuple[str, object]]:
    """Return what the fields tell, to which the form gives nothing back."""
    edits: list[tuple[str, object]] = []
    for one in NAMED:
        _field(form, one.path).edited.connect(
            lambda value, path=one.path: edits.append((path, value))
        )
    return edits


def _field(form: RecipeFields, path: str) -> NameField:
    field = form.widgets[path]
    assert isinstance(field, NameField)
    return field


@each_name
@both_ways
def test_a_name_is_taken_as_typed(form, found, qtbot, one: FormField) -> None:
    field = _field(form, one.path)
    line = field.lineEdit()
    assert line is not None
    assert line.placeholderText() == one.empty
    qtbot.mouseClick(line, Qt.MouseButton.LeftButton)
    qtbot.keyClicks(line, "own.py:Mine")
    qtbot.keyClick(line, Qt.Key.Key_Return)
    assert found[-1] == (one.path, "own.py:Mine")
    line.clear()
    line.editingFinished.emit()
    assert found[-1] == (one.path, "")
    assert field.currentText() == ""


@both_ways
def test_a_chosen_name_stands_alone_and_the_list_says_what_it_is(form, found, qtbot) -> None:
    for path, value, detail in (
        ("memory_planner", "greedy", PLANNERS["greedy"]),
        ("quantising.quantizer", "ethos-u", "Arm: U55"),
    ):
        field = _field(form, path)
        field.showPopup()
        row = field.findData(value)
        field.hidePopup()
        field.setCurrentIndex(row)
        field.activated.emit(row)
        assert found[-1] == (path, value)
        assert (field.currentText(), field.itemText(row)) == (value, value)
        shown = QStyleOptionViewItem()
        delegate = field.itemDelegate()
        delegate.initStyleOption(shown, field.model().index(row, 0))
        assert shown.text == f"{value}  ·  {detail}"
        lines = [delegate.sizeHint(shown, field.model().index(at, 0)) for at in range(row + 1)]
        assert all(line.height() > 7 for line in lines)
    quantizer = _field(form, "quantising.quantizer")
    assert not quantizer.model().item(quantizer.findData("vgf")).isEnabled()


@each_name
@both_ways
def test_an_action_of_the_list_is_no_value(form, found, qtbot, tmp_path: Path, one) -> None:
    """The keyboard moves to it, and it is chosen while its text stands in the line."""
    (tmp_path / "own.py").write_text("def only(): ...\n")
    field = _field(form, one.path)
    at = field.count() - 1
    assert field.itemText(at) == actions_of(one)[-1]
    field.setCurrentIndex(at)
    assert not found
    field.lineEdit().editingFinished.emit()
    assert not found
    assert field.currentText() == ""
    field.setCurrentIndex(at)
    field.activated.emit(at)
    value = f"{tmp_path / 'own.py'}:only"
    assert found == [(one.path, value)]
    assert field.currentText() == value


@pytest.mark.parametrize(("typed", "explained"), [(True, False), (True, True), (False, False)])
def test_every_entry_of_a_list_has_words_for_a_screen_reader(
    qtbot, typed: bool, explained: bool
) -> None:
    box = ChoiceBox(typed=typed, explained=explained)
    qtbot.addWidget(box)
    box.set_choices([FieldChoice("", "none"), FieldChoice("a", "a · what it is")], ["Choose…"])
    box.showPopup()
    roles = (Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.DisplayRole)
    for row in range(box.count()):
        assert any(box.itemData(row, role) for role in roles), row
    box.hidePopup()
