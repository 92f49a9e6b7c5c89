"""Nodes of a partition that another compiler orders, and numbers, in its own way."""

from __future__ import annotations

from itertools import chain

import pytest

from inspector.files.load import load_session
from inspector.join import record_maps
from inspector.join.kernel_order import match_named_events
from inspector.join.links import BlockLinks
from inspector.join.partition_order import partition_order
from inspector.trace.blocks import trace_blocks
from schema.graph import Argument, Graph, GraphNode, NodeKind
from schema.payloads import Payload
from tests.conftest import DATA


def _node(name: str, handle: int, *reads: str) -> GraphNode:
    args = tuple(Argument("", (read,)) for read in reads)
    return GraphNode(name, NodeKind.CALL, name, args, (name,), handle)


# a long branch and a short one, in one operator of the user at their ends
_LONG = (_node("mul", 1, "x"), _node("exp", 2, "mul"), _node("pow", 4, "exp"))
_SHORT = (_node("mul_1", 3, "y"), _node("pow_1", 4, "mul_1"), _node("sum", 4, "pow_1"))
_BREADTH_FIRST = [1, 3, 2, 4, 4, 4]  # mul, mul_1, exp, pow_1 or pow, ...


def _joined(names: tuple[str, ...], handles: list[int]) -> dict[str, str]:
    """Return name in the payload -> recorded node, for a payload with these names."""
    layers = tuple(GraphNode(f"layer of {name}", NodeKind.CALL, "") for name in names)
    origins = {layer.name: (name,) for layer, name in zip(layers, names, strict=True)}
    payload = Payload(
        "", "", 0, Graph("", layers, {}, (), ()), origins=origins, node_values=origins
    )
    recorded = (*_LONG, *_SHORT)
    order = partition_order(recorded, handles)
    found = match_named_events(payload, list(origins), recorded, order=order)
    values = [match.value_of if match is not None else "" for match in found]
    return {name: value for name, value in zip(names, values, strict=True) if value}


def test_the_first_of_a_kind_is_the_one_that_comes_first_in_the_partition() -> None:
    joined = _joined(("mul", "mul_1", "pow", "pow_1", "sum"), [3, 4, 4, 1, 2, 4])
    assert joined == {"mul": "mul_1", "mul_1": "mul", "pow": "pow_1", "pow_1": "pow", "sum": "sum"}


def test_nodes_of_one_handle_that_could_both_come_next_are_not_joined() -> None:
    assert _joined(("mul", "mul_1", "exp", "pow", "sum"), _BREADTH_FIRST) == {
        "mul": "mul",
        "mul_1": "mul_1",
        "exp": "exp",
    }


def test_a_partition_in_the_recorded_order_has_the_recorded_names() -> None:
    names = ("mul", "mul_1", "exp", "pow", "pow_1", "sum")
    assert _joined(names, [1, 2, 4, 3, 4, 4]) == {name: name for name in names}


def test_a_kind_that_passes_added_to_is_not_joined() -> None:
    joined = _joined(("mul", "mul_1", "mul_2", "exp"), [3, 4, 4, 1, 2, 4])
    assert joined == {"exp": "exp"}


@pytest.mark.parametrize("handles", [[2, 1, 4, 3, 4, 4], [1, 2, 4, 3, 4, 4, 4], [9]])
def test_handles_of_other_nodes_tell_no_order(handles: list[int]) -> None:
    assert partition_order((*_LONG, *_SHORT), handles) is None


def test_links_have_the_order_that_the_record_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two slices of one value, listed the other way around."""
    stem = DATA / "backends" / "openvino" / "openvino_several"
    session = load_session([str(stem.with_suffix(end)) for end in (".pte", ".etrecord", ".etdp")])
    block = next(
        one
        for one in trace_blocks(session.dumps).blocks
        if any(one.delegate_id(event) for event in range(len(one)))
    )
    assert session.record is not None
    listed = record_maps.handles(session.record, "forward")
    links = BlockLinks(session, session.program, "forward", block)
    before = _slices(links)
    nodes = (links.named(name)[0] for name in ("aten_slice_copy_tensor", before[-1]))
    first, second = (node.debug_handle for node in nodes)
    swapped = {first: second, second: first}
    other = {step: tuple(swapped.get(one) or one for one in own) for step, own in listed.items()}
    monkeypatch.setattr(record_maps, "handles", lambda _record, _method: other)
    links = BlockLinks(session, session.program, "forward", block)
    assert _slices(links) == before[::-1]


def _slices(links: BlockLinks) -> list[str]:
    """Return the slices that a block logs the values of, in order."""
    found = (links.link(event) for event in range(len(links.block)))
    names = chain.from_iterable((one.value_of or "", *one.values_of) for one in found)
    return [name for name in names if "slice" in name]
