"""Layers that are trained: convolutions, norms, pools, tables; masks leave some results out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import export
from torch.export.experimental import _export_forward_backward

from compiler import to_edge
from runtime.compat.training import _load_for_executorch_for_training_from_buffer, get_sgd_optimizer
from schema import program as pte
from tests.tools.forked import run_stock

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),  # torch's export, of itself
]

_STEPS = 3
_STOCK = """
import logging, sys, warnings
warnings.simplefilter("ignore"); logging.disable(logging.CRITICAL)
import torch
from executorch.extension.training import (
    _load_for_executorch_for_training_from_buffer as load, get_sgd_optimizer)
runs = {}
for name, (buffer, inputs) in torch.load(sys.argv[1], weights_only=False).items():
    module, losses, optimizer = load(buffer), [], None
    for _ in range(3):
        losses.append(module.forward_backward("forward", inputs)[0].clone())
        if optimizer is None:
            optimizer = get_sgd_optimizer(module.named_parameters(), 0.1, 0.9, 0, 0.01, False)
        optimizer.step(module.named_gradients())
    runs[name] = losses, {k: v.clone() for k, v in module.named_parameters().items()}
torch.save(runs, sys.argv[2])
"""


class Net(nn.Module):
    """A body, and the loss of what it finds."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body, self.loss = body, nn.CrossEntropyLoss()

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.loss(self.body(x), y)


def _head(*layers: nn.Module, features: int) -> nn.Module:
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(features, 3))


def _bodies() -> dict[str, tuple[nn.Module, torch.Tensor]]:
    """Return bodies and inputs; the first convolution of each has no gradient of its input."""
    torch.manual_seed(0)
    image, wide = torch.randn(2, 3, 6, 6), torch.randn(2, 4, 6, 6)
    conv = nn.Conv2d
    return {
        "conv2d": (_head(conv(3, 4, 3), nn.ReLU(), features=64), image),
        "two conv2d, one strided without bias": (
            _head(conv(3, 4, 3, padding=1), nn.ReLU(), conv(4, 5, 3, 2, bias=False), features=20),
            image,
        ),
        "groups": (_head(conv(4, 8, 3, groups=4), conv(8, 8, 3, groups=8), features=32), wide),
        "dilated": (_head(conv(3, 4, 3, dilation=2), nn.Tanh(), features=16), image),
        "batch norm": (_head(conv(3, 4, 3), nn.BatchNorm2d(4), features=64), image),
        "group norm": (_head(conv(3, 4, 3), nn.GroupNorm(2, 4), features=64), image),
        "adaptive pool": (_head(conv(3, 4, 3), nn.AdaptiveAvgPool2d(1), features=4), image),
        "embedding": (_head(nn.Embedding(7, 4), features=12), torch.randint(0, 7, (2, 3))),
        "layer norm": (_head(nn.LayerNorm([6, 6]), nn.GELU(), features=108), image),
        "frozen bias": (_head(_frozen(conv(3, 4, 3)), nn.ReLU(), features=64), image),
    }


def _ours_only() -> dict[str, tuple[nn.Module, torch.Tensor]]:
    """Return what the stock kernels refuse, or compute wrongly (max_pool2d's gradient)."""
    torch.manual_seed(0)
    image, row = torch.randn(2, 3, 6, 6), torch.randn(2, 3, 8)
    up = nn.ConvTranspose2d(2, 4, 3, stride=2, output_padding=1)
    volume = torch.randn(2, 2, 3, 3, 3)
    return {
        "conv1d": (_head(nn.Conv1d(3, 4, 3), nn.Conv1d(4, 4, 2, stride=2), features=12), row),
        "conv3d": (_head(nn.Conv3d(2, 3, 2), features=24), volume),
        "transposed": (_head(nn.Conv2d(3, 2, 3, stride=2), up, features=144), image),
        "max pool": (_head(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), features=16), image),
    }


def _frozen(layer: nn.Conv2d) -> nn.Conv2d:
    assert layer.bias is not None
    layer.bias.requires_grad_(False)
    return layer


def _made(body: nn.Module, x: torch.Tensor) -> tuple[Net, Any, tuple[torch.Tensor, torch.Tensor]]:
    net, inputs = Net(body), (x, torch.tensor([0, 2]))
    program = _export_forward_backward(export(net, inputs, strict=True))
    return net, to_edge(program).to_executorch(), inputs


def _eager(net: Net, inputs: tuple[torch.Tensor, torch.Tensor]) -> tuple[Any, Any]:
    named = {name: p for name, p in net.named_parameters() if p.requires_grad}
    optimizer = torch.optim.SGD(named.values(), 0.1, 0.9, 0, 0.01)
    losses: list[torch.Tensor] = []
    for _ in range(_STEPS):
        optimizer.zero_grad()
        loss = net(*inputs)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, {name: p.detach().clone() for name, p in named.items()}


def _trained(buffer: bytes, inputs: tuple[torch.Tensor, torch.Tensor]) -> tuple[Any, Any]:
    module = _load_for_executorch_for_training_from_buffer(buffer)
    losses: list[torch.Tensor] = []
    optimizer = None
    for _ in range(_STEPS):
        losses.append(module.forward_backward("forward", inputs)[0].clone())
        if optimizer is None:
            optimizer = get_sgd_optimizer(module.named_parameters(), 0.1, 0.9, 0, 0.01, False)
        optimizer.step(module.named_gradients())
    return losses, {name: value.clone() for name, value in module.named_parameters().items()}


@pytest.mark.parametrize("name", [*_bodies(), *_ours_only()])
def test_layers_train_as_eager_does(name: str) -> None:
    net, made, inputs = _made(*{**_bodies(), **_ours_only()}[name])
    found = _trained(made.buffer, inputs)
    torch.testing.assert_close(found, _eager(net, inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.interop
def test_layers_train_on_the_stock_runtime(tmp_path: Path) -> None:
    nets = {name: _made(*case) for name, case in _bodies().items()}
    given = {name: (bytes(made.buffer), [*inputs]) for name, (_, made, inputs) in nets.items()}
    torch.save(given, tmp_path / "given.pt")
    run_stock(["-c", _STOCK, tmp_path / "given.pt", tmp_path / "found.pt"])
    found = torch.load(tmp_path / "found.pt", weights_only=False)
    for name, (net, _, inputs) in nets.items():
        torch.testing.assert_close(
            found[name],
            _eager(net, inputs),
            rtol=1e-4,
            atol=1e-5,
            msg=lambda m, n=name: f"{n}: {m}",
        )


def test_result_that_a_mask_leaves_out_is_an_empty_tensor_without_memory() -> None:
    _, made, _ = _made(*_bodies()["conv2d"])
    (plan,) = [p for p in pte.decode(made.buffer).plans if p.name == "forward"]
    names = [f"{o.name}.{o.overload}" for o in plan.operators]
    call = next(
        i.instr_args
        for i in plan.chains[0].instructions
        if names[i.instr_args.op_index] == "aten::convolution_backward.out"
    )
    first = plan.values[call.args[-4]].val
    assert tuple(first.sizes) == (0,)
    assert first.allocation_info is None


@pytest.mark.parametrize("name", ["conv2d", "embedding", "batch norm"])
def test_planned_graph_of_a_trained_program_hands_out_its_weights(name: str) -> None:
    net, made, _ = _made(*_bodies()[name])
    graph = made.exported_program().graph
    results: Any = graph.output_node().args[0]
    trained = [f"p_{n.replace('.', '_')}" for n, p in net.named_parameters() if p.requires_grad]
    assert [node.name for node in results[-len(trained) :]] == trained
    masked = [n for n in graph.nodes if n.kwargs.get("out0", n) is None]
    assert len(masked) == (name != "embedding")
