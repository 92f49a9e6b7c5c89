"""Helpers of partitioners: support objects, patterns, source partitions, groups, tags."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner as TorchPartitioner
from torch.fx.passes.operator_support import any_chain as torch_any_chain
from torch.fx.passes.utils.matcher_utils import SubgraphMatcher
from torch.fx.passes.utils.source_matcher_utils import get_source_partitions

import compiler
from compiler import (
    CapabilityBasedPartitioner,
    ConfigerationBasedPartitioner,
    DelegationSpec,
    GroupBasedPartitioner,
    NamedDataStore,
    OperatorSupport,
    PartitionerConfig,
    chain,
    create_op_support,
    create_pattern_support,
    format_delegated_graph,
    generate_grouped_partitions_from_list_of_nodes,
    generate_partitions_from_list_of_nodes,
    generate_pattern_op_partitions,
    get_delegated_payload,
    get_delegates,
    get_lowered_backend_modules,
    get_non_lowered_nodes,
    ops,
    to_edge_transform_and_lower,
)
from tests.compiler.delegation import ByNode, Only, aten, edge, exported, payloads

pytestmark = pytest.mark.slow


def _graph(function: Any, *inputs: torch.Tensor) -> torch.fx.GraphModule:
    return edge(function, *inputs).exported_program().graph_module


def _names(partitions: Any) -> list[set[str]]:
    return [{node.name for node in partition.nodes} for partition in partitions]


def _chain(x: torch.Tensor) -> torch.Tensor:
    return ((x * 2).relu().neg() * 3).relu()


def test_single_nodes_are_partitions_only_where_they_are_allowed() -> None:
    module = _graph(lambda x: x.relu().neg() + 1, torch.ones(2))
    support = Only(aten.relu.default)
    assert CapabilityBasedPartitioner(module, support).propose_partitions() == []
    found = CapabilityBasedPartitioner(
        module, support, allowed_single_node_partition_ops=["torch.ops.aten.relu.default"]
    )
    assert _names(found.propose_partitions()) == [{"aten_relu_default"}]
    both = Only(aten.relu.default, aten.neg.default)
    idle = CapabilityBasedPartitioner(module, both, non_compute_ops=["aten.neg.default"])
    assert idle.propose_partitions() == []


def test_idle_nodes_are_taken_off_the_ends_of_partitions() -> None:
    module = _graph(lambda x: x.view(4).relu().view(2, 2), torch.ones(2, 2))
    support = Only(aten.relu.default, aten.view_copy.default)
    partitioner = CapabilityBasedPartitioner(module, support, True)
    partitions = partitioner.propose_partitions()
    assert len(partitions[0].nodes) == 3
    partitioner.remove_bookend_non_compute_ops(partitions)
    assert _names(partitions) == [{"aten_relu_default"}]


def test_results_of_a_node_go_where_it_goes() -> None:
    module = _graph(lambda x: torch.max(x, 1)[0].relu(), torch.ones(2, 2))
    found = CapabilityBasedPartitioner(module, Only(aten.max.dim), True).propose_partitions()
    (names,) = _names(found)
    assert len(names) == 2
    assert {"getitem"} < {name.rstrip("_01") for name in names}


def test_support_by_table_chain_and_function() -> None:
    module = _graph(_chain, torch.ones(2))
    nodes = {node.name: node for node in module.graph.nodes}
    table = OperatorSupport({"torch.ops.aten.relu.default": None, torch.ops.aten.neg.default: None})
    first = create_op_support(lambda _, node: not node.name.endswith("_1"))
    both = chain(table, first)
    taken = {name for name, node in nodes.items() if both.is_node_supported({}, node)}
    assert taken == {"aten_relu_default", "aten_neg_default"}
    of_torch = torch_any_chain(table, Only(aten.mul.Tensor))
    found = CapabilityBasedPartitioner(module, of_torch, True).propose_partitions()
    assert len(found) == 1


def test_partitioner_of_torch_reads_our_graphs() -> None:
    module = _graph(_chain, torch.ones(2))
    support = Only(aten.mul.Tensor, aten.relu.default)
    theirs = TorchPartitioner(module, support, True).propose_partitions()
    ours = CapabilityBasedPartitioner(module, support, True).propose_partitions()
    assert _names(theirs) == _names(ours)


def _pattern() -> torch.fx.Graph:
    graph = torch.fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    product = graph.call_function(aten.mul.Tensor, (x, y))
    graph.output((graph.call_function(aten.relu.default, (product,)),))
    return graph


def test_patterns_are_found_and_partitioned() -> None:
    module = _graph(_chain, torch.ones(2))
    wanted = [
        {"aten_mul_tensor_1", "aten_relu_default_1"},
        {"aten_mul_tensor", "aten_relu_default"},
    ]
    assert len(SubgraphMatcher(_pattern(), match_output=False).match(module.graph)) == 2
    assert _names(generate_pattern_op_partitions(module, patterns=[_pattern()])) == wanted
    support = create_pattern_support([_pattern()])
    assert _names(generate_pattern_op_partitions(module, op_support=support)) == wanted
    more = generate_pattern_op_partitions(module, [_pattern()], op_support=Only(aten.neg.default))
    assert [len(names) for names in _names(more)] == [5]
    assert all("match" not in node.meta for node in module.graph.nodes)
    with pytest.raises(ValueError, match="pass a pattern or operator support"):
        generate_pattern_op_partitions(module)


def test_source_partitions_by_module_type_are_found_in_edge_graphs() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
    module = _graph(net, torch.randn(1, 3))
    linears = get_source_partitions(module.graph, [torch.nn.functional.linear, nn.Linear, "linear"])
    lists = [part.nodes for parts in linears.values() for part in parts]
    assert len(lists) == 2
    found = generate_partitions_from_list_of_nodes(module, lists)
    assert all("aten_relu_default" not in names for names in _names(found))
    assert sum("addmm" in name for names in _names(found) for name in names) == 2


def test_groups_are_never_torn_apart() -> None:
    module = _graph(lambda x: (x.relu(), x.relu().neg() + x.relu()), torch.ones(2))
    nodes = {node.name: node for node in module.graph.nodes}
    pair = [nodes["aten_relu_default_1"], nodes["aten_neg_default"]]
    found = generate_grouped_partitions_from_list_of_nodes(module, [pair])
    assert _names(found) == [{"aten_relu_default_1", "aten_neg_default"}]
    with pytest.raises(ValueError, match="exists in multiple groups"):
        GroupBasedPartitioner(module, Only(), node_groups=[pair, pair[:1]])


class LinearConfig(PartitionerConfig):
    target_name = "linear.default"

    def check_constraints(self, node: Any, ep: Any) -> bool:
        return len(node.args) == 3

    def get_original_aten(self) -> Any:
        return torch.ops.aten.linear.default

    def get_partition(self, node: Any, ep: Any) -> list[Any]:
        return [node, *node.args[1:]]


def test_configurations_take_operators_with_their_weights() -> None:
    spec = DelegationSpec("NameBackend", [])
    partitioner = ConfigerationBasedPartitioner(spec, [LinearConfig()])
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3, bias=False))
    manager = to_edge_transform_and_lower(exported(net, torch.randn(1, 3)), partitioner=partitioner)
    assert payloads(manager) == ["aten.linear.default"]
    assert set(manager.exported_program().state_dict) == {"2.weight"}
    found = {v.operator: v for v in manager.verdicts["forward"]}
    assert found["aten.linear.default"].outcome.value in ("delegated", "decomposed_away")
    assert "no configuration covers aten.relu.default" in found["aten.relu.default"].reason
    with pytest.raises(
        compiler.PartitionError, match=r"have the same target_name: linear\.default"
    ):
        ConfigerationBasedPartitioner(spec, [LinearConfig(), LinearConfig()])


def test_delegated_graph_is_shown_with_what_is_inside() -> None:
    manager = edge(lambda x: x.relu().neg(), torch.ones(2))
    found = manager.to_backend(ByNode(lambda n: "t" if "relu" in n.name else None))
    module = found.exported_program().graph_module
    text = format_delegated_graph(module)
    assert "    backend_id: NameBackend\n    lowered graph():\n" in text
    assert text.index("lowered graph") < text.index("aten_relu_default") < text.index("aten_neg")
    assert [node.name for node in get_delegates(module.graph)] == ["lowered_module_0"]
    assert [node.name for node in get_non_lowered_nodes(module.graph)] == ["aten_neg_default"]
    assert get_delegated_payload(module) == {
        "lowered_module_0": ("NameBackend", [], b"aten.relu.default")
    }
    (lowered,) = get_lowered_backend_modules(module)
    assert lowered.backend_id == "NameBackend"


def test_named_data_has_one_content_a_key_and_one_place_a_content() -> None:
    store = NamedDataStore()
    store.add_named_data("a", b"same", alignment=4)
    store.add_named_data("b", b"same", alignment=6)
    store.add_named_data("a", b"same", alignment=6)
    store.add_named_data("c", torch.ones(2, dtype=torch.bfloat16), external_tag="file")
    output = store.get_named_data_store_output()
    assert len(output.buffers) == 2
    assert output.pte_data["a"].alignment == 12
    assert output.external_data["file"]["c"].tensor_layout.sizes == (2,)  # pyright: ignore[reportOptionalMemberAccess]
    other = NamedDataStore()
    other.merge_named_data_store(output)
    assert other.get_named_data_store_output() == output
    for arguments, message in (
        (("a", b"other"), "Duplicate key a"),
        (("d", b"", 0), "greater than 0"),
    ):
        with pytest.raises(ValueError, match=message):
            store.add_named_data(*arguments)
    with pytest.raises(TypeError, match="named data e is a str"):
        store.add_named_data("e", "text")


def test_operators_of_support_may_be_edge_operators() -> None:
    module = _graph(_chain, torch.ones(2))
    table = OperatorSupport({ops.edge.aten.mul.Tensor: (([torch.int64], None), {})})
    found = CapabilityBasedPartitioner(module, table, True).propose_partitions()
    assert found == []  # its arguments are float32
