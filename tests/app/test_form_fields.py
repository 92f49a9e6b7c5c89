"""One form for Compile and Recipe: names, lists, defaults, and what is wrong, at its field."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QApplication,
    QLabel,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QPushButton,
    QToolButton,
    QWidget,
)

from devtools_app.dialogs.choice_fields import ChoiceBox, NameField
from devtools_app.dialogs.compile_dialog import CompileDialog
from devtools_app.dialogs.list_field import ListField
from devtools_app.dialogs.recipe_fields import RecipeFields
from devtools_app.sample_data import LOOP
from devtools_app.shell.focus_areas import stops as tab_stops
from devtools_app.state.compile_form import CompileForm, form_from, proposed_folder
from devtools_app.state.requests import EditRecipe
from devtools_app.viewmodels import field_choices
from devtools_app.viewmodels.field_choices import FieldChoice, Vocabulary, partitioner_choices
from devtools_app.viewmodels.recipe_form import all_fields
from devtools_app.views.recipe import RecipeView
from inspector.recipes.compile_job import EXECUTORCH, CompileJob, Rules
from inspector.recipes.options import GROUPS
from inspector.recipes.source import Source
from inspector.toolchain.listing import install_of

pytestmark = [
    pytest.mark.gui,
    pytest.mark.slow,
    pytest.mark.qt_log_ignore("This plugin does not support"),  # menus without a screen
]

DEMO = Path(__file__).parents[2] / "devtools_app" / "sample_data" / "demo" / "keyword_spotter"
MODEL = "import torch\n\ndef build():\n    return torch.nn.ReLU(), (torch.ones(2),)\n"
JOB = CompileJob(Source("net.pt2"), partitioners=("xnnpack",))
PATIENCE = 20_000


class Paths:
    """Answers where a person would choose."""

    def __init__(self, *files: str) -> None:
        self.files = files

    def open_files(self, _parent, _title, _filters) -> tuple[str, ...]:
        return self.files

    def open_folder(self, _parent, _title) -> str:
        return next(iter(self.files), "")


@pytest.fixture
def parent(qtbot) -> QWidget:
    found = QLabel()
    qtbot.addWidget(found)
    return found


@pytest.fixture
def dialog(parent, theme):
    shown: list[CompileDialog] = []

    def make(given: CompileForm, *files: str) -> CompileDialog:
        found = CompileDialog(theme, given, Paths(*files), parent)
        shown.append(found)
        found.show()
        return found

    yield make
    for one in shown:
        one.shut_down()


@pytest.fixture
def fields(qtbot, theme):
    def make(*files: str, job: CompileJob = JOB, live: bool = False) -> RecipeFields:
        found = RecipeFields(theme, Paths(*files), live=live)
        qtbot.addWidget(found)
        found.show_job(job)
        found.resize(460, 700)
        found.show()
        return found

    return make


def by_name(root: QWidget, kind: type, name: str):
    return [one for one in root.findChildren(kind) if one.accessibleName() == name][-1]


def problems(root: QWidget) -> list[str]:
    labels = root.findChildren(QLabel)
    red = (one for one in labels if one.objectName().startswith("problem ") and not one.isHidden())
    return [one.text() for one in red]


def edits(form: RecipeFields) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    form.edited.connect(lambda path, value: found.append((path, value)))
    return found


def test_every_field_is_in_a_group_and_has_a_name_of_its_own() -> None:
    labels = [one.label for one in all_fields(JOB)]
    assert len(labels) == len(set(labels))
    assert {"quantize", "deny operators", "min nodes", "precision of nodes"} <= set(labels)
    assert all(label == label.replace("quantis", "quantiz") for label in labels)


def test_dialog_and_panel_have_the_same_fields_and_lists_in_place_of_texts(
    dialog, make_window, qtbot
) -> None:
    window = make_window()
    record = DEMO.with_suffix(".etrecord")
    window.controller.open((str(DEMO / "model.pte"), str(record)))
    qtbot.waitUntil(lambda: window.recipe_store.variant is not None, timeout=PATIENCE)
    window.show_view("recipe")
    panel = next(host.view for host in window.hosts if isinstance(host.view, RecipeView)).fields
    own = dialog(CompileForm()).fields
    paths = [one.path for one in all_fields(JOB)]
    names = [
        [(path, one.widgets[path].accessibleName(), type(one.widgets[path])) for path in paths]
        for one in (panel, own)
    ]
    assert names[0] == names[1]
    for one in (panel, own):
        heads = [b.accessibleName().split(",")[0].split("  ")[0] for b in heads_of(one)]
        assert heads == list(GROUPS)
        assert not one.findChildren(QPlainTextEdit)
        texts = {line.accessibleName() for line in one.findChildren(QLineEdit) if plain(line)}
        assert {name for name in texts if not name.startswith("Value of ")} == {
            *("File", "Interpreter", "Interpreter of backends")
        }
    box = panel.widgets["rules.deny_ops"].adding
    qtbot.waitUntil(lambda: "aten.erf" in choices(box), timeout=PATIENCE)
    assert "conv1d" in choices(panel.widgets["rules.deny_nodes"].adding)
    assert "encoder.0" in choices(panel.widgets["precision.modules"].adding)


def heads_of(form: RecipeFields) -> list[QToolButton]:
    heads = [group.head for group in form._groups.values()]
    assert all(heads)
    return heads


def plain(line: QLineEdit) -> bool:
    return not isinstance(line.parent(), ChoiceBox) and "spinbox" not in line.objectName()


def choices(box: ChoiceBox) -> list[str]:
    box._fill()
    return [str(box.itemData(row)) for row in range(box.count())]


def test_names_are_added_typed_or_chosen_and_removed(fields, qtbot) -> None:
    form = fields()
    found = edits(form)
    form.offer(Vocabulary(operators=("aten.add.Tensor", "aten.mul.Tensor")))
    ops = form.widgets["rules.deny_ops"]
    form._group_of("rules.deny_ops").open()
    box = ops.adding
    assert choices(box) == ["aten.add.Tensor", "aten.mul.Tensor"]
    qtbot.mouseClick(box.lineEdit(), Qt.MouseButton.LeftButton)
    qtbot.keyClicks(box.lineEdit(), "aten.conv*")
    qtbot.keyClick(box.lineEdit(), Qt.Key.Key_Return)
    assert found == [("rules.deny_ops", ("aten.conv*",))]
    assert box.currentText() == ""
    box.activated.emit(box.findData("aten.mul.Tensor"))
    assert ops.values == ("aten.conv*", "aten.mul.Tensor")
    assert choices(box) == ["aten.add.Tensor"]
    remove = by_name(ops, QToolButton, "Remove aten.conv* from deny operators")
    qtbot.mouseClick(remove, Qt.MouseButton.LeftButton)
    assert found[-1] == ("rules.deny_ops", ("aten.mul.Tensor",))
    dtypes = form.widgets["rules.deny_dtypes"].adding
    assert not dtypes.isEditable()
    dtypes.activated.emit(dtypes.findData("float16"))
    assert found[-1] == ("rules.deny_dtypes", ("float16",))


def test_values_of_pairs_are_lists_and_numbers(fields, qtbot) -> None:
    form = fields(job=replace(JOB, backend_config=("joint_arena=true",)))
    found = edits(form)
    config = form.widgets["backend_config"]
    config.adding.activated.emit(config.adding.findData("segment_alignment"))
    assert found[-1][1] == ("joint_arena=true", "segment_alignment=16")
    form._group_of("backend_config").open()
    number = by_name(config, QWidget, "Value of segment_alignment")
    number.setValue(64)
    by_name(config, QWidget, "Value of joint_arena").setCurrentText("false")
    assert found[-1] == ("backend_config", ("joint_arena=false", "segment_alignment=64"))
    types = form.widgets["precision.nodes"]
    form._group_of("precision.nodes").open()
    types.adding.lineEdit().setText("linear_1")
    types.adding.lineEdit().editingFinished.emit()
    by_name(types, QWidget, "Value of linear_1").setCurrentText("bfloat16")
    assert found[-1] == ("precision.nodes", ("linear_1=bfloat16",))
    most = form.widgets["rules.max_partitions"]
    assert most.text() == "any"
    most.setValue(3)
    assert found[-1] == ("rules.max_partitions", 3)


def test_partitioners_are_listed_with_what_they_are_and_ordered(fields, qtbot) -> None:
    form = fields()
    found = edits(form)
    form.offer(Vocabulary(partitioners=partitioner_choices("", "")))
    box = form.widgets["partitioners"].adding
    at = box.findData("demo-all")
    assert "demonstration" in box.itemText(at)
    assert box.findData("xnnpack") < 0  # it is in the recipe
    box.activated.emit(at)
    assert found[-1] == ("partitioners", ("xnnpack", "demo-all"))
    up = by_name(form, QToolButton, "Move demo-all up")
    qtbot.mouseClick(up, Qt.MouseButton.LeftButton)
    assert found[-1] == ("partitioners", ("demo-all", "xnnpack"))
    options = by_name(form, QLineEdit, "Value of xnnpack")
    options.setText("per_op_mode=True")
    options.editingFinished.emit()
    assert found[-1] == ("partitioners", ("demo-all", "xnnpack:per_op_mode=True"))


def test_partitioner_that_is_not_usable_says_why_and_what_installs_it(
    fields, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "ModuleNotFoundError: No module named 'vendorpack.parts'"
    rows = [
        {"alias": "vendor", "summary": "Vendor: cards", "why_not": why, "install": install_of(why)},
        {"alias": "xnnpack", "summary": "x", "why_not": "", "install": ""},
    ]
    monkeypatch.setattr(field_choices, "stock_partitioners", lambda _python: {"partitioners": rows})
    form = fields(job=replace(JOB, partitioners=()))
    form.offer(Vocabulary(partitioners=partitioner_choices(EXECUTORCH, "")))
    box = form.widgets["partitioners"].adding
    at = box.findData("vendor")
    whole = f"vendor  ·  not available here · Vendor: cards · {why}: pip install vendorpack"
    assert box.itemText(at) == whole
    assert not box.model().item(at).isEnabled()
    assert box.model().item(box.findData("xnnpack")).isEnabled()
    assert install_of("ImportError: DLL load failed") == ""


def test_name_in_a_file_is_chosen_from_those_it_defines(fields, qtbot, tmp_path) -> None:
    file = tmp_path / "own.py"
    file.write_text("class One: ...\nclass Two: ...\ndef plan(): ...\n")
    form = fields(str(file))
    found = edits(form)
    box = form.widgets["partitioners"].adding
    box.activated.emit(box.count() - 1)  # From a Python file…
    menu = next(one for one in form.findChildren(QMenu) if one.isVisible())
    assert [action.text() for action in menu.actions()] == ["One", "Two"]
    menu.actions()[1].trigger()
    menu.close()
    assert found[-1] == ("partitioners", ("xnnpack", f"{file}:Two"))
    planner = form.widgets["memory_planner"]
    assert isinstance(planner, NameField)
    assert [planner.itemData(row) for row in range(4)] == ["", "naive", "greedy", "interval"]
    planner.setCurrentIndex(2)
    assert found[-1] == ("memory_planner", "greedy")
    file.write_text("def plan(): ...\n")
    planner.activated.emit(planner.count() - 1)
    assert found[-1] == ("memory_planner", f"{file}:plan")
    assert planner.currentText() == f"{file}:plan"


def test_nothing_is_red_before_input_and_then_at_its_field(dialog, qtbot, tmp_path) -> None:
    shown = dialog(CompileForm(), str(tmp_path / "gone.py"))
    assert (problems(shown), shown.problem) == ([], "")
    assert shown.form().job.partitioners == form_from({}).job.partitioners == ("xnnpack",)
    qtbot.mouseClick(by_name(shown, QPushButton, "Choose: File"), Qt.MouseButton.LeftButton)
    assert problems(shown) == [f"{tmp_path / 'gone.py'}: file not found."]
    assert (shown.problem, shown.runs) == ("", "")  # neither a folder nor a warning is due yet
    own = tmp_path / "own.py"
    own.write_text("class Mine(:\n")
    shown.fields._files._paths.files = (str(own),)
    box = shown.fields.widgets["partitioners"].adding
    box.activated.emit(box.count() - 1)
    assert shown.problem_of("partitioners").startswith(f"{own}:1: SyntaxError: ")
    assert by_name(shown, QPushButton, "Compile").isEnabled() is False


def test_return_in_a_list_adds_and_does_not_compile(dialog, qtbot, tmp_path) -> None:
    model = tmp_path / "model.py"
    model.write_text(MODEL)
    shown = dialog(CompileForm(CompileJob(Source(str(model), "build"))).fresh())
    submitted: list[object] = []
    shown.submitted.connect(submitted.append)
    box = shown.fields.widgets["methods"].adding
    qtbot.mouseClick(box.lineEdit(), Qt.MouseButton.LeftButton)
    qtbot.keyClicks(box.lineEdit(), "forward")
    qtbot.keyClick(box.lineEdit(), Qt.Key.Key_Return)
    assert shown.form().job.methods == ("forward",)
    assert submitted == []
    qtbot.keyClick(shown, Qt.Key.Key_Return)
    assert len(submitted) == 1


def test_folder_is_proposed_beside_the_source_and_none_is_used_twice(dialog, tmp_path) -> None:
    model = tmp_path / "model.py"
    model.write_text(MODEL)
    assert proposed_folder("") == proposed_folder(str(tmp_path / "gone.py")) == ""
    assert proposed_folder(str(model)) == str(tmp_path / "model_build")
    (tmp_path / "model_build").mkdir()
    assert proposed_folder(str(model)) == str(tmp_path / "model_build_2")
    last = CompileForm(CompileJob(Source(str(model), "build")), "/another/model", replace=True)
    fresh = last.fresh()
    assert (fresh.folder, fresh.replace) == (str(tmp_path / "model_build_2"), False)
    shown = dialog(CompileForm())
    shown.fields.widgets["source.path"].setText(str(model))
    assert shown.form().folder == str(tmp_path / "model_build_2")
    assert shown.form().job.source.function == "build"
    assert shown.form().problem() == ""


def test_fields_without_meaning_are_off_in_both_forms(fields) -> None:
    form = fields()
    off = {path for path in form._titles if not form.widgets[path].isEnabled()}
    assert off >= {"source.function", "python", "quantising.calibration", "quantising.nodes"}
    form.show_job(replace(JOB, toolchain=EXECUTORCH))
    assert form.widgets["python"].isEnabled()


@pytest.mark.parametrize("size", [13, 20])
def test_narrow_panel_cuts_neither_fields_nor_buttons(make_window, qtbot, theme, size) -> None:
    window = make_window()
    window.resize(1280, 720)
    record = DEMO.with_suffix(".etrecord")
    window.controller.open((str(DEMO / "model.pte"), str(record)))
    qtbot.waitUntil(lambda: window.recipe_store.variant is not None, timeout=PATIENCE)
    theme.set_size(size)
    window.show_view("recipe")
    view = next(host.view for host in window.hosts if isinstance(host.view, RecipeView))
    QApplication.processEvents()
    for button in view.findChildren(QPushButton):
        if button.isVisible():
            right = button.mapTo(view, button.rect().bottomRight()).x()
            assert right <= view.width(), button.text()
            text = button.fontMetrics().horizontalAdvance(button.text())
            assert button.width() >= text, button.text()
    page = view.fields.widget()
    assert page.width() <= view.fields.viewport().width()
    theme.set_size(13)


def test_edits_have_room_beside_the_button_in_a_small_window(make_window, qtbot) -> None:
    window = make_window()
    window.resize(1100, 700)
    record = DEMO.with_suffix(".etrecord")
    window.controller.open((str(DEMO / "model.pte"), str(record)))
    qtbot.waitUntil(lambda: window.recipe_store.variant is not None, timeout=PATIENCE)
    job = window.recipe_store.job
    window.router(EditRecipe(replace(job, memory_planner="naive")))
    bar = window.top_bar
    qtbot.waitUntil(bar.edits.isVisible, timeout=PATIENCE)
    QApplication.processEvents()
    buttons = [b for b in bar.findChildren(QPushButton) if b.text().startswith("Recompile and run")]
    for button in (*buttons, bar.edits):
        assert button.isVisible()
        assert button.geometry().right() <= bar.width()


def test_list_field_shows_another_recipe(fields) -> None:
    form = fields()
    form.show_job(replace(JOB, rules=Rules(deny_nodes=("a", "b"))))
    nodes = form.widgets["rules.deny_nodes"]
    assert isinstance(nodes, ListField)
    assert nodes.values == ("a", "b")
    form.show_job(JOB)
    assert nodes.values == ()


def test_fields_of_a_closed_group_are_built_when_it_opens(fields, qtbot, theme) -> None:
    form = fields()
    qtbot.waitUntil(lambda: not form._filling.busy)  # the open groups, between events
    closed = {path for path in form._titles if path not in form.widgets}
    assert "precision.nodes" in closed
    assert "partitioners" not in closed
    head = next(one for one in heads_of(form) if one.text().startswith("Precision"))
    qtbot.mouseClick(head, Qt.MouseButton.LeftButton)
    built = closed & set(form.widgets)
    assert built == {path for path in closed if form._titles[path] == "Precision"}
    assert {form._titles[path] for path in closed - built} == {
        title for title, group in form._groups.items() if not group.opened
    }
    job = replace(JOB, rules=Rules(max_partitions=3))
    form.show_job(job)  # shown in a group that is closed: there when it opens
    form.show_problems({"rules.max_partitions": "Too few."}, ask=("rules.max_partitions",))
    assert form.problem("rules.max_partitions") == "Too few."
    assert form.widgets["rules.max_partitions"].value() == 3
    form.show_job(JOB)
    assert form.widgets["rules.max_partitions"].value() == 0


@pytest.fixture
def recipe(make_window, qtbot) -> RecipeView:
    window = make_window()
    window.resize(1280, 800)
    with qtbot.waitSignal(window.controller.opener.ended):
        window.controller.open((LOOP[0], LOOP[1]))
    window.activateWindow()
    window.show_view("recipe")
    view = next(host.view for host in window.hosts if host.spec.name == "recipe")
    qtbot.waitUntil(lambda: bool(view.fields.widgets) and not view.fields._filling.busy)
    qtbot.wait(50)
    return view


def rebuilt_by_nothing(_fields: RecipeFields) -> None:
    """Leave the lines of all lists as they are."""


def rebuilt_by_names(fields: RecipeFields) -> None:
    choice = FieldChoice("another", "of a package that was installed")
    fields.offer(Vocabulary(partitioners=(choice,), operators=("aten.add.Tensor",)))


def rebuilt_by_the_theme(fields: RecipeFields) -> None:
    for one in fields.findChildren(ListField):
        one._rebuild()


REBUILDS = (rebuilt_by_nothing, rebuilt_by_names, rebuilt_by_the_theme)


def key(qtbot, pressed: Qt.Key) -> QWidget:
    focus = QApplication.focusWidget()
    assert focus is not None
    qtbot.keyClick(focus, pressed)
    now = QApplication.focusWidget()
    assert now is not None
    return now


@pytest.mark.slow
@pytest.mark.parametrize("rebuild", REBUILDS)
@pytest.mark.parametrize("steps", range(4))
def test_tab_passes_over_the_fields_of_a_group_and_arrows_go_through_them(
    recipe, qtbot, rebuild, steps: int
) -> None:
    fields = recipe.fields
    rebuild(fields)
    qtbot.wait(10)  # new lines are shown by an event
    assert len(tab_stops(recipe)) <= 20
    heads = heads_of(fields)
    head = next(one for one in heads if one.text().startswith("Partition"))
    head.setFocus()
    first = key(qtbot, Qt.Key.Key_Down)
    assert first is not head
    assert fields.isAncestorOf(first)
    inside = tab_stops(recipe)
    assert first in inside
    assert len(inside) <= 20 + 14  # those of the group are stops now
    seen = [first]
    while (now := key(qtbot, Qt.Key.Key_Tab)) not in heads:
        seen.append(now)
        assert fields.isAncestorOf(now)
        if len(seen) == steps:
            rebuild(fields)
            qtbot.wait(10)
        assert len(seen) < 30
    assert len(seen) > 3
    assert now is heads[heads.index(head) + 1]
    assert len(tab_stops(recipe)) <= 20  # left again
    assert key(qtbot, Qt.Key.Key_Backtab) is head


@pytest.mark.parametrize("pressed", [Qt.Key.Key_Tab, Qt.Key.Key_Backtab])
@pytest.mark.parametrize("path", ["", str(DEMO.with_suffix(".py"))], ids=["empty", "typed"])
@pytest.mark.parametrize("opened", [False, True])
def test_tab_goes_round_the_whole_dialog(dialog, qtbot, path: str, opened: bool, pressed) -> None:
    """No group sends the keyboard back to one before it; *Compile* is reached."""
    shown = dialog(CompileForm())
    if opened:
        for group in shown.fields._groups.values():
            group.open()
    if path:
        by_name(shown, QLineEdit, "File").setText(path)
        qtbot.waitUntil(lambda: by_name(shown, QPushButton, "Compile").isEnabled())
    qtbot.wait(50)
    order = tab_stops(shown)
    assert any(isinstance(one, QPushButton) and one.text() == "Cancel" for one in order)
    order[0].setFocus()
    seen = [order[0]]
    while (now := key(qtbot, pressed)) is not order[0]:
        seen.append(now)
        assert len(seen) <= len(order)
    assert seen == (order if pressed == Qt.Key.Key_Tab else [order[0], *order[:0:-1]])
