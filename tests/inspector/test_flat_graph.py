"""Graphs laid flat, with their branches and bodies."""

from __future__ import annotations

from inspector.numerics.flat_graph import constant_values, flat_graph
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind


def _graph(name: str, inputs: tuple[str, ...], *nodes: GraphNode, **inside: Graph) -> Graph:
    names = {*inputs, *(one for node in nodes for one in (*node.inputs, *node.outputs))}
    values = {one: GraphValue(one) for one in names}
    return Graph(name, nodes, values, inputs, (), inside)


def _node(name: str, *reads: str, subgraphs: tuple[str, ...] = ()) -> GraphNode:
    args = tuple(Argument("", (one,)) for one in reads)
    return GraphNode(name, NodeKind.CALL, "aten::x", args, (name,), subgraphs=subgraphs)


def test_constants_are_what_no_input_reaches() -> None:
    body = _graph("body", ("given",), _node("doubled", "given"), _node("made"), _node("of", "made"))
    graph = _graph(
        "forward",
        ("x",),
        _node("scaled", "weight"),
        _node("folded", "scaled", "bias"),
        _node("zeros"),
        _node("kept", "zeros", "bias"),
        _node("mixed", "folded", "x"),
        _node("loop", "folded", subgraphs=("body",)),
        _node("behind", "mixed"),
        body=body,
    )

    constant = constant_values(flat_graph(graph))

    # A node that makes its values of nothing is an instruction, its zeros are no weights; what a
    # body is given changes from one turn of a loop to the next.
    assert {name for scope, name in constant if not scope} == {
        *("weight", "scaled", "bias", "folded", "loop")
    }
    assert not [name for scope, name in constant if scope]


def test_constants_are_known_of_chains_of_any_length() -> None:
    nodes = [_node("n0", "weight"), *(_node(f"n{i}", f"n{i - 1}") for i in range(1, 5000))]

    assert ((), "n4999") in constant_values(flat_graph(_graph("forward", (), *nodes)))
