"""The nodes of an instruction: those of its handle whose operator it computes, others not."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.graph.model_graph import model_graph
from inspector.join.node_index import base_operator
from inspector.profile.join_index import join_index
from schema.program import instructions, operator_name
from schema.program import model as m
from tests.inspector.sessions import DATA, folders, label, session

RECORDED = folders("model.pte", "model.etrecord")


@pytest.mark.parametrize("path", RECORDED, ids=label)
def test_node_of_a_kernel_call_has_its_operator(path: Path) -> None:
    found = session(path)
    for method in found.methods:
        graph, index = model_graph(found, method), join_index(found, method)
        assert graph is not None
        plan = found.program.plan(method)
        for step, (_, _, instruction) in enumerate(instructions(plan)):
            names = index.instruction_nodes.get(step, ())
            if not isinstance(instruction.instr_args, m.KernelCall) or len(names) != 1:
                continue
            target = graph.nodes[graph.by_name[names[0]]].node.target
            called = base_operator(operator_name(plan, instruction.instr_args))
            assert _alone(base_operator(target)) == _alone(called), (step, names)


def _alone(operator: str) -> str:
    """Return an operator without its namespace: one on sizes has another in a graph."""
    return operator.rpartition("::")[2]


@pytest.mark.parametrize(
    ("folder", "nodes"),
    [
        ("corpus/v1.5.1/convnet_portable", ("aten_permute_copy_default", "aten_addmm_default")),
        ("extra/deep_mlp", ("aten_permute_copy_default", "aten_addmm_default")),
        ("extra/dynamic_rows", ("aten_permute_copy_default", "aten_addmm_default")),
    ],
)
def test_nodes_of_one_handle_have_their_own_instruction_and_time(
    folder: str, nodes: tuple[str, str]
) -> None:
    index = join_index(session(DATA / folder), "forward")
    first, second = (index.of_node(node) for node in nodes)
    assert len(first.instructions) == len(second.instructions) == 1
    assert first.instructions != second.instructions
    assert first.events
    assert not set(first.events) & set(second.events)
    assert index.of_instruction(first.instructions[0]).nodes == nodes[:1]


@pytest.mark.parametrize("path", RECORDED, ids=label)
def test_events_of_a_node_are_of_its_instruction(path: Path) -> None:
    """Nodes inside of a delegate and outside may share a handle: each has events of its own."""
    found = session(path)
    for method in found.methods:
        index = join_index(found, method)
        for name, steps in index.node_instructions.items():
            for event in index.of_node(name).events:
                assert index.event_instruction[event] in steps, (name, event)
        for event, names in index.event_nodes.items():
            step = index.event_instruction[event]
            for name in names:
                assert step in index.node_instructions.get(name, (step,)), (name, event)
