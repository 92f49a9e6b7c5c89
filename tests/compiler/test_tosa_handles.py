"""Debug handles of TOSA operators, and of the same graphs behind VGF's converter."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from compiler.backends.tosa_handles import WrittenTosa, handles_of_copy, handles_of_moved
from schema import payloads
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.payloads import Payload
from schema.payloads.nested import nested_calls
from schema.program import decode
from tests.conftest import DATA


def _payload(name: str) -> Payload:
    program = decode((DATA / f"backends/{name}.pte").read_bytes())
    delegate = program.plans[0].delegates[0]
    return payloads.decode(delegate.id, program.delegate_data(delegate))


@pytest.mark.parametrize("name", ["conv", "shapes"])
def test_each_operator_behind_the_converter_has_the_handle_of_its_own(name: str) -> None:
    written, made = _payload(f"tosa_{name}"), _payload(f"vgf_{name}")
    assert written.graph is not None
    assert made.graph is not None
    places = {label: place for place, (label, _) in enumerate(nested_calls(written.graph))}
    own = {label: (place,) for label, place in places.items()}
    found = handles_of_copy(own, written, made)
    kinds = [node.target for _, node in nested_calls(written.graph)]
    for node in made.graph.calls():
        assert {kinds[place] for place in found[node.name]} == {node.target}


def test_another_graph_has_no_handles() -> None:
    written, other = _payload("tosa_attention"), _payload("vgf_quantized_int8")
    assert written.graph is not None
    own = {label: (1,) for label, _ in nested_calls(written.graph)}
    found = handles_of_copy(own, written, other)
    assert other.graph is not None
    assert len(found) < len(other.graph.calls()) // 4


def test_handles_go_by_the_tensor_that_an_operator_writes() -> None:
    program = decode((DATA / "backends/tosa_m1.pte").read_bytes())
    data = bytes(program.delegate_data(program.plans[0].delegates[0]))
    graph = payloads.decode("TOSABackend", memoryview(data)).graph
    assert graph is not None
    convolution = next(node for node in graph.calls() if node.target == "CONV2D")
    found = WrittenTosa({convolution.outputs[0]: (7,)}, data)
    assert found.of_payload("TOSABackend", data) == {convolution.name: (7,)}
    assert found.of_payload("EthosUBackend", b"a command stream") == {convolution.name: (7,)}
    assert WrittenTosa().of_payload("TOSABackend", data) is None


def _chain(kinds: tuple[str, ...]) -> Graph:
    """Return a graph in which each operator reads the one before it."""
    names = [f"v{place}" for place in range(len(kinds) + 1)]
    nodes = tuple(
        GraphNode(
            f"{kind}_{place}",
            NodeKind.CALL,
            kind,
            (Argument("", (names[place],)),),
            (names[place + 1],),
        )
        for place, kind in enumerate(kinds)
    )
    return Graph("main", nodes, {name: GraphValue(name) for name in names}, ("v0",))


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    ("kinds", "given", "wanted"),
    [
        ("CONV2D TRANSPOSE", "3 3", "3 3"),
        ("CONV2D ADD TRANSPOSE", "3 4 3", "3 4 4"),  # behind the sum that reads it
        ("CONV2D RESHAPE MUL RESHAPE ADD", "7 7 8 7 9", "7 7 8 8 9"),
        ("CONV2D SIGMOID MUL TRANSPOSE RESHAPE", "1 2 3 1 1", "1 2 3 3 3"),
        ("CONV2D ADD TRANSPOSE CONV2D", "3 4 5 5", "3 4 5 5"),  # the layout of the next layer
        ("MUL RESHAPE REDUCE_SUM RESHAPE", "1 2 2 2", "1 2 2 2"),
        ("CONV2D ADD MUL", "3 4 3", "3 4 3"),  # it computes
        ("CONV2D ADD TRANSPOSE", "3 - 3", "3 - 3"),
        ("RESHAPE ADD", "1 2", "1 2"),
    ],
)
def test_what_moves_elements_has_the_handle_of_the_value_that_it_moves(
    kinds: str, given: str, wanted: str, nested: bool
) -> None:
    graph = _chain(tuple(kinds.split()))
    labels = [node.name for node in graph.nodes]
    if nested:
        graph = Graph("main", (), {}, subgraphs={"COND_IF_0/1": graph})
        labels = [f"COND_IF_0/1/{label}" for label in labels]
    own, expected = (
        {label: (int(one),) for label, one in zip(labels, text.split(), strict=True) if one != "-"}
        for text in (given, wanted)
    )
    assert handles_of_moved(own, graph) == expected


def _payload_of(calls: Sequence[tuple[str, str, str, tuple[int, ...]]], prefix: str) -> Payload:
    """Return a payload of calls: kind, result, what it reads, sizes; names begin with a prefix."""
    nodes = tuple(
        GraphNode(
            f"{prefix}{result}",
            NodeKind.CALL,
            kind,
            tuple(Argument("", (f"{prefix}{name}",)) for name in read.split()),
            (f"{prefix}{result}",),
        )
        for kind, result, read, _ in calls
    )
    values = {
        f"{prefix}{name}": GraphValue(f"{prefix}{name}", TensorMeta(6, sizes))
        for name, sizes in (("x", (4, 6)), *((result, sizes) for _, result, _, sizes in calls))
    }
    graph = Graph("main", nodes, values, (f"{prefix}x",), (f"{prefix}{calls[-1][1]}",))
    return Payload("TOSABackend", "TOSA", 0, graph)


_BEGIN = [("EXP", "e", "x", (4, 6)), ("ADD", "s", "e x", (4, 6))]
_END = [
    ("MUL", "m", "t x", (4, 6)),
    ("EXP", "f", "m", (4, 6)),
    ("ADD", "r", "f m", (4, 6)),
    ("ADD", "w", "r x", (4, 6)),
    ("EXP", "z", "w", (4, 6)),
]


@pytest.mark.parametrize(
    ("written", "made", "without"),
    [
        ("EXP:t:s:4,6", "EXP:t:s:4,6", ""),
        # reshapes that follow each other become one
        ("RESHAPE:a:s:24 RESHAPE:b:a:3,8 RESHAPE:t:b:4,6", "RESHAPE:t:s:4,6", ""),
        ("RESHAPE:a:s:24 RESHAPE:b:a:3,8 TANH:t:b:4,6", "RESHAPE:b:s:3,8 TANH:t:b:4,6", ""),
        # another operator: what is behind it is found by kind and operands
        ("TANH:t:s:4,6", "TABLE:t:s:4,6", "t"),
        ("TANH:a:s:4,6 TANH:t:a:4,6", "TABLE:t:s:4,6", "t"),
        ("TANH:t:s:4,6", "TABLE:a:s:4,6 RESCALE:t:a:4,6", "a t"),
    ],
)
def test_what_is_behind_a_simplification_is_known_again(
    written: str, made: str, without: str
) -> None:
    def calls(text: str) -> list[tuple[str, str, str, tuple[int, ...]]]:
        parts = [one.split(":") for one in text.split()]
        middle = [
            (kind, name, read, tuple(map(int, sizes.split(","))))
            for kind, name, read, sizes in parts
        ]
        return [*_BEGIN, *middle, *_END]

    theirs, own = _payload_of(calls(written), ""), _payload_of(calls(made), "c_")
    assert theirs.graph is not None
    handles = {node.name: (place,) for place, node in enumerate(theirs.graph.nodes)}
    found = handles_of_copy(handles, theirs, own)
    names = [name for _, name, _, _ in calls(made) if name not in without.split()]
    assert found == {f"c_{name}": handles[name] for name in names}


def test_operators_that_may_be_two_have_no_handle() -> None:
    """Two sums of the same shape behind what the converter has replaced by something else."""
    both = [("ADD", "a", "t x", (4, 6)), ("ADD", "b", "u x", (4, 6)), ("MUL", "c", "a b", (4, 6))]
    before = [("TANH", "t", "x", (4, 6)), ("SIGMOID", "u", "x", (4, 6))]
    after = [("TABLE", "t", "x", (4, 6)), ("TABLE", "u", "x", (4, 6))]
    theirs, own = _payload_of([*before, *both], ""), _payload_of([*after, *both], "c_")
    assert theirs.graph is not None
    handles = {node.name: (place,) for place, node in enumerate(theirs.graph.nodes)}
    assert handles_of_copy(handles, theirs, own) == {"c_c": handles["c"]}
