"""Values of nodes that share handles with several steps of a payload, where one is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inspector.numerics.flat_graph import FlatGraph, FlatNode
from inspector.numerics.fused_nodes import with_fused
from inspector.numerics.group_exits import with_group_values
from inspector.numerics.shared_handles import DelegateEvent
from schema.etdump import DebugTensor
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind, TensorMeta

FLOAT, CHAR = 6, 1  # scalar types
GROUP = ("conv", "norm")
Spec = tuple[str, tuple[str, ...]]
CHAIN: dict[str, Spec] = {
    "before": ("aten::tanh", ("x",)),
    "conv": ("aten::convolution", ("before",)),
    "norm": ("aten::batch_norm", ("conv",)),
    "behind": ("aten::relu", ("norm",)),
}


def _graph(specs: dict[str, Spec], results: tuple[str, ...] = ("behind",)) -> FlatGraph:
    nodes = tuple(
        FlatNode(
            place,
            (),
            GraphNode(
                name, NodeKind.CALL, operator, tuple(Argument("", (r,)) for r in reads), (name,)
            ),
            tuple(((), one) for one in reads),
            operator,
        )
        for place, (name, (operator, reads)) in enumerate(specs.items())
    )
    users: dict[tuple[tuple[str, ...], str], tuple[FlatNode, ...]] = {}
    for node in nodes:
        for value in node.reads:
            users[value] = (*users.get(value, ()), node)
    meta = {
        ((), name): GraphValue(name, TensorMeta(CHAR if name[0] == "q" else FLOAT, (2, 8)))
        for name in specs
    }
    producers = {node.writes[0]: (node, 0) for node in nodes}
    inside = Graph("delegate", (), {}, (), ())
    left = frozenset(((), name) for name in results)
    return FlatGraph(inside, nodes, producers, meta, users, left, (), {(): ""})


def _step(
    name: str, reads: str, nodes: tuple[str, ...] = GROUP, code: int = FLOAT, size: int = 8
) -> DelegateEvent:
    logged = DebugTensor(scalar_type=code, sizes=(2, size), strides=(), offset=0)
    return DelegateEvent(name, nodes, "", ((logged,),), name, tuple(reads.split()), (name,))


STEPS = [
    _step("TANH", "x", ("before",)),
    _step("SLICE", "TANH"),
    _step("CONV", "SLICE"),
    _step("CONCAT", "CONV"),
    _step("CLAMP", "CONCAT", ("behind",)),
]


def _known(
    graph: FlatGraph, events: list[DelegateEvent], *matched: str, suffixes: tuple[str, ...] = ()
) -> dict[str, tuple[str, tuple[str, ...]]]:
    names = [node.node.name for node in graph.nodes]
    shared = {name for event in events for name in event.nodes if len(event.nodes) > 1}
    alone = {event.nodes[0]: event for event in events if len(event.nodes) == 1}
    given = {name: alone[name] for name in names if name in alone} | {
        name: replace(STEPS[0], name="known", nodes=(name,)) for name in matched
    }
    found = with_group_values(graph, graph.nodes, given, shared - set(matched), events, suffixes)
    return {n: (e.name, e.nodes) for n, e in found.items() if n not in given}


def test_value_that_alone_leaves_a_group_is_that_of_its_last_node() -> None:
    assert _known(_graph(CHAIN), STEPS) == {"norm": ("CONCAT", GROUP)}
    assert _known(_graph(CHAIN), STEPS, "conv") == {"norm": ("CONCAT", ("norm",))}


@pytest.mark.parametrize(
    "changed",
    [
        {4: _step("CLAMP", "CONV", ("behind",))},  # who is behind reads another one
        {4: _step("CLAMP", "CONV CONCAT", ("behind",))},  # two leave
        {3: _step("CONCAT", "CONV", size=4)},  # another size
        {3: _step("CONCAT", "CONV", code=CHAR)},  # integers for a real value
        {2: _step("CONV", "SLICE"), 3: _step("CONCAT", "SLICE")},  # one is read by nobody
    ],
    ids=["earlier", "two", "size", "dtype", "unread"],
)
def test_value_that_may_be_another_one_is_not_taken(changed: dict[int, DelegateEvent]) -> None:
    events = [changed.get(place, step) for place, step in enumerate(STEPS)]
    assert _known(_graph(CHAIN), events) == {}


@pytest.mark.parametrize(
    ("specs", "results"),
    [
        ({"other": ("aten::add", ("conv",))}, ("behind", "other")),
        ({}, ("behind", "conv")),
    ],
    ids=["reader", "result"],
)
def test_group_that_two_values_leave_tells_none(
    specs: dict[str, Spec], results: tuple[str, ...]
) -> None:
    assert _known(_graph(CHAIN | specs, results), STEPS) == {}


def test_nodes_that_compute_the_same_from_the_same_have_one_value() -> None:
    group = ("quantize", "first", "second")
    specs: dict[str, Spec] = {
        "quantize": ("quantize", ("x",)),
        "first": ("dequantize", ("quantize",)),
        "second": ("dequantize", ("quantize",)),
        "behind": ("aten::add", ("first", "second")),
    }
    steps = [
        _step("Q", "x", group, CHAR),
        _step("DQ", "Q", group),
        _step("ADD", "DQ", ("behind",)),
    ]
    found = _known(_graph(specs), steps)
    assert found == {"first": ("DQ", ("first",)), "second": ("DQ", ("quantize", "second"))}
    specs["second"] = ("another", ("quantize",))
    assert _known(_graph(specs), steps) == {}


@pytest.mark.parametrize("suffixes", [(), ("_half",)])
@pytest.mark.parametrize("written", ["conv", "conv_half", "conv_other"])
def test_value_with_the_name_of_a_node_is_its(written: str, suffixes: tuple[str, ...]) -> None:
    events = [STEPS[0], _step("SLICE", "TANH"), _step(written, "SLICE"), *STEPS[3:4]]
    events[3] = replace(events[3], reads=(written,))
    found = _known(_graph(CHAIN, ("behind", "conv")), events, suffixes=suffixes)
    named = written == "conv" or (suffixes and written == "conv_half")
    assert found == ({"conv": (written, ("conv",))} if named else {})


def test_name_of_a_node_that_an_event_has_no_handle_of_is_not_its() -> None:
    events = [*STEPS[:2], _step("norm", "SLICE", ("before", "conv")), *STEPS[3:]]
    assert "norm" not in _known(_graph(CHAIN, ("behind", "conv")), events)


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("other", ["aten::mul", "aten::add", "aten::rand"])
def test_node_that_a_compiler_has_merged_with_another_has_its_value(
    other: str, between: bool
) -> None:
    """Its reader, whose value has its name, reads that of the other; constants may be copies."""
    specs: dict[str, Spec] = {
        "mul": ("aten::rand" if other == "aten::rand" else "aten::mul", ("x", "one")),
        "again": (other, ("x", "another")),
        "cast": ("aten::cast", ("again",)),
    }
    cast = [_step("cast", "step" if between else "mul", ("cast",))]
    steps = [_step("mul", "x", ("mul",)), *([_step("step", "mul", ("cast",))] if between else [])]
    found = _known(_graph(specs, ("cast",)), [*steps, *cast])
    assert found == ({"again": ("mul", ("again",))} if other == "aten::mul" else {})


def test_equal_calls_on_equal_values_are_one_value() -> None:
    specs: dict[str, Spec] = {
        "first": ("aten::cast", ("one",)),
        "second": ("aten::cast", ("one",)),
        "mul": ("aten::mul", ("x", "first")),
        "again": ("aten::mul", ("x", "second")),
        "other": ("aten::mul", ("second", "x")),
    }
    found = _known(_graph(specs, ("mul",)), [_step("mul", "x", ("mul",))])
    assert found == {"again": ("mul", ("again",))}


def test_numbered_result_of_an_operator_is_no_node_of_that_name() -> None:
    """Core ML numbers the results of a split as the record numbers its splits."""
    graph = _graph({"split": ("aten::split", ("x",)), "split_1": ("aten::split", ("y",))})
    names = ("split", "split_1")
    several = replace(_step("a", "x", names), writes=("split_0", "split_1", "split_2"))
    alone = replace(_step("b", "y", names), writes=("split_1",))
    assert with_group_values(graph, graph.nodes, {}, set(names), [several]) == {}
    found = with_group_values(graph, graph.nodes, {}, set(names), [several, alone])
    assert {name: one.name for name, one in found.items()} == {"split_1": "b"}


@pytest.mark.parametrize(
    ("operator", "last"), [("aten::relu", "behind"), ("aten::convolution", "before")]
)
def test_convolution_is_never_part_of_the_step_before_it(operator: str, last: str) -> None:
    """One without a step of its own is in that of the norm behind it."""
    graph = _graph({"before": ("aten::hardswish", ("x",)), "behind": (operator, ("before",))})
    event = _step("MUL", "x", ("before",))
    found = with_fused(graph, graph.nodes, {"before": event}, [event])
    assert {one.nodes[-1] for one in found.values()} == {last}


@pytest.mark.parametrize("goes_on", [True, False])
def test_node_whose_steps_may_come_is_not_part_of_the_one_before_it(goes_on: bool) -> None:
    """A softmax of a payload that has the handles of all nodes at each of its steps."""
    graph = _graph({"add": ("aten::add", ("x",)), "soft": ("aten::_softmax", ("add",))})
    names = ("add", "soft")
    step = _step("ADD", "x", names)
    later = [_step("REDUCE_MAX", "ADD", names)] if goes_on else []
    known = {"add": replace(step, nodes=("add",))}
    found = with_fused(graph, graph.nodes, known, [step, *later], {"soft"})
    assert ("soft" in found) is not goes_on
