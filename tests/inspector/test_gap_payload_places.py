"""Values of payloads with a layout of their own are found by the places of their elements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from inspector.graph.delegate_inside import InsideNode, InsideValue
from inspector.numerics.element_moves import Cut, ElementMove, arrangement, shaped, strides_in
from inspector.numerics.flat_graph import FlatGraph, FlatNode
from inspector.numerics.grades import FLOW, ORDER
from inspector.numerics.payload_flow import payload_event
from inspector.numerics.payload_walk import walked
from inspector.numerics.shared_handles import DelegateEvent
from inspector.numerics.traced import strides_of
from schema.etdump import DebugTensor
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind, TensorMeta

_FLOAT = 6  # scalar type

Sizes = tuple[int, ...]


def _call(
    name: str, operator: str, reads: str, sizes: Sizes, **given: object
) -> tuple[FlatNode, Sizes]:
    args = [Argument(one, (one,)) for one in reads.split()]
    args += [Argument(key, literal=value) for key, value in given.items()]
    node = GraphNode(name, NodeKind.CALL, operator, tuple(args), outputs=(name,))
    return FlatNode(0, (), node, tuple(((), one) for one in reads.split()), operator), sizes


def _graph(x: Sizes, *calls: tuple[FlatNode, Sizes]) -> FlatGraph:
    nodes = tuple(replace(one, place=place) for place, (one, _) in enumerate(calls))
    makers = {one.writes[0]: (one, 0) for one in nodes}
    users = {value: tuple(one for one in nodes if value in one.reads) for value in makers}
    sizes = {"x": x} | {one.node.name: own for one, own in calls}
    metas = {
        ((), name): GraphValue(name, kind="tensor", tensor=TensorMeta(_FLOAT, own))
        for name, own in sizes.items()
    }
    inside = Graph("delegate", (), {}, (), ())
    return FlatGraph(inside, nodes, makers, metas, users, frozenset(), (), {(): ""})


def _step(
    kind: str,
    reads: str,
    made: str,
    sizes: Sizes,
    dims: Sizes = (),
    cut: tuple[Cut, ...] = (),
) -> DelegateEvent:
    passes = ((DebugTensor(_FLOAT, sizes, strides_of(sizes), 0),),)
    names = tuple(reads.split())
    return DelegateEvent(made, (), ORDER, passes, kind, names, (made,), dims=dims, cut=cut)


def _found(graph: FlatGraph, steps: list[DelegateEvent]) -> dict[str, DelegateEvent]:
    names = {one.node.name for one in graph.nodes}
    return walked(graph, graph.nodes, {}, names, steps, {"p_x": ((), "x")})


def _image_steps(side: int) -> list[DelegateEvent]:
    last = (1, side, side, 4)
    return [
        _step("TRANSPOSE", "p_x", "a", (1, side, side, 3), dims=(0, 2, 3, 1)),
        _step("CONV2D", "a weight", "b", last),
        _step("TANH", "b", "c", last),
        _step("RESHAPE", "c", "d", (side * side, 4)),
        _step("SIGMOID", "d", "e", (side * side, 4)),
    ]


@pytest.mark.parametrize("side", [5, 4])  # 4: all sizes are equal, so that they tell nothing
def test_permuted_image_is_compared_with_the_step_that_has_its_channels_last(side: int) -> None:
    first, last = (1, 4, side, side), (1, side, side, 4)
    graph = _graph(
        (1, 3, side, side),
        _call("conv", "aten::convolution", "x", first),
        _call("act", "aten::tanh", "conv", first),
        _call("last", "aten::permute_copy", "act", last, dims=(0, 2, 3, 1)),
        _call("rows", "aten::view_copy", "last", (side * side, 4)),
        _call("gate", "aten::sigmoid", "rows", (side * side, 4)),
    )
    found = _found(graph, _image_steps(side))
    assert {name: one.name for name, one in found.items()} == {
        "conv": "b", "act": "c", "last": "c", "rows": "d", "gate": "e"
    }  # fmt: skip
    assert found["last"].passes[0][0].sizes == last
    assert found["rows"].passes[0][0].strides == (4, 1)


@pytest.mark.parametrize("side", [5, 4])
def test_view_of_an_image_is_no_step_that_has_its_channels_last(side: int) -> None:
    """The rows of the record are of channels, those of the payload of pixels."""
    first = (1, 4, side, side)
    graph = _graph(
        (1, 3, side, side),
        _call("conv", "aten::convolution", "x", first),
        _call("act", "aten::tanh", "conv", first),
        _call("rows", "aten::view_copy", "act", (side * side, 4)),
    )
    assert "rows" not in _found(graph, _image_steps(side)[:4])


@pytest.mark.parametrize("turned", [False, True])
def test_slices_are_told_apart_by_the_elements_that_they_take(turned: bool) -> None:
    """Also where one of them is taken in front of the permutation that is before all of them."""
    slices = [
        _call(f"s{at}", "aten::slice_copy", "turn", (1, 4, 2), dim=0, start=at, end=at + 1)
        for at in range(3)
    ]
    graph = _graph(
        (4, 3, 2),
        _call("turn", "aten::permute_copy", "x", (3, 4, 2), dims=(1, 0, 2)),
        *slices,
        _call("out", "aten::tanh", "s1", (1, 4, 2)),
    )
    whole = ((0, 0, 4, 1), (1, 0, 3, 1), (2, 0, 2, 1))
    steps = [
        _step("TRANSPOSE", "p_x", "a", (3, 4, 2), dims=(1, 0, 2)),
        *(
            _step("SLICE", "a", f"b{at}", (1, 4, 2), cut=((0, at, at + 1, 1),))
            for at in ((2, 0) if turned else (2, 1, 0))
        ),
    ]
    if turned:
        cut = (whole[0], (1, 1, 2, 1), whole[2])
        steps += [_step("SLICE", "p_x", "b1", (4, 1, 2), cut=cut)]
    steps += [_step("TANH", "b1", "c", (4, 1, 2) if turned else (1, 4, 2))]
    found = _found(graph, steps)
    named = {name: one.name for name, one in found.items() if name != "turn"}
    assert named == {"s0": "b0", "s1": "b1", "s2": "b2", "out": "c"}
    assert found["out"].passes[0][0].sizes == (1, 4, 2)


def _every_second(first: int, odd: bool) -> list[DelegateEvent]:
    """Arm's steps of ``x[first::2]``: rows in pairs, padded where the first one is cut off."""
    end, name = f"s{first}", "p_x"
    steps: list[DelegateEvent] = []
    if first:
        steps += [_step("SLICE", "p_x", "rest", (5, 3), cut=((0, 1, 6, 1),))]
        reads = "rest zeros" if odd else "zeros rest"
        steps += [_step("CONCAT", reads, "padded", (6, 3))]
        name = "padded"
    at = 0 if odd else 1  # in front of the rest the zeros are the first of a pair
    cut = ((1, at, at + 1, 1),) if first else ((1, 0, 1, 1),)
    return [
        *steps,
        _step("RESHAPE", name, f"pairs{first}", (3, 2, 3)),
        _step("SLICE", f"pairs{first}", end, (3, 1, 3), cut=cut),
    ]


@pytest.mark.parametrize("odd", [True, False])
def test_slices_with_a_step_are_found_through_pads(odd: bool) -> None:
    graph = _graph(
        (6, 3),
        _call("even", "aten::slice_copy", "x", (3, 3), dim=0, start=0, end=6, step=2),
        _call("odd", "aten::slice_copy", "x", (3, 3), dim=0, start=1, end=6, step=2),
    )
    steps = [*_every_second(0, odd), *_every_second(1, odd)]
    assert set(_found(graph, steps)) == {"even", "odd"}


def test_slice_that_takes_a_pad_is_no_slice_of_the_value() -> None:
    graph = _graph(
        (6, 3), _call("odd", "aten::slice_copy", "x", (3, 3), dim=0, start=1, end=6, step=2)
    )
    steps = _every_second(1, odd=True)
    steps[-1] = replace(steps[-1], cut=((1, 1, 2, 1),))  # rows 2, 4 and the zeros
    assert not _found(graph, steps)


def test_rows_of_a_linear_layer_are_in_order_in_any_shape() -> None:
    graph = _graph(
        (2, 4, 3),
        _call("fc", "aten::linear", "x weight", (2, 4, 6)),
        _call("heads", "aten::view_copy", "fc", (2, 4, 2, 3)),
    )
    steps = [
        _step("RESHAPE", "p_x", "a", (8, 1, 1, 3)),
        _step("CONV2D", "a weight", "b", (8, 1, 1, 6)),
        _step("RESHAPE", "b", "c", (2, 4, 2, 3)),
    ]
    found = _found(graph, steps)
    assert {name: one.name for name, one in found.items()} == {"fc": "b", "heads": "c"}
    assert found["fc"].passes[0][0].sizes == (2, 4, 6)


def test_places_in_memory_are_steps_or_are_not() -> None:
    places = arrangement((2, 3, 4), [ElementMove((4, 2, 3), (2, 0, 1))])
    assert places is not None
    straight = np.arange(24)
    assert strides_in(shaped(places, (-1,)), shaped(straight, (2, 3, 4))) == (3, 1, 6)
    assert strides_in(straight, shaped(straight, (4, 6))) == (6, 1)
    assert strides_in(straight, shaped(places, (6, 4))) is None
    assert strides_in(straight, shaped(straight[:12], (3, 4))) is None


@pytest.mark.parametrize(("sizes", "is_told"), [((2, 6, 4), True), ((4, 6, 4), False)])
def test_sizes_tell_the_order_of_dimensions_unless_two_are_equal(
    sizes: Sizes, is_told: bool
) -> None:
    """As of an einsum that a compiler makes a product of matrices."""
    turned = sizes[2], sizes[0], sizes[1]
    graph = _graph((2, 3), _call("mixed", "aten::einsum", "x weight", sizes))
    step = _step("matmul", "p_x weight", "m", turned)
    found = walked(
        graph,
        graph.nodes,
        {"mixed": replace(step, nodes=("mixed",), grade=FLOW)},
        {"mixed"},
        [step],
        {"p_x": ((), "x")},
    )
    assert ("mixed" in found and found["mixed"].passes[0][0].sizes == sizes) is is_told


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("cast", [False, True])
def test_halves_of_a_value_have_its_order_of_dimensions(half: int, cast: bool) -> None:
    """A compiler moves a permutation behind the halves, whose sizes tell nothing."""
    split, _ = _call("split", "aten::split_copy", "heads", (2, 4, 4, 2))
    split = replace(split, node=replace(split.node, outputs=("one", "two")))
    used = ("one", "two")[half]
    graph = _graph(
        (2, 4, 16),
        _call("shaped", "aten::view_copy", "x", (2, 4, 4, 4)),
        _call("heads", "aten::permute_copy", "shaped", (2, 4, 4, 4), dims=(0, 2, 1, 3)),
        (split, (2, 4, 4, 2)),
        _call("act", "aten::tanh", used, (2, 4, 4, 2)),
    )
    halves = {((), one): replace(graph.meta[(), "act"], name=one) for one in split.node.outputs}
    graph = replace(graph, meta={**graph.meta, **halves})
    source = "p_x_half" if cast else "p_x"
    steps = [
        *([_step("cast", "p_x", source, (2, 4, 16))] if cast else []),
        _step("reshape", source, "r", (2, 4, 4, 4)),
        replace(_step("split", "r", "s0", (2, 4, 4, 2)), writes=("s0", "s1")),
        _step("tanh", f"s{half}", "t", (2, 4, 4, 2)),
    ]
    own = replace(steps[-2], nodes=("split",), grade=FLOW)
    found = walked(graph, graph.nodes, {"split": own}, {"split", "act"}, steps, {"p_x": ((), "x")})
    assert found["act"].name == "t"
    strides = found["act"].passes[0][0].strides
    assert strides == (32, 2, 8, 1)  # rows of the payload are of the second dimension


def test_node_with_an_event_of_its_sizes_is_no_view_behind_it() -> None:
    """Both have its value; the event that is known to be its own stays."""
    graph = _graph(
        (2, 3),
        _call("fc", "aten::linear", "x weight", (2, 6)),
        _call("rows", "aten::view_copy", "fc", (4, 3)),
    )
    steps = [_step("linear", "p_x weight", "a", (2, 6)), _step("reshape", "a", "b", (4, 3))]
    own = replace(steps[0], nodes=("fc",), grade=FLOW)
    found = walked(graph, graph.nodes, {"fc": own}, {"rows"}, steps, {"p_x": ((), "x")})
    assert {name: one.name for name, one in found.items()} == {"rows": "b"}


def test_operands_by_name_are_read_in_the_order_of_their_names() -> None:
    """Core ML keeps arguments in any order: what moves elements reads the one it moves first."""
    roles = ("perm", "y", "shape", "x", "b", "a", "cond")
    values = tuple(InsideValue(one, GraphValue(one), None) for one in roles)
    event = payload_event(InsideNode(0, GraphNode("n", NodeKind.CALL, "sub"), values, "", False))
    assert event.reads == ("x", "cond", "perm", "shape", "y", "a", "b")


@pytest.mark.parametrize("order", [(0, 2, 1), (1, 0, 2)])
def test_order_of_dimensions_may_be_a_constant_of_the_payload(order: Sizes) -> None:
    value = GraphValue("order", literal=order)
    values = (InsideValue("x", GraphValue("x"), None), InsideValue("perm", value, None))
    node = InsideNode(0, GraphNode("n", NodeKind.CALL, "transpose"), values, "", False)
    assert payload_event(node).dims == order
