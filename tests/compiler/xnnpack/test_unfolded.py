"""``convert_pt2e(fold_quantize=False)``: weights quantized by the graph are folded on lowering."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from compiler import to_edge, to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from runtime import Runtime
from tests.compiler.programs import Apply
from tests.compiler.stock import Stock
from tests.compiler.xnnpack import quantizing as q

pytestmark = pytest.mark.slow
torch.manual_seed(0)
ADDED = torch.randn(3, 32)
NETS: dict[str, tuple[nn.Module, torch.Tensor]] = {
    "linear": (nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 5)), q.ROW),
    "rows": (nn.Linear(9, 5, bias=False), q.SIGNAL),
    "conv": (nn.Sequential(nn.Conv2d(8, 6, 3), nn.ReLU(), nn.Conv2d(6, 6, 3, groups=6)), q.IMAGE),
    "transposed": (nn.ConvTranspose2d(8, 4, 2, 2), q.IMAGE),
    "constant": (Apply(lambda x: (x + ADDED) * ADDED), q.ROW),
}
CONFIGS = {"static": q.STATIC, "tensor": q.PER_TENSOR, "dynamic": q.DYNAMIC, "weights": q.WEIGHTS}


def programs(config: Any, name: str) -> list[Any]:
    """Return a quantized program as it is converted with and without folding."""
    module, x = NETS[name]
    found = []
    for fold in (True, False):
        graph = q.prepared(copy.deepcopy(module), (x,), q.quantizer(config))
        graph(x)
        converted = q.convert_pt2e(graph, fold_quantize=fold)
        if config is q.DYNAMIC:
            q.DuplicateDynamicQuantChainPass()(converted)
        found.append(torch.export.export(converted, (x,)))
    return found


def quantizing(manager: Any) -> list[str]:
    """Return what quantizes a constant in an edge program."""
    program = manager.exported_program()
    inputs = set(program.graph_signature.user_inputs)
    calls = [n for n in program.graph.nodes if "quantized_decomposed.quantize" in str(n.target)]
    return [n.name for n in calls if n.args[0].op == "placeholder" and n.args[0].name not in inputs]


@pytest.mark.interop
@pytest.mark.parametrize("config", CONFIGS)
def test_unfolded_weights_make_the_program_that_folded_ones_do(config: str, stock: Stock) -> None:
    made = {name: programs(CONFIGS[config], name) for name in NETS}
    flows = {
        "whole": lambda p: to_edge_transform_and_lower(p, partitioner=[XnnpackPartitioner()]),
        "after": lambda p: to_edge(p).to_backend(XnnpackPartitioner()),
    }
    names = [(name, flow) for name in NETS for flow in flows]
    managers = [flows[flow](each) for name, flow in names for each in made[name]]
    assert not any(map(quantizing, managers))
    buffers = [manager.to_executorch().buffer for manager in managers]
    runs = [(buffer, (NETS[names[at // 2][0]][1],)) for at, buffer in enumerate(buffers)]
    ours = [Runtime.get().load_program(b).load_method("forward").execute(list(x)) for b, x in runs]
    found = runs and stock.run_each(runs)
    for at, (name, flow) in enumerate(names):
        folded, unfolded = found[2 * at : 2 * at + 2]
        missing = "0x14" in str(folded)  # what is left has no kernel in the stock runtime
        assert missing or torch.equal(folded[0], unfolded[0]), (name, flow)
        assert torch.equal(ours[2 * at][0], ours[2 * at + 1][0]), (name, flow)
        (wanted,) = q.reference(made[name][1], (NETS[name][1],))
        near = 0.03 * wanted.abs().max() + 2.01 * q.quantum(made[name][1])
        assert (ours[2 * at + 1][0] - wanted).abs().max() <= near, (name, flow)
        assert abs(len(buffers[2 * at]) - len(buffers[2 * at + 1])) <= 64, (name, flow)


@pytest.mark.parametrize("name", NETS)
def test_unfolded_weights_are_whole_numbers_without_a_backend_too(name: str) -> None:
    folded, unfolded = programs(q.STATIC, name)
    manager = to_edge(unfolded)
    assert quantizing(manager) == []
    assert quantizing(to_edge(folded)) == []
    buffer = manager.to_executorch().buffer
    method = Runtime.get().load_program(buffer).load_method("forward")
    (wanted,) = q.reference(unfolded, (NETS[name][1],))
    found = method.execute([NETS[name][1]])[0]
    assert (found - wanted).abs().max() <= 1.01 * q.quantum(unfolded)


def test_given_program_is_returned_where_nothing_quantizes_a_constant() -> None:
    from compiler.edge.config import EdgeCompileConfig
    from compiler.edge.program import edge_program
    from compiler.passes.standard.constant_prop import with_quantized_constants

    program = edge_program(programs(q.STATIC, "linear")[0], EdgeCompileConfig())
    assert with_quantized_constants(program) is program
