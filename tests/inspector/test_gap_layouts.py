"""Shapes and layouts of values inside delegates, and which step of several has a node's value."""

from __future__ import annotations

from itertools import permutations
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inspector.join.kernel_order import match_named_events
from inspector.join.links import BlockLinks, Grade, Link
from inspector.numerics.replay.layouts import in_layouts
from inspector.numerics.shared_handles import DelegateEvent, distinguished
from inspector.tables.operators import join_word
from schema.etdump import DebugTensor
from schema.graph import Graph, GraphNode, NodeKind
from schema.payloads import Payload


def _with_ones(*sizes: int) -> set[tuple[int, ...]]:
    """Return the shapes of four dimensions that have some sizes in order, else ones."""
    places = ((*sizes, *[1] * (4 - len(sizes))),)
    found = {one for whole in places for one in permutations(whole)}
    return {one for one in found if [size for size in one if size != 1] == list(sizes)}


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize(
    "found", [(), *sorted(_with_ones(8, 16) | _with_ones(8) | _with_ones(2, 3, 5))]
)
def test_values_with_more_dimensions_of_one_are_those_of_the_node(
    found: tuple[int, ...], moved: bool
) -> None:
    """A convolution stands for a linear layer, behind which there are ones in other places."""
    shape = tuple(size for size in found if size != 1)
    values = torch.arange(torch.Size(found).numel()).reshape(found)
    fitting = in_layouts(values, shape, moved=moved)
    assert any(torch.equal(one, values.reshape(shape)) for one in fitting)
    assert len(fitting) == 1  # channels that come first have another shape


@pytest.mark.parametrize("found", [(1, 6, 6, 1), (1, 1, 6, 6), (1, 6, 1, 6), (5, 6, 6, 1)])
def test_square_values_have_both_layouts_where_they_differ(found: tuple[int, ...]) -> None:
    values = torch.arange(torch.Size(found).numel()).reshape(found)
    shape = tuple(size for size in found if size != 1)
    fitting = in_layouts(values, shape, moved=True)
    plain, last = values.reshape(shape), values.permute(0, 3, 1, 2).reshape(shape)
    assert len(fitting) == (1 if torch.equal(plain, last) else 2)
    assert all(any(torch.equal(one, each) for each in fitting) for one in (plain, last))
    assert len(in_layouts(values, shape, moved=False)) == 1


@pytest.mark.parametrize("sizes", [(2, 5, 7), (2, 3, 4, 5), (2, 3, 4, 5, 6), (2, 3, 3, 3, 3)])
def test_channels_may_be_last_in_sequences_images_and_volumes(sizes: tuple[int, ...]) -> None:
    values = torch.arange(torch.Size(sizes).numel()).reshape(sizes)
    logged = values.movedim(1, -1)
    assert any(torch.equal(one, values) for one in in_layouts(logged, sizes, moved=True))
    assert len(in_layouts(values, sizes, moved=True)) == (2 if sizes[1] == sizes[2] else 1)
    plain = in_layouts(logged, sizes, moved=False)
    assert not any(torch.equal(one, values) for one in plain)


@pytest.mark.parametrize(
    ("found", "shape"), [((6, 3, 1, 32), (6, 1, 96)), ((4, 6, 8), (6, 1, 32)), ((2, 3), (3, 2))]
)
def test_other_sizes_fit_in_no_layout(found: tuple[int, ...], shape: tuple[int, ...]) -> None:
    assert in_layouts(torch.zeros(found), shape, moved=True) == []


@pytest.mark.parametrize("kinds", [("CONV2D",), ("CONV2D", "CONV2D"), ("CONV2D", "RESHAPE", "ADD")])
def test_event_of_a_payload_that_runs_node_by_node_names_it(kinds: tuple[str, ...]) -> None:
    """Which of several recorded layers it is stays open; its kind and operands are known."""
    nodes = tuple(GraphNode(f"{kind}_{at}", NodeKind.CALL, kind) for at, kind in enumerate(kinds))
    layers = [
        GraphNode(f"linear_{at}", NodeKind.CALL, "aten.linear.default", debug_handle=at)
        for at in range(kinds.count("CONV2D"))
    ]
    names = [node.name for node in nodes]
    found = match_named_events(Payload("", "", 0, Graph("", nodes, {})), names, layers)
    assert [one.nodes for one in found if one is not None] == [(name,) for name in names]
    assert all(one is not None and one.named for one in found)


def _step(kind: str, reads: str, sizes: tuple[int, ...]) -> DelegateEvent:
    tensors = ((DebugTensor(6, sizes, sizes, 0),),)
    nodes = ("permute", "linear")
    return DelegateEvent(kind, nodes, "", tensors, kind, (reads,), (f"of {kind}",))


@pytest.mark.parametrize(
    ("behind", "value"),
    [
        ([("RESHAPE", (6, 3, 1, 32))], "CONV2D"),  # the view of the next node
        ([("RESHAPE", (6, 1, 96))], "RESHAPE"),
        ([("TRANSPOSE", (1, 96, 1, 6))], "TRANSPOSE"),
        ([("RESHAPE", (1, 6, 96)), ("TRANSPOSE", (3, 6, 32))], "RESHAPE"),
    ],
)
def test_step_behind_a_layer_has_its_value_where_it_has_its_shape(
    behind: list[tuple[str, tuple[int, ...]]], value: str
) -> None:
    def node(name: str, operator: str, reads: str) -> Any:
        own = SimpleNamespace(name=name)
        written = (((), name),)
        return SimpleNamespace(node=own, operator=operator, reads=(((), reads),), writes=written)

    members = [
        node("permute", "aten::permute_copy", "x"),
        node("linear", "aten::linear", "permute"),
    ]
    events, read = [_step("CONV2D", "x", (6, 1, 1, 96))], "of CONV2D"
    for kind, sizes in behind:
        events.append(_step(kind, read, sizes))
        read = f"of {kind}"

    def shows(event: DelegateEvent, _node: Any) -> bool:
        return sorted(size for size in event.passes[0][0].sizes if size != 1) == [6, 96]

    found, _ = distinguished(members, events, shows=shows)
    assert found["linear"].name == value


_THREE = ("aten_mul", "aten_add", "aten_relu")


@pytest.mark.parametrize(
    ("names", "events", "of_call"),
    [
        (_THREE, ("a", "b"), True),
        (_THREE, ("a", "a"), False),  # one event, twice: the call is one layer
        (_THREE[:2], ("a", "b"), False),
        (("aten_mul",), ("a", "b"), False),
        ((*_THREE, "of_another_call"), ("a", "b"), True),
    ],
)
def test_event_with_the_handles_of_a_whole_call_is_known_by_the_call_alone(
    names: tuple[str, ...], events: tuple[str, ...], of_call: bool
) -> None:
    links: Any = BlockLinks.__new__(BlockLinks)
    links._events, links._whole = {7: list(range(len(events)))}, {}
    links.block = SimpleNamespace(delegate_id=lambda event: events[event])
    links.taken_names = lambda number: _THREE if number == 7 else ()
    link = Link(Grade.DELEGATE_ID, 7, nodes=names)
    assert links._is_of_call(link, 7) is of_call
    assert links._is_of_call(Link(Grade.ORDER, 7, nodes=names), 7) is False
    assert (
        links._is_of_call(Link(Grade.DELEGATE_ID, 7, nodes=names, value_of="aten_mul"), 7) is False
    )
    assert join_word(Link(Grade.DELEGATE_ID, 7, nodes=names, of_call=of_call)) == (
        "call only" if of_call else "exact"
    )


def test_layers_of_nodes_that_share_a_handle_have_their_own_nodes() -> None:
    """All of a recurrent layer has one handle; OpenVINO's layers name the nodes that they are."""
    names = ("aten_addmm", "aten_addmm_1", "aten_tanh")
    nodes = tuple(GraphNode(f"layer_{name}", NodeKind.CALL, "") for name in names)
    origins: dict[str, tuple[str, ...]] = {f"layer_{name}": (name,) for name in names}
    origins["layer_aten_tanh"] = ("aten_tanh", "aten_addmm_1")  # fused, named in any order
    payload = Payload("", "", 0, Graph("", nodes, {}), origins=origins, node_values=origins)
    own = [GraphNode(name, NodeKind.CALL, "", debug_handle=2) for name in names]
    found = match_named_events(payload, list(origins), own)
    assert [one.recorded for one in found if one is not None] == [
        ("aten_addmm",),
        ("aten_addmm_1",),
        ("aten_addmm_1", "aten_tanh"),
    ]
    assert {one.handles for one in found if one is not None} == {(2,)}
