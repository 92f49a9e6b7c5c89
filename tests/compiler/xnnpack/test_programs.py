"""Whole programs with XNNPACK: outputs, choice of nodes, payloads, maps."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from compiler import to_edge, to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner, configs
from compiler.pipeline.edge_manager import EdgeProgramManager
from schema.etrecord.parts.verdicts import NodeOutcome
from schema.payloads.identity import node_identity
from schema.payloads.xnnpack import XNNGraph, decode
from schema.payloads.xnnpack.graph import node_kind
from tests.compiler.compare import (
    assert_equal,
    calls_of,
    eager_outputs,
    exported,
    flat,
    module_of,
)
from tests.compiler.programs import EVERY, SAMPLES, Sample, of
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow

IMAGES = ("conv_bn", "channels_last", "pools", "mobile_net", "res_net")
CHOICES = ("conv_bn", "elementwise", "channels_last_mixed")
# Ours become parts of which some are delegated, or have other names; none is delegated by stock.
RENAMED = {"getitem": "", "aten.squeeze_copy.dim": "aten.squeeze_copy.dims"}


def delegated(sample: Sample, **options: Any) -> EdgeProgramManager:
    program = exported(sample, module_of(sample))
    return to_edge_transform_and_lower(program, partitioner=XnnpackPartitioner(**options))


def modules(manager: EdgeProgramManager) -> list[Any]:
    graph: Any = manager.exported_program().graph_module
    return [child for _, child in graph.named_children()]


def payloads(manager: EdgeProgramManager) -> list[XNNGraph]:
    return [decode(module.processed_bytes) for module in modules(manager)]


def kinds(manager: EdgeProgramManager) -> Counter[str]:
    nodes = [node for graph in payloads(manager) for node in graph.table.xnodes]
    return Counter(node_kind(node) for node in nodes)


@pytest.mark.interop
@pytest.mark.parametrize("name", EVERY)
def test_program_with_delegates_on_the_stock_runtime_equals_eager(name: str, stock: Stock) -> None:
    sample = EVERY[name]
    wanted = eager_outputs(module_of(sample), calls_of(sample))
    buffer = delegated(sample).to_executorch().buffer
    found = stock.run(buffer, [("forward", flat(inputs)) for inputs in calls_of(sample)])
    assert_equal(found, wanted, max(sample.tolerance, 2e-5))


@pytest.mark.interop
def test_nodes_left_outside_are_those_of_the_stock_partitioner_or_fewer(
    tmp_path: Path, stock: Stock
) -> None:
    for name in CHOICES:
        path = tmp_path / f"{name}.pt2"
        torch.export.save(exported(EVERY[name], module_of(EVERY[name])), path)
        verdicts = delegated(EVERY[name]).verdicts["forward"]
        left = (v.operator for v in verdicts if v.outcome is not NodeOutcome.DELEGATED)
        ours = Counter(RENAMED.get(op, op) for op in left if RENAMED.get(op, op))
        answer = stock.ask("lowered", exported=str(path))
        assert not ours - Counter(answer["left"]), name


@pytest.mark.interop
def test_stock_tools_read_the_map_of_a_payload_from_the_record(
    tmp_path: Path, stock: Stock
) -> None:
    sample = EVERY["conv_bn"]
    program = exported(sample, module_of(sample))
    manager = to_edge_transform_and_lower(
        program, partitioner=XnnpackPartitioner(), generate_etrecord=True
    )
    (module,) = modules(manager)
    path = tmp_path / "model.etrecord"
    manager.to_executorch().get_etrecord().save(str(path))
    answer = stock.ask("joined", etrecord=str(path))
    assert "error" not in answer, answer
    (delegate,) = answer["delegates"]["forward"].values()
    assert delegate["name"] == "XnnpackBackend"
    wanted = {str(k): list(v) for k, v in module.meta["debug_handle_map"].items()}
    assert {k: list(v) for k, v in delegate["delegate_map"].items()} == wanted
    assert wanted


@pytest.mark.parametrize("name", IMAGES)
def test_image_nets_are_transposed_at_their_ends_only(name: str) -> None:
    manager = delegated(EVERY[name])
    allowed = {"conv_bn": 2, "channels_last": 1, "pools": 3}.get(name, 1)
    assert kinds(manager)["StaticTranspose"] <= allowed


def test_every_operator_is_in_the_map_of_its_payload_once() -> None:
    manager = delegated(EVERY["mobile_net"])
    (module,) = modules(manager)
    (graph,) = payloads(manager)
    handles = module.meta["debug_handle_map"]
    inside = {v.debug_handle or 0 for v in manager.verdicts["forward"]}
    found = [handle for each in handles.values() for handle in each]
    silent = {"aten.clone.default", "dim_order_ops._clone_dim_order.default"}
    quiet = {v.debug_handle or 0 for v in manager.verdicts["forward"] if v.operator in silent}
    assert sorted(found) == sorted(inside - quiet)
    for place, node in enumerate(graph.table.xnodes):
        assert node.debug_handle == handles.get(node_identity(place), (65535,))[0]


def test_weights_are_named_by_content_and_shared_by_partitions_and_methods() -> None:
    layer = nn.Linear(8, 8, bias=False)

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(torch.cumsum(self.layer(x), 0))

    x = torch.randn(2, 8)
    programs = {
        "forward": torch.export.export(Twice(), (x,)),
        "once": torch.export.export(layer, (x,)),
    }
    manager = to_edge_transform_and_lower(programs, partitioner=XnnpackPartitioner())
    assert len(modules(manager)) == 2
    buffer = manager.to_executorch().buffer
    assert buffer.count(layer.weight.detach().numpy().tobytes()) == 1


def test_rules_and_modes_decide_what_is_taken() -> None:
    sample = of(lambda x: torch.sin(torch.relu(x)) + 1, torch.randn(3))
    only = delegated(sample, configs=[configs.ReLUConfig, configs.AddConfig])
    assert len(modules(only)) == 2
    reasons = {v.operator: v for v in only.verdicts["forward"]}
    assert reasons["aten.sin.default"].outcome is NodeOutcome.NO_RULE
    assert len(modules(delegated(sample, per_op_mode=True))) == 3
    assert len(modules(delegated(sample))) == 1


@pytest.mark.interop
def test_lowering_without_whole_operators_delegates_the_parts(stock: Stock) -> None:
    sample = SAMPLES["lstm"]
    module = module_of(sample)
    manager = to_edge(exported(sample, module)).to_backend(XnnpackPartitioner())
    assert kinds(manager)["FullyConnected"] > 1
    found = stock.run(manager.to_executorch().buffer, [("forward", sample.inputs)])
    assert_equal(found, eager_outputs(module, calls_of(sample)), 2e-5)
