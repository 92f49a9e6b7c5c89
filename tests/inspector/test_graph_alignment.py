"""Nodes of changed graphs are found again, whatever the change gave another name or number."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.compare.alignment import MOVED, GraphAlignment, align_graphs
from inspector.compare.ownership import owner_changes, partition_changes, same_partitions
from inspector.files.load import load_session
from inspector.graph.model_graph import ModelGraph, model_graph
from inspector.join.lowered_kinds import operation
from tests.inspector import graph_samples as samples
from tests.inspector.graph_samples import Op
from tests.inspector.sessions import DATA, session

pytestmark = pytest.mark.slow

COUNT = 480
_MOVES_DATA = {"view", "permute", "clone"}  # backends add and leave out some


def _true_pairs(found: GraphAlignment, old: list[Op], new: list[Op]) -> tuple[int, int]:
    """Return how many pairs are right, and how many there could be."""
    keys = {op.key for op in old}
    right = sum(old[pair.old].key == new[pair.new].key for pair in found.pairs)
    return right, sum(op.key in keys for op in new)


def _whole(found: GraphAlignment) -> None:
    """Each node is in one pair, gone or new, and pairs compute the same kind of thing."""
    old, new = len(found.old.nodes), len(found.new.nodes)
    assert sorted([p.old for p in found.pairs] + list(found.removed)) == list(range(old))
    assert sorted([p.new for p in found.pairs] + list(found.added)) == list(range(new))
    for pair in found.pairs:
        one, two = found.old.nodes[pair.old].node, found.new.nodes[pair.new].node
        assert one.target == two.target
    ordered = [pair for pair in found.pairs if pair.how != MOVED]
    assert all(a.new < b.new for a, b in itertools.pairwise(ordered))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", samples.KINDS)
def test_alignment_of_a_changed_graph_pairs_what_is_the_same(kind: str, seed: int) -> None:
    old = samples.large_ops(COUNT, seed)
    new = {
        "edited": lambda: samples.edited_ops(old, 0.02, seed),
        "shifted": lambda: samples.shifted_ops(old, 5 + seed),
        "resized": lambda: old,
        "swapped": lambda: samples.swapped_ops(old, seed),
    }[kind]()
    batch = 4 if kind == "resized" else 1
    found = align_graphs(samples.built(old), samples.built(new, batch=batch))
    _whole(found)
    right, all_of_them = _true_pairs(found, old, new)
    assert right == all_of_them
    assert len(found.changed) == (len(old) if kind == "resized" else 0)


@pytest.mark.parametrize("kind", ["edited", "shifted"])
def test_alignment_without_lineage_goes_by_structure(kind: str) -> None:
    old = samples.large_ops(COUNT, 9)
    new = samples.edited_ops(old, 0.01, 9) if kind == "edited" else samples.shifted_ops(old, 7)
    graphs = samples.built(old, lineage=False), samples.built(new, lineage=False)
    found = align_graphs(*graphs)
    _whole(found)
    right, all_of_them = _true_pairs(found, old, new)
    assert right >= 0.97 * all_of_them


@given(st.integers(1, 60), st.integers(0, 59), st.sampled_from(["gelu", "relu", "add"]))
def test_one_inserted_node_is_one_difference(count: int, at: int, operator: str) -> None:
    old = samples.large_ops(count, 3)
    new = [*old[:at], Op(99_999, operator, 0, 16, None, ()), *old[at:]]
    found = align_graphs(samples.built(old), samples.built(new))
    _whole(found)
    assert (len(found.removed), len(found.added)) == (0, 1)


def test_graph_with_itself_has_no_difference() -> None:
    ops = samples.large_ops(COUNT, 4)
    found = align_graphs(samples.built(ops), samples.built(ops))
    assert [(pair.old, pair.new) for pair in found.pairs] == [(n, n) for n in range(COUNT)]
    assert (found.removed, found.added, found.replaced, found.changed) == ((), (), (), ())


def test_empty_graph_has_nothing_in_common() -> None:
    empty = ModelGraph("forward", "record", (), ())
    found = align_graphs(empty, samples.large_graph(10, 1))
    assert (found.pairs, found.removed, found.added) == ((), (), tuple(range(10)))


def test_node_whose_argument_differs_is_changed_not_new() -> None:
    old = samples.large_ops(40, 5)
    place = next(n for n, op in enumerate(old) if op.operator == "softmax")
    literal = Op(**{**old[place].__dict__, "literal": 77})
    new = [*old[:place], literal, *old[place + 1 :]]
    found = align_graphs(samples.built(old), samples.built(new))
    assert (found.removed, found.added) == ((), ())
    (change,) = found.changed
    assert (change.pair.old, change.what, change.new) == (place, "arguments", "77")


def _delegated(ops: list[Op], spans: list[tuple[int, int, int]], backend: str) -> ModelGraph:
    found = list(ops)
    for delegate, start, stop in spans:
        for place in range(start, stop):
            fields = {**found[place].__dict__, "delegate": delegate, "backend": backend}
            found[place] = Op(**fields)
    return samples.built(found)


def test_owner_changes_name_what_moved_and_nothing_else() -> None:
    ops = samples.large_ops(60, 6)
    old = _delegated(ops, [(0, 0, 20), (1, 30, 40)], "XnnpackBackend")
    new = _delegated(ops, [(1, 0, 20), (0, 30, 38)], "XnnpackBackend")
    found = align_graphs(old, new)
    assert same_partitions(found) == {0: 1, 1: 0}
    none = load_session([DATA / "corpus/v1.5.1/mm_portable/model.pte"])
    moved = owner_changes(found, none, "forward", 1)
    assert [one.new_node for one in moved] == [new.nodes[38].name, new.nodes[39].name]
    assert {(one.old_owner, one.new_owner) for one in moved} == {("XNNPACK", "portable")}
    (part,) = partition_changes(found, "forward", 1)
    assert (part.old, part.new, part.old_nodes, part.new_nodes, part.common) == (1, 0, 10, 8, 8)


def test_split_partition_moves_the_smaller_part() -> None:
    ops = samples.large_ops(30, 7)
    old = _delegated(ops, [(0, 0, 20)], "XnnpackBackend")
    new = _delegated(ops, [(0, 0, 12), (1, 12, 20)], "XnnpackBackend")
    found = align_graphs(old, new)
    changes = partition_changes(found, "forward", 1)
    assert [(c.old, c.new, c.common) for c in changes] == [(0, 0, 12), (None, 1, 0)]


def test_layer_taken_whole_replaces_its_decomposition() -> None:
    sides = [session(DATA / f"corpus/v1.5.1/convnet_{name}") for name in ("portable", "xnnpack")]
    from inspector.graph.model_graph import model_graph

    old, new = (model_graph(side, "forward") for side in sides)
    assert old is not None
    assert new is not None
    found = align_graphs(old, new)
    (group,) = found.replaced
    assert [old.nodes[n].node.target for n in group.old] == [
        "aten.permute_copy.default",
        "aten.addmm.default",
    ]
    assert [new.nodes[n].node.target for n in group.new] == ["aten.linear.default"]
    moved = owner_changes(found, sides[1], "forward", 1)
    assert len(moved) == 8
    assert all("from portable to XNNPACK delegate" in one.words() for one in moved)


def _without_record(name: str, kind: str) -> ModelGraph:
    graph = model_graph(load_session([DATA / f"corpus/v1.5.1/{name}_{kind}/model.pte"]), "forward")
    assert graph is not None
    return graph


@pytest.mark.parametrize("name", ["convnet", "mm", "tinygpt"])
@pytest.mark.parametrize("turned", [False, True])
def test_nodes_that_moved_to_a_delegate_are_paired_without_a_record(
    name: str, *, turned: bool
) -> None:
    graphs = [_without_record(name, kind) for kind in ("portable", "xnnpack")]
    found = align_graphs(*(graphs[::-1] if turned else graphs))
    own = found.to_old if not turned else found.to_new
    computed = {operation(node.node.target) for node in graphs[0].nodes} - _MOVES_DATA
    inside = [node for node in graphs[1].nodes if node.backend]
    assert all(node.id in own for node in inside if operation(node.node.target) in computed)
    for pair in found.pairs:
        one, two = found.old.nodes[pair.old], found.new.nodes[pair.new]
        assert operation(one.node.target) == operation(two.node.target)
    session = load_session([DATA / f"corpus/v1.5.1/{name}_xnnpack/model.pte"])
    moved = {one.new_owner for one in owner_changes(found, session, "forward", 1)}
    assert moved == ({"portable"} if turned else {"XNNPACK"})


def test_operations_of_backends_are_those_of_the_operators_they_come_from() -> None:
    alike = [
        ("aten::addmm.out", "aten.linear.default", "FullyConnected"),
        ("aten::convolution.out", "Conv2d", "DepthwiseConv2d", "CONV2D"),
        ("aten::permute_copy.out", "StaticTranspose", "Permute"),
        ("aten::_softmax.out", "Softmax"),
        ("aten::mul.out", "Multiply"),
        ("aten::cat.out", "Concatenate2"),
    ]
    for names in alike:
        assert len({operation(name) for name in names}) == 1, names
    assert len({operation(names[0]) for names in alike}) == len(alike)
