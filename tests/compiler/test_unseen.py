"""Programs of further families: parts that write through views, states, packs, odd results."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import nn
from torch.ao.quantization.fx import _decomposed  # noqa: F401  registers operators
from torch.nn import functional as F  # noqa: N812  torch's own habit

from compiler import EdgeCompileConfig, SpecViolationError, to_edge
from tests.compiler.compare import assert_equal, calls_of, eager_outputs, exported, flat, module_of
from tests.compiler.programs import Sample, of
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow

_generator = torch.Generator().manual_seed(3)  # rounding may never be a matter of luck


def _random(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, generator=_generator)


X, WHOLE = _random(3, 8), torch.arange(-6, 6, dtype=torch.int32).reshape(3, 4)
IMAGE, BATCH = _random(1, 3, 6, 6), torch.export.Dim("batch", min=1, max=4)
LENGTH = torch.export.Dim("length", min=2, max=9)


class Cells(nn.Module):
    """Layers and cells in both directions; their parts write to slices in place."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 3, num_layers=2, bidirectional=True)
        self.cell, self.gate = nn.LSTMCell(6, 5), nn.GRUCell(6, 4)
        self.plain = nn.RNN(6, 4, nonlinearity="relu", bidirectional=True)

    def forward(self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> Any:
        y, state = self.lstm(x, (h, c))
        return y, state, [*self.cell(y[-1])], self.gate(y[0]), self.plain(y)[0]


class MaskedEncoder(nn.Module):
    """Batch and length change; weights are tied; results are packed."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.places = nn.Embedding(20, 16), nn.Embedding(9, 16)
        self.project, self.norm = nn.Linear(16, 48), nn.LayerNorm(16)

    def forward(self, tokens: torch.Tensor, keep: torch.Tensor) -> dict[str, Any]:
        rows, length = tokens.shape
        x = self.embed(tokens) + self.places(torch.arange(length))
        parts = self.project(self.norm(x)).view(rows, length, 3, 2, 8).permute(2, 0, 3, 1, 4)
        ahead = torch.ones(length, length, dtype=torch.bool).tril()
        y = F.scaled_dot_product_attention(*parts, attn_mask=keep[:, None, None, :] & ahead)
        x = (x + y.transpose(1, 2).flatten(2)).masked_fill(~keep[..., None], 0.0)
        return {"next": F.linear(x[:, -1], self.embed.weight), "top": x.max(-1), "none": None}


class Memory(nn.Module):
    """Buffers of several types, rolled, flipped and written in parts."""

    mean: torch.Tensor
    history: torch.Tensor
    flag: torch.Tensor
    keys: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.full((4,), 0.5))
        self.register_buffer("history", torch.zeros(3, 4))
        self.register_buffer("flag", torch.tensor(False))
        self.register_buffer("keys", torch.zeros(1, 2, 9, 4), persistent=False)

    def forward(self, x: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        self.history.copy_(torch.roll(self.history, 1, 0))
        self.history[0] = self.mean
        self.flag.logical_not_()
        self.keys[:, :, at] = x[:, None, :].transpose(0, 1)
        return self.history.sum(0), self.flag, self.keys.sum(2), torch.where(self.flag, x, -x)


class Quantized(nn.Module):
    """A linear layer as dynamic quantization leaves it, without a delegate; and a token's way."""

    weight: torch.Tensor
    scales: torch.Tensor
    zeros: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        weight = torch.linspace(-1, 2, 32).reshape(4, 8)
        self.register_buffer("scales", weight.abs().amax(1) / 127)
        self.register_buffer("weight", (weight / self.scales[:, None]).round().to(torch.int8))
        self.register_buffer("zeros", torch.zeros(4, dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        q, byte = torch.ops.quantized_decomposed, (-128, 127, torch.int8)
        chosen = q.choose_qparams.tensor(x, -128, 127, 1e-7, torch.int8)
        near = q.quantize_per_tensor.tensor(x, *chosen, *byte)
        near = q.dequantize_per_tensor.tensor(near, *chosen, *byte)
        weight = q.dequantize_per_channel.default(self.weight, self.scales, self.zeros, 0, *byte)
        chosen = q.choose_qparams_per_token_asymmetric.default(x, torch.int8)
        rows = q.quantize_per_token.default(x, *chosen, *byte)
        rows = q.dequantize_per_token.default(rows, *chosen, *byte, torch.float32)
        return F.linear(near, weight), rows


def _circular(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    ends = (F.pad(x[None], (2, 0), mode="circular"), F.pad(x[None], (0, 3), mode="circular"))
    conv = F.conv1d(F.pad(x[None], (1, 1), mode="circular"), torch.ones(2, 3, 3))
    return *ends, conv, F.pad(x[None], (-1, 2), mode="circular")


def _packs(x: torch.Tensor) -> Any:
    return x.max(0), {"top": x.topk(2, 1, largest=False)}, torch.aminmax(x, dim=1), 7, 1.5, True


def _moved(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    turned = torch.einsum("bchw,bdhw->bcd", x, x)
    patches = F.unfold(x, 3, padding=1, stride=2)
    return (
        turned,
        patches,
        F.pixel_unshuffle(x, 2),
        F.channel_shuffle(x, 3),
        x.roll((1, -2), (2, 3)),
    )


def _resized(x: torch.Tensor, grid: torch.Tensor) -> tuple[torch.Tensor, ...]:
    sampled = [F.grid_sample(x, grid, m, p, align_corners=a) for m, p, a in _GRIDS]
    return *sampled, F.interpolate(x, (4, 9), mode="bicubic"), F.adaptive_avg_pool2d(x, (4, 5))


_GRIDS = (
    ("bilinear", "zeros", False),
    ("nearest", "border", True),
    ("bilinear", "reflection", True),
)


def _scattered(x: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, ...]:
    zeros, changed = torch.zeros_like(x), x.clone()
    changed[at[:, 0], at[:, 1]] = 0
    changed[:, ::2] += 1
    rows = zeros.scatter_add(0, at, x), zeros.scatter(0, at[:1], 2.5), x.gather(1, at)
    return (
        *rows,
        zeros.index_add(0, at[:, 0], x),
        F.one_hot(at, 4),
        changed,
        x.masked_scatter(x > 0, -x),
    )


def _outside_core(x: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, ...]:
    edges = torch.tensor([-1.0, 0.0, 1.0])
    moments = *torch.var_mean(x, 1), *torch.std_mean(x), F.rrelu(x), torch.bucketize(x, edges)
    whole = n << 3, n >> 1, torch.tril_indices(3, 4) + n.sum()
    pooled = F.adaptive_max_pool2d(x.reshape(1, 3, 2, 4), (1, 2))
    return *moments, *whole, pooled, torch.addmv(x[:, 0], x, x[0], beta=0.5)


def _joined(*parts: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return parts of every two element types put together, and written into a boolean one."""
    together = [torch.cat([a, b, a]) for a, b in itertools.combinations(parts, 2)]
    into, row = parts[-1], [part[0] for part in parts]
    inside = [torch.slice_scatter(into, part[:1], 0, 1, 2) for part in parts]
    selected = [torch.select_scatter(into, one, 0, 0) for one in row]
    return *together, torch.stack([parts[0], parts[5]], 1), *inside, *selected


def _of_every_type() -> list[torch.Tensor]:
    floats = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
    wholes = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
    values = torch.tensor([[0.25, 3.0, 0.0], [1.0, 2.5, 5.0]])
    return [values.to(dtype) for dtype in (*floats, *wholes)]


def _losses(x: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, ...]:
    soft = F.softmax(x.flip(0), 1)
    return (
        F.cross_entropy(x, at, label_smoothing=0.1),
        F.kl_div(F.log_softmax(x, 1), soft, reduction="batchmean"),
        F.binary_cross_entropy_with_logits(x, soft),
        torch.cdist(x, soft),
        F.cosine_similarity(x, soft),
    )


def _first_rows(x: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, ...]:
    count = n.item()
    torch._check(count >= 1)
    torch._check(count <= x.shape[0])
    return x[:count] * 2, x[:, : x.shape[1]], torch.zeros(count)


FAMILIES: dict[str, Sample] = {
    "cells": Sample(Cells, (_random(5, 2, 4), *_random(2, 4, 2, 3)), tolerance=1e-4),
    "circular": of(_circular, X),
    "first_rows": of(_first_rows, X, torch.tensor(2), further=((X + 1, torch.tensor(3)),)),
    "joined": of(_joined, *_of_every_type()),
    "losses": of(_losses, _random(4, 5), torch.tensor([0, 4, 2, 1]), tolerance=1e-4),
    "masked_encoder": Sample(
        MaskedEncoder,
        (torch.arange(10).reshape(2, 5), torch.ones(2, 5, dtype=torch.bool)),
        ((torch.arange(36).reshape(4, 9) % 20, torch.arange(36).reshape(4, 9) % 5 > 0),),
        ({0: BATCH, 1: LENGTH}, {0: BATCH, 1: LENGTH}),
        1e-4,
    ),
    "memory": Sample(
        Memory,
        (_random(2, 4), torch.tensor([0, 1])),
        ((_random(2, 4), torch.tensor([3, 1])),),
    ),
    "moved": of(_moved, IMAGE, tolerance=1e-4),
    "outside_core": of(_outside_core, X, WHOLE, tolerance=1e-4),
    "packs": of(_packs, X),
    "parts_that_write": of(lambda x: (torch.block_diag(x, x), x.renorm(2, 0, 1.0)), X),
    "quantized": Sample(Quantized, (X,)),
    "resized": of(_resized, IMAGE, _random(1, 4, 5, 2).sigmoid() * 2 - 1, tolerance=1e-4),
    "scattered": of(_scattered, _random(4, 6), torch.arange(24).reshape(4, 6) % 4),
}


@pytest.mark.interop
@pytest.mark.parametrize("name", FAMILIES)
def test_family_on_the_stock_runtime_equals_eager(name: str, stock: Stock) -> None:
    sample = FAMILIES[name]
    module = module_of(sample)
    wanted = eager_outputs(module, calls_of(sample))
    buffer = to_edge(exported(sample, module)).to_executorch().buffer
    found = stock.run(buffer, [("forward", flat(inputs)) for inputs in calls_of(sample)])
    assert_equal(found, wanted, sample.tolerance)


def test_part_that_writes_through_a_view_is_not_lost() -> None:
    sample = of(lambda x: torch.vander(x, 3), torch.arange(1.0, 4.0))
    program = exported(sample, module_of(sample))
    config = EdgeCompileConfig(_core_aten_ops_exception_list=[torch.ops.aten.cumprod.default])
    graph = to_edge(program, compile_config=config).exported_program().graph
    result = graph.output_node().args[0][0]
    assert any("cumprod" in str(node.target) for node in _reads(result))


def _reads(node: torch.fx.Node) -> set[torch.fx.Node]:
    found = {node}
    for given in node.all_input_nodes:
        found |= _reads(given)
    return found


@pytest.mark.parametrize("checked", [True, False])
def test_operator_outside_the_core_set_stays_whole_for_who_lets_it_through(checked: bool) -> None:
    sample = of(lambda x: x << 1, WHOLE)
    listed = [torch.ops.aten.__lshift__.Scalar] if checked else []
    config = EdgeCompileConfig(_check_ir_validity=checked, _core_aten_ops_exception_list=listed)
    graph = to_edge(exported(sample, module_of(sample)), compile_config=config).exported_program()
    assert any("lshift" in str(node.target) for node in graph.graph.nodes)


def test_operator_outside_the_core_set_without_parts_is_refused() -> None:
    sample = of(lambda x: x << 40, WHOLE)
    with pytest.raises(SpecViolationError, match="aten::__lshift__"):
        to_edge(exported(sample, module_of(sample)))
