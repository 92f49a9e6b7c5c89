"""A model with a pass, a planning algorithm and a quantizer of its own, as users write them."""

from __future__ import annotations

from typing import Any

import torch
from torchao.quantization.pt2e.quantizer import Quantizer

from compiler import ExportPass, MemoryAlgoResult, MemoryPlanningPass, SpecAllocResult, ops
from compiler.backends.xnnpack.quantizer import XNNPACKQuantizer, get_symmetric_quantization_config


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(4, 8), torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


def net():
    return Net().eval(), (torch.linspace(-1, 1, 8).reshape(2, 4),)


class ReluTo(ExportPass):
    """Replaces relu by another unary operator."""

    def __init__(self, name: str = "sigmoid") -> None:
        super().__init__()
        self._name = name

    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        if op == ops.edge.aten.relu.default:
            op = getattr(ops.edge.aten, self._name).default
        return super().call_operator(op, args, kwargs, meta)


def relu_to_tanh(graph_module: torch.fx.GraphModule) -> None:
    for node in graph_module.graph.nodes:
        if node.target == ops.edge.aten.relu.default:
            node.target = ops.edge.aten.tanh.default


def one_after_the_other(
    alignment: int, specs: Any, graph_module: Any, graph_signature: Any, extra_padding: int
) -> MemoryAlgoResult:
    """Give every value a place of its own, 4096 bytes apart."""
    places: dict[Any, SpecAllocResult] = {}
    offset = 0
    for spec in sorted(specs, key=lambda one: (one.lifetime, one.shape)):
        places[spec] = SpecAllocResult(mem_id=1, mem_obj_id=0, mem_offset=offset)
        offset += 4096
    return MemoryAlgoResult(places, [0, offset])


class Roomy(MemoryPlanningPass):
    """Plans with another boundary."""

    def __init__(self, alignment: int = 1024, **options: Any) -> None:
        super().__init__("naive", alignment=alignment, **options)


class FirstLayerOnly(Quantizer):
    """Quantizes the first layer statically and leaves the rest as it is."""

    def __init__(self) -> None:
        super().__init__()
        config = get_symmetric_quantization_config(is_per_channel=True)
        self._inner = XNNPACKQuantizer().set_module_name("first", config)

    def annotate(self, model: torch.fx.GraphModule) -> torch.fx.GraphModule:
        return self._inner.annotate(model)

    def validate(self, model: torch.fx.GraphModule) -> None:
        """Accept every model."""


def second_layer_only() -> XNNPACKQuantizer:
    config = get_symmetric_quantization_config(is_per_channel=True)
    return XNNPACKQuantizer().set_module_name("second", config)


NOT_A_PASS = 3


def raises(graph_module: torch.fx.GraphModule) -> None:
    raise RuntimeError("this pass fails")  # line: raises
