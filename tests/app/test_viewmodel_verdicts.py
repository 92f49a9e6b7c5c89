"""Verdicts in the Partitions view and on the node, of a program compiled here."""

from __future__ import annotations

from pathlib import Path

import pytest

from devtools_app.viewmodels.node_facts import node_facts
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.graph.model_graph import COMPILED, model_graph
from inspector.tables.partitions import partitions
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.verdicts import OUTCOMES, _sentence, verdict_table
from schema.etrecord.parts.verdicts import NodeOutcome
from schema.graph import NodeKind
from tests.app.sessions import opened

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    import torch

    from compiler import PartitionRules, SteeredPartitioner, to_edge
    from compiler.backends.demo import AddMulPartitionerDemo
    from tests.compiler.delegation import exported

    program = exported(lambda x: (x + x).relu() + x, torch.ones(2, 2))
    rules = PartitionRules(deny_nodes=("aten_add_tensor_1",))
    edge = to_edge(program, generate_etrecord=True)
    made = edge.to_backend(SteeredPartitioner(AddMulPartitionerDemo(), rules)).to_executorch()
    folder: Path = tmp_path_factory.mktemp("verdicts")
    made.save(folder / "model.pte")
    made.get_etrecord().save(folder / "model.etrecord")
    return load_session([str(folder)])


def test_table_lists_every_node_with_its_reason(session: Session) -> None:
    made = partitions(session, "forward")
    assert made is not None
    table = verdict_table(made, None)
    assert table.length == 3
    keys = [key.node for key in table.keys or () if isinstance(key, Selection)]
    assert keys == ["aten_add_tensor", "aten_relu_default", "aten_add_tensor_1"]
    taken = verdict_table(made, 0)
    assert [key.node for key in taken.keys or () if isinstance(key, Selection)] == keys[:1]


@pytest.mark.parametrize(
    ("node", "notice", "words"),
    [
        ("aten_add_tensor", "Delegated to BackendWithCompilerDemo", "one of 1 node "),
        ("aten_relu_default", "No rule for this operator", "is not in the table"),
        ("aten_add_tensor_1", "Vetoed by the user", "the recipe denies aten_add_tensor_1."),
    ],
)
def test_node_says_why(session: Session, node: str, notice: str, words: str) -> None:
    selection = Selection(SelectionKind.NODE, "forward", "compiled", node)
    sheet = node_facts(session, "forward", selection, Units())
    group = next(group for group in sheet.groups if group.notice)
    assert group.notice == notice
    assert words in group.text
    assert any("AddMulPartitionerDemo" in fact.value for fact in group.facts)


def test_record_of_another_compiler_has_no_verdicts() -> None:
    made = partitions(opened("corpus/v1.5.1/tinygpt_xnnpack"), "forward")
    assert made is not None
    assert verdict_table(made, None).length == 0


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("vetoed by the user: aten.mm.default is denied by aten.mm.default", "the recipe denies"),
        ("vetoed by the user: module a.b is denied by a.b", "the recipe denies a.b"),
        ("vetoed by the user: aten.mm.default is denied by aten.*", "aten.mm.default is denied by"),
        ("vetoed by the user: relu is disabled", "relu is disabled"),
        ("dim 3 is not 4", "dim 3 is not 4"),
        ("", ""),
    ],
)
def test_reasons_do_not_say_their_outcome_again(reason: str, said: str) -> None:
    assert _sentence(reason).startswith(said)
    assert "vetoed" not in _sentence(reason)


def test_every_outcome_has_words() -> None:
    assert set(OUTCOMES) == set(NodeOutcome)


@pytest.mark.parametrize(
    "folder", ["corpus/v1.5.1/convnet_portable", "corpus/v1.5.1/tinygpt_xnnpack"]
)
def test_inputs_outputs_and_constants_are_not_said_to_be_left(folder: str) -> None:
    session = opened(folder)
    graph = model_graph(session, "forward", COMPILED)
    assert graph is not None
    told: dict[NodeKind, set[bool]] = {}
    for node in graph.nodes:
        selection = Selection(SelectionKind.NODE, "forward", COMPILED, node.name)
        sheet = node_facts(session, "forward", selection, Units())
        left = any(group.notice == "Not delegated" for group in sheet.groups)
        told.setdefault(node.node.kind, set()).add(left)
    assert told[NodeKind.PLACEHOLDER] == {False}
    assert True in told[NodeKind.CALL]
    assert all(
        told[kind] == {False} for kind in (NodeKind.OUTPUT, NodeKind.GET_ATTR) if kind in told
    )
