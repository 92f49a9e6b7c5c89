"""Layers of OpenVINO with several outputs, and nodes whose names its front end gave anew."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import torch

from inspector.files.load import load_session
from inspector.join import record_maps
from inspector.join.kernel_order import match_named_events
from inspector.join.links import BlockLinks
from inspector.numerics.grades import DELEGATE_ID
from inspector.numerics.replay.analysis import Options, analyse_gap
from inspector.numerics.replay.moved_values import MOVED
from inspector.numerics.report import INSIDE, Row
from inspector.tensors.logged_places import logged_places
from inspector.trace.blocks import trace_blocks
from schema.graph import Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.payloads import Payload
from tests.conftest import DATA

STEM = DATA / "backends" / "openvino" / "openvino_several"
_FILES = [str(STEM.with_suffix(end)) for end in (".pte", ".etrecord", ".etdp", ".debug")]


def _inside() -> dict[str, Row]:
    inputs, _ = torch.load(STEM.with_suffix(".pt"))
    (run,) = analyse_gap(load_session(_FILES), Options(inputs=inputs)).runs
    assert run.first_divergence() is None
    assert MOVED not in {row.reason for row in run.rows}
    return {row.node: row for row in run.rows if row.place == INSIDE}


def test_each_output_of_a_layer_is_compared_with_its_own_node() -> None:
    """Two slices were merged into one split, named after neither."""
    rows = _inside()
    for node in ("aten_slice_copy_tensor", "aten_slice_copy_tensor_1"):
        row = rows[node]
        assert row.grade == DELEGATE_ID
        assert row.total is not None
        assert row.total.max_abs < 1e-6


def test_names_that_a_decomposition_counted_anew_are_not_joined() -> None:
    """The payload's only ``aten_div_tensor_mode`` is the second one of the record."""
    rows = _inside()
    divisions = [row for name, row in rows.items() if name.startswith("aten_div")]
    assert len(divisions) == 2
    assert all(row.total is None and not row.delegate for row in divisions)
    kept = ("aten_sub_tensor", "aten_abs_default_1", "aten_add_tensor_1", "aten_mul_tensor_1")
    assert all(rows[name].grade == DELEGATE_ID for name in kept)


@pytest.mark.parametrize(
    ("named", "recorded", "joined"),
    [
        (("view_1",), ("view", "view_1"), {"view_1"}),
        (("view_1", "aten__to_copy_default"), ("view", "view_1"), {"view_1"}),
        (("view_1", "getitem_4"), ("view", "view_1"), {"view_1"}),
        (("div", "floor", "add", "add_1"), ("div", "div_1", "add", "add_1"), {"add", "add_1"}),
        (("div", "div_1", "mul"), ("div", "mul"), {"mul"}),
        (("div", "exp"), ("div", "mul"), {"div"}),
    ],
)
def test_a_name_is_joined_where_it_can_mean_one_node(
    named: tuple[str, ...], recorded: tuple[str, ...], joined: set[str]
) -> None:
    """All names are known; a cast; a result; one is missing; one is too many; another's are not."""
    layers = {name: f"layer of {name}" for name in named}
    nodes = tuple(GraphNode(layer, NodeKind.CALL, "") for layer in layers.values())
    origins = {layer: (name,) for name, layer in layers.items()}
    graph = Graph("", nodes, {}, (), ())
    payload = Payload("", "", 0, graph, origins=origins, node_values=origins)
    handles = {name: place for place, name in enumerate(recorded, 1)}
    own = [GraphNode(name, NodeKind.CALL, "", debug_handle=at) for name, at in handles.items()]
    found = match_named_events(payload, list(origins), own)
    assert {match.value_of for match in found if match is not None and match.value_of} == joined
    given = {handle for match in found if match is not None for handle in match.handles}
    assert given == {handles[name] for name in joined}


@pytest.mark.parametrize(
    ("named", "recorded", "outside", "joined"),
    [
        (("sum", "sum_1"), ("sum", "sum_1", "sum_2", "sum_3"), ("sum", "sum_1"), set[str]()),
        (("sum", "sum_1"), ("sum", "sum_1"), ("sum",), {"sum", "sum_1"}),
        (("sum_1", "mul"), ("sum", "sum_1", "mul", "mul_1"), ("sum",), {"mul"}),
        (("sum_1", "mul"), ("sum", "sum_1", "mul", "mul_1"), (), {"sum_1", "mul"}),
    ],
    ids=["two of four", "all of a kind", "another kind", "all inside"],
)
def test_names_are_certain_if_their_nodes_are_inside_of_the_delegate(
    named: tuple[str, ...], recorded: tuple[str, ...], outside: tuple[str, ...], joined: set[str]
) -> None:
    """An operator whose parts are in two delegates gives both its handle, and numbers from none."""
    nodes = tuple(GraphNode(name, NodeKind.CALL, "") for name in named)
    origins = {name: (name,) for name in named}
    graph = Graph("", nodes, {}, (), ())
    payload = Payload("", "", 0, graph, origins=origins, node_values=origins)
    handles = {name: place for place, name in enumerate(recorded, 1)}
    own = [GraphNode(name, NodeKind.CALL, "", debug_handle=at) for name, at in handles.items()]
    found = match_named_events(payload, list(named), own, None, [handles[one] for one in outside])
    assert {match.value_of for match in found if match is not None and match.value_of} == joined


def test_a_call_has_the_nodes_that_its_record_lists_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = load_session(_FILES)
    blocks = trace_blocks(session.dumps).blocks
    block = next(one for one in blocks if any(one.delegate_id(e) for e in range(len(one))))
    number = 0  # the call of the delegate
    every = BlockLinks(session, session.program, "forward", block).taken_names(number)
    assert len(every) > 2
    listed = {number: every[1:]}
    monkeypatch.setattr(record_maps, "taken", lambda _record, _method: listed)
    assert BlockLinks(session, session.program, "forward", block).taken_names(number) == every[1:]


@pytest.mark.parametrize(
    ("there", "here", "joined"),
    [
        ({"mul": (5, 4), "mul_1": (7, 4)}, {"mul": (5, 4), "mul_1": (7, 4)}, {"mul", "mul_1"}),
        ({"mul": (7, 4), "mul_1": (5, 4)}, {"mul": (5, 4), "mul_1": (7, 4)}, set[str]()),
        ({"mul_1": (5, 4), "mul_2": (5, 4)}, {f"mul_{n}": (5 + n, 4) for n in range(3)}, set()),
        ({"mul": (20,), "add": (2, 3)}, {"mul": (5, 4), "add": (2, 4)}, {"mul"}),
        ({"mul": (4, 5), "mul_1": ()}, {"mul": (5, 4), "mul_1": (1, 1)}, {"mul", "mul_1"}),
    ],
    ids=["same", "other order", "one was folded", "other kind", "other layout"],
)
def test_kind_of_which_one_has_another_size_was_counted_anew(
    there: dict[str, tuple[int, ...]], here: dict[str, tuple[int, ...]], joined: set[str]
) -> None:
    nodes = tuple(GraphNode(name, NodeKind.CALL, "", outputs=(name,)) for name in there)
    graph = Graph("", nodes, _values(there), (), ())
    origins = {name: (name,) for name in there}
    payload = Payload("", "", 0, graph, origins=origins, node_values=origins)
    own = [
        GraphNode(name, NodeKind.CALL, "", outputs=(name,), debug_handle=at)
        for at, name in enumerate(here, 1)
    ]
    found = match_named_events(payload, list(there), own, _values(here))
    assert {match.value_of for match in found if match is not None and match.value_of} == joined


@pytest.mark.parametrize(
    ("there", "recorded", "joined"),
    [
        # OpenVINO has no node for the first product, which is of constants
        (
            ("dims", "dims_1", "mul_2"),
            ("dim", "dim_1", "mul_1", "mul_2"),
            {"dim", "dim_1", "mul_2"},
        ),
        (("dims_1",), ("dim", "dim_1"), {"dim_1"}),
        (("dims", "mul"), ("dims", "mul"), {"dims", "mul"}),
        (("dims", "dims_1", "mul"), ("dims", "dim", "mul"), {"mul"}),  # which is which?
        (("dims_3", "mul"), ("dim", "mul"), {"mul"}),
    ],
)
def test_squeezes_that_a_vendor_saw_in_another_form_have_their_names(
    there: tuple[str, ...], recorded: tuple[str, ...], joined: set[str]
) -> None:
    def named(names: Iterable[str]) -> list[str]:
        return [f"aten_squeeze_copy_{one}" if one[0] == "d" else one for one in names]

    nodes = tuple(GraphNode(name, NodeKind.CALL, "") for name in named(there))
    origins = {node.name: (node.name,) for node in nodes}
    payload = Payload("", "", 0, Graph("", nodes, {}), origins=origins, node_values=origins)
    own = [
        GraphNode(name, NodeKind.CALL, "", debug_handle=at)
        for at, name in enumerate(named(recorded), 1)
    ]
    found = match_named_events(payload, list(origins), own)
    values = {match.value_of for match in found if match is not None and match.value_of}
    assert values == set(named(joined))


def _values(sizes: dict[str, tuple[int, ...]]) -> dict[str, GraphValue]:
    return {name: GraphValue(name, TensorMeta(6, one)) for name, one in sizes.items()}


def test_values_of_a_layer_with_several_have_the_names_of_their_nodes() -> None:
    names = {one.name for one in logged_places(load_session(_FILES))}
    assert {"aten_slice_copy_tensor", "aten_slice_copy_tensor_1"} <= names
