"""Steps of payloads with the debug handle of another layer, to which passes have moved them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inspector.numerics.contradictions import without_contradictions
from inspector.numerics.flat_graph import FlatGraph, flat_graph
from inspector.numerics.grades import DELEGATE_ID, FLOW, HANDLE, ORDER
from inspector.numerics.shared_handles import DelegateEvent
from schema.graph import Argument, Graph, GraphNode, NodeKind

_CELLS = 3


def _recorded(activation: str, *, moved: bool) -> FlatGraph:
    """Return cells of a sum and an activation, between which elements may be moved."""
    nodes: list[GraphNode] = []
    last = "x"
    for cell in range(_CELLS):
        for name in ("add", *(["permute_copy"] if moved else []), activation):
            own = f"{name}_{cell}"
            nodes.append(
                GraphNode(
                    own,
                    NodeKind.CALL,
                    f"aten.{name}.default",
                    args=(Argument("", (last,)),),
                    outputs=(own,),
                )
            )
            last = own
    return flat_graph(Graph("", tuple(nodes), {}, ("x",), (last,)))


def _event(kind: str, cell: int, reads: str, node: str, grade: str) -> DelegateEvent:
    name = f"{kind}_{cell}"
    return DelegateEvent(name, (node,), grade, (), kind, (reads,), (f"of {name}",))


@pytest.mark.parametrize("grade", [FLOW, HANDLE])
@pytest.mark.parametrize("reshaped", [False, True])
@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("shift", [-1, 0, 1])
@pytest.mark.parametrize(("activation", "kind"), [("tanh", "TANH"), ("relu", "CLAMP")])
def test_an_activation_of_another_cell_is_doubted(
    activation: str, kind: str, shift: int, moved: bool, reshaped: bool, grade: str
) -> None:
    """It reads the sum of its own; what lies between has no event. The sum ends in a reshape."""
    graph = _recorded(activation, moved=moved)
    matched: dict[str, DelegateEvent] = {}
    events: list[DelegateEvent] = []
    for cell in range(_CELLS):
        before = f"of {kind}_{cell - 1}" if cell else "x"
        own = _event("ADD", cell, before, f"add_{cell}", FLOW)
        steps = [own, _event("RESHAPE", cell, own.writes[0], "", FLOW)] if reshaped else [own]
        matched[f"add_{cell}"] = replace(own, name=steps[-1].name)
        events += steps
        if 0 <= cell + shift < _CELLS:
            node = f"{activation}_{cell + shift}"
            matched[node] = _event(kind, cell, steps[-1].writes[0], node, grade)
            events.append(matched[node])
    found = without_contradictions(graph, graph.nodes, matched, events)
    for name, event in found.items():
        if name.startswith(activation):
            assert event.grade == (ORDER if shift else grade)
            assert replace(event, grade=grade) == matched[name]
        elif not shift:
            assert event == matched[name]


@pytest.mark.parametrize("view", ["unsqueeze_copy", "view_copy", "squeeze_copy"])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("moved", [False, True])
def test_view_that_is_moved_in_front_of_an_activation_does_not_have_its_value(
    moved: bool, known: bool, view: str
) -> None:
    """The payload reshapes its input and clamps that; what the input is, its call shows."""
    nodes = [
        GraphNode(name, NodeKind.CALL, f"aten.{name}.default", (Argument("", (read,)),), (name,))
        for name, read in (("clamp", "x"), (view, "clamp"))
    ]
    graph = flat_graph(Graph("", tuple(nodes), {}, ("x",), (view,)))
    first = _event("RESHAPE", 0, "in" if moved else "of CLAMP_0", view, HANDLE)
    clamp = _event("CLAMP", 0, first.writes[0] if moved else "in", "clamp", HANDLE)
    border = {"in": ((), "x")} if known else {}
    matched = {"clamp": clamp, view: first}
    found = without_contradictions(graph, graph.nodes, matched, [first, clamp], border)
    assert found["clamp"].grade == HANDLE
    assert found[view].grade == (ORDER if moved and known else HANDLE)


def test_view_that_is_one_step_with_what_it_reads_is_not_doubted() -> None:
    nodes = [
        GraphNode(name, NodeKind.CALL, f"aten.{name}.default", (Argument("", (read,)),), (name,))
        for name, read in (("permute_copy", "x"), ("view_copy", "permute_copy"))
    ]
    graph = flat_graph(Graph("", tuple(nodes), {}, ("x",), ("view_copy",)))
    step = replace(_event("RESHAPE", 0, "in", "", HANDLE), nodes=("permute_copy", "view_copy"))
    matched = dict.fromkeys(step.nodes, step)
    border = {"in": ((), "x")}
    assert without_contradictions(graph, graph.nodes, matched, [step], border) == matched


def test_what_a_compiler_has_noted_is_not_doubted() -> None:
    graph = _recorded("tanh", moved=False)
    own = _event("ADD", 0, "x", "add_0", FLOW)
    other = _event("TANH", 0, own.writes[0], "tanh_1", DELEGATE_ID)
    matched = {"add_0": own, "tanh_1": other}
    assert without_contradictions(graph, graph.nodes, matched, [own, other]) == matched
