"""The stages of a compile in the window: a list, what each did, and the way to other views."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QPushButton

from devtools_app.sample_data import LOOP
from devtools_app.shell.window import MainWindow
from devtools_app.views.stages import StagesPane
from inspector import table
from inspector.files.load import load_session
from inspector.files.stage_log import (
    CALL_DELEGATE,
    STAGES,
    StageChange,
    StageLog,
    StageNode,
    Step,
    changed,
)
from inspector.graph.model_graph import COMPILED, model_graph
from inspector.tables.selection import Selection, SelectionKind
from inspector.tables.stage_steps import (
    ALL,
    CHANGED,
    Steps,
    node_table,
    rows_of,
    step_summary,
    step_table,
    steps_of,
)

DATA = Path(__file__).parents[1] / "data" / "corpus" / "v1.5.1" / "convnet_portable"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a program, its record, and stages made up for it."""
    made = tmp_path_factory.mktemp("stages")
    for name in ("model.pte", "model.etrecord"):
        shutil.copy(DATA / name, made / name)
    (made / STAGES).write_text(json.dumps(stages(made).content()), "utf-8")
    return made


def stages(folder: Path) -> StageLog:
    """Return stages that end in the recorded graph: an export, its lowering, two passes."""
    session = load_session([str(folder / "model.pte"), str(folder / "model.etrecord")])
    graph = model_graph(session, "forward", COMPILED)
    assert graph is not None
    names = [node.node.name for node in graph.nodes if node.node.name.startswith("aten_")]
    exported = tuple(StageNode(f"x_{name}", "aten.x") for name in names)
    edge = tuple(StageNode(name, "aten.edge", "float32[2]", at) for at, name in enumerate(names, 1))
    more = (*edge, StageNode("extra", "aten.clone.default"))
    lowered = changed(exported, edge, {name: [f"x_{name}"] for name in names})
    steps = (
        Step("export", "forward", 3.0, None, 0, len(exported)),
        Step("edge", "forward", 2.0, 0, 1, len(edge), lowered),
        Step("pass Nothing", "forward", 0.5, 1, 1, len(edge), StageChange(len(edge))),
        Step("pass Clone", "forward", 0.5, 1, 2, len(more), changed(edge, more, {})),
        Step("emit", "forward", 0.25),
    )
    data = (folder / "model.pte").read_bytes()
    return StageLog(steps, (exported, edge, more), "", hashlib.sha256(data).hexdigest())


@pytest.mark.slow
def test_tables_tell_what_each_stage_did(folder: Path) -> None:
    session = load_session([str(folder)])
    steps = steps_of(session)
    assert steps.log is not None
    table = step_table(steps.log)
    count = steps.log.steps[0].nodes or 0
    found = [[table.text(row, column) for column in (0, 3, 4, 5)] for row in range(table.length)]
    assert found == [
        ["export", str(count), "", ""],
        ["edge", str(count), str(count), str(count)],
        ["pass Nothing", str(count), "0", "0"],
        ["pass Clone", str(count + 1), "1", "0"],
        ["emit", "", "", ""],
    ]
    assert step_summary(steps.log, 2) == f"nothing changed; {count} kept"
    assert step_summary(steps.log, 3) == f"1 added; {count} kept"
    assert step_summary(steps.log, 4) == "has no graph"
    added = node_table(steps, 3, CHANGED)
    assert [added.text(0, column) for column in range(3)] == ["added", "", "extra"]
    assert node_table(steps, 3, ALL).length == count + 1
    assert node_table(steps, 2, CHANGED).length == 0
    assert node_table(steps, 4, ALL).length == 0


def test_a_delegated_node_has_its_own_value_in_short_words() -> None:
    conv = StageNode("conv", "aten.conv2d.default", "float32[1, 8, 4, 4]", 1, "/nets/net.py:3")
    edge = StageNode("edge", "aten.convolution.default", "float32[1, 8, 4, 4]", 1, "/nets/net.py:3")
    call = StageNode("call", CALL_DELEGATE, "float32[2], int64[3]", 1)
    lowered = changed((conv,), (edge,), {"edge": ["conv"]})
    taken = changed((edge,), (call,), {"call": ["edge"]})
    steps = (
        Step("export", "forward", 1.0, None, 0, 1),
        Step("edge", "forward", 1.0, 0, 1, 1, lowered),
        Step("delegate", "forward", 1.0, 1, 2, 1, taken),
    )
    log = StageLog(steps, ((conv,), (edge,), (call,)), "", "")
    first, second = (node_table(Steps(log, "", {}), number, CHANGED) for number in (1, 2))
    shown = [[one.text(0, column) for column in range(6)] for one in (first, second)]
    value = "f32 [1, 8, 4, 4]"
    assert shown == [
        ["replaced", "conv", "edge", value, "conv2d → convolution", "net.py:3"],
        ["delegated", "edge", "call", value, "convolution → call_delegate", "net.py:3"],
    ]
    assert first.columns[4].exact(first.columns[4].values[0]) == (
        "aten.conv2d.default → aten.convolution.default"
    )


def test_nodes_of_all_stages_are_one_table(folder: Path) -> None:
    steps = steps_of(load_session([str(folder)]))
    assert steps.log is not None
    frame = table(folder, "stage-nodes", dataframe=True)
    found = {
        stage: len(frame[frame["stage"] == stage]) for stage in ("edge", "pass Nothing", "emit")
    }
    count = node_table(steps, 1, CHANGED).length
    assert found == {"edge": count, "pass Nothing": 0, "emit": 0}
    only = table(folder, "stage-nodes", filter="extra", columns="stage,change,after")
    assert only.dataframe().values.tolist() == [["pass Clone", "added", "extra"]]


def test_rows_of_every_stage_lead_to_the_same_node(folder: Path) -> None:
    steps = steps_of(load_session([str(folder)]))
    assert steps.log is not None
    keys = [
        [key for key in node_table(steps, at, ALL).keys or () if isinstance(key, Selection)]
        for at in range(4)
    ]
    assert keys[0]
    assert keys[0] == keys[1] == keys[2] == keys[3]
    assert all(key.kind is SelectionKind.NODE and key.graph == COMPILED for key in keys[0])
    assert rows_of(node_table(steps, 0, ALL), [keys[0][1].node]) == [1]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no stages.json"),
        (b"{}", "of version 1"),
        (b"other", "belongs to another compile"),
    ],
)
def test_stages_that_are_not_there_say_why(
    folder: Path, tmp_path: Path, content: bytes | None, words: str
) -> None:
    shutil.copy(folder / "model.pte", tmp_path / "model.pte")
    if content == b"other":
        other = replace(stages(folder), program_sha256="0")
        content = json.dumps(other.content()).encode()
    if content is not None:
        (tmp_path / STAGES).write_bytes(content)
    found = steps_of(load_session([str(tmp_path / "model.pte")]))
    assert found.log is None
    assert words in found.why


def test_session_without_program_or_record_has_no_stages() -> None:
    found = steps_of(load_session([str(next(DATA.glob("*.etdp")))]))
    assert (found.log, found.names) == (None, {})
    assert found.why


@pytest.mark.gui
@pytest.mark.slow
def test_view_shows_stages_and_selects_nodes_in_other_views(
    make_window, qtbot, folder: Path
) -> None:
    window: MainWindow = make_window()
    files = [str(folder / name) for name in ("model.pte", "model.etrecord")]
    window.controller.open(tuple(files))
    qtbot.waitUntil(lambda: window.store.state.session is not None, timeout=20_000)
    window.store.update(view="stages")
    qtbot.waitUntil(lambda: window.findChild(StagesPane) is not None, timeout=20_000)
    pane = window.findChild(StagesPane)
    assert isinstance(pane, StagesPane)
    qtbot.waitUntil(lambda: pane.nodes.rows.length > 0, timeout=20_000)
    assert pane.stages.current_row() == 1  # the first that changed something
    assert pane.note.text().startswith("edge forward: ")
    pane.nodes.step(1)
    qtbot.waitUntil(lambda: bool(window.store.state.selection), timeout=20_000)
    selected = window.store.state.selection
    assert (selected.kind, selected.graph) == (SelectionKind.NODE, COMPILED)
    assert pane.step(2)
    qtbot.waitUntil(lambda: pane.nodes.rows.length == 1, timeout=20_000)
    assert pane.nodes.rows.text(0, 2) == "extra"
    pane.which.setCurrentIndex(1)
    pane.which.activated.emit(1)
    qtbot.waitUntil(lambda: pane.nodes.rows.length > 1, timeout=20_000)
    row = pane.nodes.rows.keys.index(selected) if pane.nodes.rows.keys else -1
    assert row in rows_of(pane.nodes.rows, [selected.node])


@pytest.mark.gui
@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False], ids=["recipe", "no recipe"])
def test_page_without_stages_has_the_command_of_this_program(
    make_window, qtbot, tmp_path: Path, known: bool
) -> None:
    shutil.copytree(LOOP[0], tmp_path / "net", ignore=shutil.ignore_patterns(STAGES, "recipe.json"))
    record = shutil.copy(LOOP[1], tmp_path / "my net.etrecord") if known else ""
    window: MainWindow = make_window()
    window.controller.open(tuple(filter(None, (str(tmp_path / "net/model.pte"), str(record)))))
    qtbot.waitUntil(lambda: window.store.state.session is not None, timeout=20_000)
    window.show_view("stages")
    pane = window.findChild(StagesPane)
    assert isinstance(pane, StagesPane)
    qtbot.waitUntil(lambda: pane.empty.action is not None, timeout=20_000)
    (copy,) = (one for one in pane.empty.findChildren(QPushButton) if one.text() == "Copy")
    qtbot.waitUntil(lambda: not copy.isHidden(), timeout=20_000)
    copy.click()
    words = shlex.split(QApplication.clipboard().text())
    source = ["--recipe", str(record)] if known else ["model.py:build"]
    assert words == ["etscope", "compile", *source, "--stages", "-o", "stages"]
    action = pane.empty.action
    assert action is not None
    assert action.text() == ("Recompile and run" if known else "Compile…")
