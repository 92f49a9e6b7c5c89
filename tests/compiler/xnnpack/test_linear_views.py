"""Linear layers of more than two dimensions, lowered to products between views: one quantized part.

After ``to_edge`` such a layer is a view, a product and a view; what the flow that keeps layers
whole delegates has to be delegated there too, with the same numbers.
"""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from compiler import to_edge, to_edge_transform_and_lower
from compiler.backends.xnnpack import ConfigPrecisionType, XnnpackPartitioner
from schema.etrecord.parts.verdicts import NodeOutcome
from schema.payloads.xnnpack import decode
from schema.payloads.xnnpack.graph import node_kind
from tests.compiler.stock import Stock
from tests.compiler.xnnpack import quantizing as q
from tests.compiler.xnnpack.test_dynamic_sizes import Of, assert_runs

pytestmark = pytest.mark.slow


class Parallel(nn.Module):
    """Two layers that read one value."""

    def __init__(self, *, bias: bool) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(32, 8, bias=bias), nn.Linear(32, 8, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x) + self.second(x)


def layer(*, bias: bool = True, relu: bool = False) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 8, bias=bias), *[nn.ReLU()] * relu)


def row(*sizes: int) -> torch.Tensor:
    torch.manual_seed(sum(sizes))
    return torch.randn(*sizes, 32)


NETS: dict[str, tuple[nn.Module, torch.Tensor]] = {
    "bias": (layer(), row(1, 2)),
    "no_bias": (layer(bias=False), row(3, 4)),
    "relu": (layer(relu=True), row(2, 5)),
    "four": (layer(bias=False, relu=True), row(2, 3, 4)),
    "chain": (nn.Sequential(layer(relu=True), nn.Linear(8, 5)), row(2, 3)),
    "parallel": (Parallel(bias=True), row(2, 3)),
}
CONFIGS = {"channel": q.STATIC, "tensor": q.PER_TENSOR, "dynamic": q.DYNAMIC, "nibbles": q.NIBBLES}


def left(manager: Any) -> list[str]:
    verdicts = manager.verdicts["forward"]
    return [f"{v.operator}: {v.reason}" for v in verdicts if v.outcome is not NodeOutcome.DELEGATED]


def kinds(manager: Any) -> list[Counter[str]]:
    modules = [child for _, child in manager.exported_program().graph_module.named_children()]
    graphs = [decode(module.processed_bytes) for module in modules]
    return [Counter(node_kind(node) for node in graph.table.xnodes) for graph in graphs]


def precisions(manager: Any) -> set[str]:
    reasons = [
        v.reason for v in manager.verdicts["forward"] if v.rule in ("MMConfig", "AddmmConfig")
    ]
    return {
        reason.split(" accepts it in ")[1].split(";")[0] for reason in reasons if " in " in reason
    }


@pytest.mark.interop
@pytest.mark.parametrize("config", CONFIGS)
def test_quantized_layers_are_one_quantized_delegate_after_to_edge(
    config: str, stock: Stock
) -> None:
    programs = {
        n: q.quantized(copy.deepcopy(m), (x,), CONFIGS[config]) for n, (m, x) in NETS.items()
    }
    after = {n: to_edge(p).to_backend(XnnpackPartitioner()) for n, p in programs.items()}
    whole = {
        n: to_edge_transform_and_lower(p, partitioner=[XnnpackPartitioner()])
        for n, p in programs.items()
    }
    for name, manager in after.items():
        assert left(manager) == [], name
        assert kinds(manager) == kinds(whole[name]), name
        assert precisions(manager) == {
            "DYNAMIC_QUANT" if config in ("dynamic", "nibbles") else "STATIC_QUANT"
        }
    runs = [
        (made[name].to_executorch().buffer, (NETS[name][1],))
        for name in NETS
        for made in (after, whole)
    ]
    found = stock.run_each(runs)
    for at, name in enumerate(NETS):
        first, second = found[2 * at : 2 * at + 2]
        assert not isinstance(first, str), (name, first)
        assert torch.equal(first[0], second[0]), name
        (wanted,) = q.reference(programs[name], (NETS[name][1],))
        allowed = 0.03 * wanted.abs().max() + 2.01 * q.quantum(programs[name])
        assert (first[0] - wanted).abs().max() <= allowed, name


@pytest.mark.interop
@pytest.mark.parametrize("kind", ["float", "channel", "dynamic"])
@pytest.mark.parametrize("relu", [False, True])
def test_layer_with_two_dynamic_batches_is_one_delegate(
    kind: str, relu: bool, stock: Stock
) -> None:
    module: Any = layer(relu=relu).eval()
    calls = [(row(2, 3),), (row(4, 2),), (row(2, 3),)]
    shapes = ({0: Dim.AUTO(min=2, max=8), 1: Dim.AUTO(min=2, max=8)},)
    if kind != "float":
        module = q.prepared(module, calls[0], q.quantizer(CONFIGS[kind]), shapes)
        for given in calls:
            module(*given)
        module = q.convert_pt2e(module)
    with torch.no_grad():
        program = torch.export.export(module, calls[0], dynamic_shapes=shapes)
        manager = to_edge(program).to_backend(XnnpackPartitioner())
        (found,) = kinds(manager)
        assert found["FullyConnected"] == 1
        assert not found["StaticReshape"]
        atol = {"float": 1e-5, "channel": 1.01 * q.quantum(program), "dynamic": 0.05}[kind]
        assert_runs(manager, module, calls, stock, atol)


@pytest.mark.interop
def test_views_of_the_user_around_a_layer_are_read_through(stock: Stock) -> None:
    torch.manual_seed(0)
    inner = nn.Linear(32, 8)

    def function(x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        rows = inner(x.tanh().reshape(batch * length, width))
        return rows.view(batch, length, 8).relu()

    module = Of(function)
    module.inner = inner.requires_grad_(requires_grad=False)
    shapes = ({0: Dim.AUTO(min=2, max=8), 1: Dim.AUTO(min=2, max=8)},)
    calls = [(row(2, 3),), (row(4, 5),)]
    program = torch.export.export(module, calls[0], dynamic_shapes=shapes)
    manager = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    assert len(kinds(manager)) == 1
    assert_runs(manager, module, calls, stock, 1e-5)


@pytest.mark.parametrize("shared", [False, True])
def test_dynamic_layers_alone_are_taken_with_what_quantizes_for_them(shared: bool) -> None:
    module, x = NETS["parallel"]
    graph = q.prepared(copy.deepcopy(module), (x,), q.quantizer(q.DYNAMIC))
    graph(x)
    converted = q.convert_pt2e(graph)
    if not shared:
        q.DuplicateDynamicQuantChainPass()(converted)
    program = torch.export.export(converted, (x,))
    partitioner = XnnpackPartitioner(config_precisions=ConfigPrecisionType.DYNAMIC_QUANT)
    manager = to_edge(program).to_backend(partitioner)
    assert sum(found["FullyConnected"] for found in kinds(manager)) == 2
    assert precisions(manager) == {"DYNAMIC_QUANT"}


@pytest.mark.interop
@pytest.mark.parametrize("config", ["dynamic", "nibbles"])
def test_layers_of_float16_are_quantized_dynamically(config: str, stock: Stock) -> None:
    nets = {name: (copy.deepcopy(NETS[name][0]).half(), NETS[name][1].half()) for name in NETS}
    programs = {
        n: q.quantized(copy.deepcopy(m), (x,), CONFIGS[config]) for n, (m, x) in nets.items()
    }
    for name, program in programs.items():
        manager = to_edge(program).to_backend(XnnpackPartitioner())
        assert left(manager) == [], name
        assert precisions(manager) == {"DYNAMIC_QUANT"}, name
    made = [
        to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
        for program in programs.values()
    ]
    assert all(left(manager) == [] for manager in made)
    runs = [(m.to_executorch().buffer, (nets[n][1],)) for n, m in zip(programs, made, strict=True)]
    for (name, program), found in zip(programs.items(), stock.run_each(runs), strict=True):
        (wanted,) = q.reference(program, (nets[name][1],))
        assert not isinstance(found, str), (name, found)
        assert found[0].dtype is torch.float16
        assert (found[0].float() - wanted.float()).abs().max() <= 0.04 * wanted.abs().max(), name
