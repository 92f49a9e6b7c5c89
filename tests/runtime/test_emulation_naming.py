"""Values that pass from partition to partition are named so that all instructions agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runtime.emulation.names import ValueMatcher
from runtime.emulation.naming import consistent_names
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.program import model as m

_FLOAT = 6


def _graph(nodes: Mapping[str, tuple[str, int, Sequence[str | int]]]) -> Graph:
    """Return a graph of tensors (4,) from x.

    Args:
        nodes: name -> operator, debug handle, and values or literals that it takes
    """
    made = [
        GraphNode(
            name,
            NodeKind.CALL,
            f"aten.{operator}.default",
            tuple(
                Argument(values=(one,)) if isinstance(one, str) else Argument(literal=one)
                for one in given
            ),
            (name,),
            handle,
        )
        for name, (operator, handle, given) in nodes.items()
    ]
    values = {name: GraphValue(name, TensorMeta(_FLOAT, (4,))) for name in ("x", *nodes)}
    return Graph("forward", tuple(made), values, ("x",), (made[-1].name,))


def _plan(
    calls: Sequence[m.DelegateCall | tuple[str, Sequence[int]]], count: int
) -> m.ExecutionPlan:
    """Return a plan whose value 0 is the input and count - 1 the output, then come 7 and 8."""
    place = m.AllocationDetails(1, 0, 0)
    tensor = m.Tensor(_FLOAT, 0, (4,), (0,), False, 0, place, 0, 0, None)
    values = [m.EValue(tensor)] * count + [m.EValue(m.Int(7)), m.EValue(m.Int(8))]
    given = [
        m.Instruction(call if isinstance(call, m.DelegateCall) else m.KernelCall(0, tuple(call[1])))
        for call in calls
    ]
    chain = m.Chain((), (), tuple(given), None)
    return m.ExecutionPlan(
        "forward",
        None,
        tuple(values),
        (0,),
        (count - 1,),
        (chain,),
        (m.Operator("aten::add", "out"),),
        (),
        (0, 0),
        None,
    )


def _named(
    graph: Graph, plan: m.ExecutionPlan, handles: Mapping[int, Sequence[int]]
) -> Mapping[int, str] | None:
    known = {0: "x", plan.outputs[0]: graph.outputs[0]}
    return consistent_names(graph, plan, handles, ValueMatcher(graph, plan, handles, known), ())


def test_a_value_between_two_partitions_is_told_by_the_handles_of_both() -> None:
    graph = _graph(
        {
            "a": ("tanh", 1, ["x"]),
            "b": ("tanh", 2, ["a"]),
            "c": ("tanh", 3, ["b"]),
            "d": ("mul", 4, ["c", "x"]),
        }
    )
    plan = _plan([m.DelegateCall(0, (0, 1)), m.DelegateCall(1, (1, 0, 2))], 3)
    assert _named(graph, plan, {0: (1, 2), 1: (3, 4)}) == {0: "x", 1: "b", 2: "d"}
    assert _named(graph, plan, {0: (1, 2), 1: (4,)}) is None  # nothing computes c


def test_kernels_of_one_handle_are_told_by_their_numbers() -> None:
    """Any naming that agrees gives the results: add of 8 has to read the value of the first."""
    graph = _graph(
        {
            "a": ("tanh", 1, ["x"]),
            "b": ("sin", 1, ["x"]),
            "a7": ("add", 2, ["a", 7]),
            "b8": ("add", 2, ["b", 8]),
            "y": ("sub", 3, ["a7", "b8"]),
        }
    )
    calls = [
        m.DelegateCall(0, (0, 1, 2)),
        ("add", (1, 7, 3, 3)),
        ("add", (2, 6, 4, 4)),
        m.DelegateCall(1, (3, 4, 5)),
    ]
    found = _named(graph, _plan(calls, 6), {0: (1,), 1: (2,), 2: (2,), 3: (3,)})
    assert found == {0: "x", 1: "b", 2: "a", 3: "b8", 4: "a7", 5: "y"}


def test_values_that_nothing_distinguishes_are_named_alike_for_writer_and_reader() -> None:
    graph = _graph(
        {
            "a": ("tanh", 1, ["x"]),
            "b": ("sin", 1, ["x"]),
            "a7": ("add", 1, ["a", 7]),
            "b7": ("add", 1, ["b", 7]),
            "y": ("sub", 1, ["a7", "b7"]),
        }
    )
    calls = [
        m.DelegateCall(0, (0, 1, 2)),
        ("add", (1, 6, 3, 3)),
        ("add", (2, 6, 4, 4)),
        m.DelegateCall(1, (3, 4, 5)),
    ]
    found = _named(graph, _plan(calls, 6), dict.fromkeys(range(4), (1,)))
    assert found is not None
    assert {found[3]: found[1], found[4]: found[2]} == {"a7": "a", "b7": "b"}


def test_results_that_nothing_reads_are_those_that_nothing_reads_in_the_graph() -> None:
    nodes = {"a": ("tanh", 1, ["x"]), "check": ("sin", 1, ["a"]), "y": ("tanh", 2, ["a"])}
    plan = _plan([m.DelegateCall(0, (0, 1, 2)), m.DelegateCall(1, (2, 3))], 4)
    found = _named(_graph(nodes), plan, {0: (1,), 1: (2,)})
    assert found == {0: "x", 1: "check", 2: "a", 3: "y"}
