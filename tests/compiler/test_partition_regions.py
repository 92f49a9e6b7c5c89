"""Regions of graphs: never a cycle, as few as there can be, in linear time."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import networkx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner as TorchPartitioner

from compiler import (
    CapabilityBasedPartitioner,
    DelegationSpec,
    GroupBasedPartitioner,
    PartitionRules,
)
from compiler import SteeredPartitioner as Steered
from compiler.backends.demo import DemoPartitioner
from compiler.delegate.to_backend import part
from compiler.partition.regions import contracted, find_cycle, regions
from tests.compiler.delegation import Only, aten, graph_of, long_program

pytestmark = pytest.mark.slow
YES, NO = aten.relu.default, aten.neg.default


@st.composite
def _graphs(draw: Callable[..., Any]) -> torch.fx.GraphModule:
    count = draw(st.integers(1, 14))
    edges = [
        tuple(draw(st.lists(st.integers(0, max(i - 1, 0)), max_size=2, unique=True))) if i else ()
        for i in range(count)
    ]
    return graph_of(
        edges, draw(st.lists(st.sampled_from([YES, NO]), min_size=count, max_size=count))
    )


def _calls(module: torch.fx.GraphModule) -> list[torch.fx.Node]:
    return [node for node in module.graph.nodes if node.op == "call_function"]


def _is_acyclic(module: torch.fx.GraphModule, groups: list[list[torch.fx.Node]]) -> bool:
    """Contract by another way than the one under test."""
    key = {node: index for index, group in enumerate(groups) for node in group}
    graph: Any = networkx.DiGraph()
    for node in module.graph.nodes:
        for user in node.users:
            a, b = key.get(node, node), key.get(user, user)
            if a != b:
                graph.add_edge(a, b)
    return networkx.is_directed_acyclic_graph(graph)


@given(_graphs())
def test_regions_of_any_graph_cover_the_supported_nodes_without_a_cycle(
    module: torch.fx.GraphModule,
) -> None:
    found = regions(module.graph, lambda node: 0 if node.target is YES else None)
    members = [node for group in found for node in group]
    assert sorted(n.name for n in members) == sorted(
        n.name for n in _calls(module) if n.target is YES
    )
    assert _is_acyclic(module, found)
    assert not find_cycle(module.graph, {n: str(i) for i, g in enumerate(found) for n in g})


def test_no_other_partitions_of_a_graph_are_fewer() -> None:
    for seed in range(80):
        draw = random.Random(seed)
        count = draw.randrange(2, 24)
        edges = [tuple(draw.sample(range(i), min(i, draw.randrange(3)))) for i in range(count)]
        module = graph_of(edges, [draw.choice([YES, NO]) for _ in range(count)])
        found = CapabilityBasedPartitioner(module, Only(YES), True).propose_partitions()
        assert _is_acyclic(module, [list(partition.nodes) for partition in found])
        assert [partition.id for partition in found] == [*range(len(found))]
        theirs = len(TorchPartitioner(module, Only(YES), True).propose_partitions())
        assert len(found) == _stretches(module) <= theirs


def _stretches(module: torch.fx.GraphModule) -> int:
    """Return the most stretches of supported nodes along one path: no two fit in one call."""
    begun: dict[torch.fx.Node, int] = {}
    for node in _calls(module):
        read = [n for n in node.all_input_nodes if n in begun]
        if node.target is YES:
            begun[node] = max((begun[n] + (n.target is NO) for n in read), default=1)
            begun[node] = max(begun[node], 1)
        else:
            begun[node] = max((begun[n] for n in read), default=0)
    return max((begun[n] for n in begun if n.target is YES), default=0)


@given(_graphs(), st.data())
def test_cycle_is_found_exactly_when_there_is_one(
    module: torch.fx.GraphModule, data: st.DataObject
) -> None:
    nodes = _calls(module)
    marks = data.draw(
        st.lists(st.sampled_from(["a", "b", ""]), min_size=len(nodes), max_size=len(nodes))
    )
    group_of = {node: mark for node, mark in zip(nodes, marks, strict=True) if mark}
    groups = [[n for n in group_of if group_of[n] == mark] for mark in ("a", "b")]
    cycle = find_cycle(module.graph, group_of)
    assert bool(cycle) == (not _is_acyclic(module, groups))
    if not cycle:
        order, waits = contracted(module.graph, group_of)
        assert all(order[source] < order[key] for key in waits for source in waits[key])
    for node, following in zip(cycle, (*cycle[1:], *cycle[:1]), strict=True):
        together = group_of.get(node, 1) == group_of.get(following, 2)
        assert together or node in following.all_input_nodes


@given(_graphs(), st.data())
def test_cut_edges_are_never_inside_a_region(
    module: torch.fx.GraphModule, data: st.DataObject
) -> None:
    edges = [(a, b) for b in _calls(module) for a in b.all_input_nodes if a.op == "call_function"]
    cuts = data.draw(st.lists(st.sampled_from(edges))) if edges else []
    found = regions(module.graph, lambda node: 0 if node.target is YES else None, cuts=cuts)
    home = {node: index for index, group in enumerate(found) for node in group}
    assert all(home.get(a, -1) != home.get(b, -2) for a, b in cuts)
    assert _is_acyclic(module, found)


@given(_graphs(), st.data())
def test_groups_stay_together_or_are_left_out_when_they_form_a_cycle(
    module: torch.fx.GraphModule, data: st.DataObject
) -> None:
    nodes = _calls(module)
    marks = data.draw(
        st.lists(st.sampled_from([0, 1, 2]), min_size=len(nodes), max_size=len(nodes))
    )
    groups = [[n for n, m in zip(nodes, marks, strict=True) if m == mark] for mark in (1, 2)]
    supported = data.draw(st.sampled_from([(YES,), (YES, NO)]))
    partitioner = GroupBasedPartitioner(module, Only(*supported), True, node_groups=groups)
    found = [list(partition.nodes) for partition in partitioner.propose_partitions()]
    assert _is_acyclic(module, found)
    home = {node: index for index, group in enumerate(found) for node in group}
    for group in groups:
        homes = {home.get(node) for node in group}
        assert len(homes) <= 1
        assert None not in homes or NO not in supported  # what lies between is supported and joins


def test_supported_node_between_the_members_of_a_group_joins_it() -> None:
    edges: list[tuple[int, ...]] = [(), (0,), (0,), (1, 2), (3,)]
    for between in (YES, NO):
        module = graph_of(edges, [YES, YES, YES, between, YES])
        a, b, c, _, e = _calls(module)
        partitioner = GroupBasedPartitioner(module, Only(YES), True, node_groups=[[a, b, c, e]])
        found = [set(one.nodes) for one in partitioner.propose_partitions()]
        assert any({a, b, c, e} <= nodes for nodes in found) is (between is YES)


def test_producer_of_a_later_region_is_joined_with_it() -> None:
    # 0 feeds only 3, which waits for the unsupported 1: one region {0, 2, 3}, as torch makes it.
    module = graph_of([(), (), (1,), (0, 2)], [YES, NO, YES, YES])
    assert [
        len(group) for group in regions(module.graph, lambda n: 0 if n.target is YES else None)
    ] == [3]


def test_calls_without_a_link_between_them_are_one_region() -> None:
    # Two chains of different lengths side by side, as the directions of a recurrent layer.
    edges: list[tuple[int, ...]] = [(), (0,), (1,), (2,), (3,), (), (5,), (6,)]
    module = graph_of(edges, [YES, NO, YES, NO, YES, YES, NO, YES])
    found = regions(module.graph, lambda n: 0 if n.target is YES else None)
    assert sorted(map(len, found)) == [1, 2, 2]


def test_diamond_around_an_unsupported_node_is_split() -> None:
    module = graph_of([(), (0,), (0,), (1, 2)], [YES, NO, YES, YES])
    found = CapabilityBasedPartitioner(module, Only(YES), True).propose_partitions()
    assert sum(len(partition.nodes) for partition in found) == 3
    assert len(found) == 2


def _python_calls(act: Callable[[], Any]) -> int:
    count = 0

    def note(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("steered", [False, True])
def test_work_of_partitioning_grows_linearly(steered: bool) -> None:
    rules = PartitionRules(deny_ops=("aten.add.Tensor",), min_nodes=2, max_partitions=500)
    inner = DemoPartitioner(
        Only(aten.relu.default, aten.add.Tensor), DelegationSpec("NameBackend", [])
    )
    partitioner = Steered(inner, rules) if steered else inner
    counts = {}
    for size in (1000, 10_000):
        counts[size] = _python_calls(partial(part, long_program(size), partitioner))
    assert counts[10_000] < 1.2 * 10 * counts[1000]
