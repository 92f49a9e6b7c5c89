"""Small programs, each about one thing: a module, its inputs, and whether shapes may change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  torch's own habit

from tests.compiler import more_nets, nets

Function = Callable[..., Any]


@dataclass(frozen=True)
class Sample:
    """A program to compile.

    Attributes:
        make: builds the module
        inputs: example inputs
        further: inputs of further calls, in order; state is kept between calls
        dynamic: dynamic shapes for export
        tolerance: of max|a−b| / max|b|
    """

    make: Callable[[], nn.Module]
    inputs: tuple[Any, ...]
    further: tuple[tuple[Any, ...], ...] = ()
    dynamic: Any = None
    tolerance: float = 1e-5


class Apply(nn.Module):
    """A function as a module."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def of(function: Function, *inputs: Any, **options: Any) -> Sample:
    return Sample(lambda: Apply(function), inputs, **options)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        parts = (p(x).view(2, 6, 4, 4).transpose(1, 2) for p in (self.query, self.key, self.value))
        out = F.scaled_dot_product_attention(*parts, attn_mask=mask)
        return out.transpose(1, 2).reshape(2, 6, 16)


class Cache(nn.Module):
    """Keys written at a position into a buffer that keeps them."""

    cache: torch.Tensor

    def __init__(self, *, through_view: bool) -> None:
        super().__init__()
        self.through_view = through_view
        self.register_buffer("cache", torch.zeros(1, 8, 4))

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        if self.through_view:
            self.cache[:, 2:3].copy_(x)
        else:
            self.cache.index_copy_(1, position, x)
        return self.cache.sum(1) + x[:, 0]


class Counter(nn.Module):
    """A buffer with an initial value of its own, and one of integers."""

    total: torch.Tensor
    calls: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.tensor([1.0, 2.0, 3.0]))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        before = self.total
        self.total.add_(x)
        self.calls += 1
        return before * 2, self.calls + 0


class InPlace(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        z = y
        y.relu_()
        y += x
        z.mul_(3)
        return y.sigmoid_() + z


class WriteThroughView(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[:, 1:3] = 7
        first, second = y.chunk(2, dim=0)
        first.add_(1)
        return torch.cat([y, second])


class Pools(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            F.max_pool2d(x, 3, stride=2, padding=1),
            F.avg_pool2d(x, 2),
            F.adaptive_avg_pool2d(x, 1),
            F.interpolate(x, scale_factor=2, mode="nearest"),
            F.pad(x, (1, 2, 0, 1)),
        )


class Recurrent(nn.Module):
    def __init__(self, kind: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.cell = kind(8, 6, num_layers=2, batch_first=True)

    def forward(self, x: torch.Tensor) -> Any:
        out, state = self.cell(x)
        return (out, *state) if isinstance(state, tuple) else (out, state)


class Embeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, 8)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return F.linear(self.table(tokens), self.table.weight)  # tied


def conv_bn(layout: torch.memory_format = torch.contiguous_format) -> nn.Module:
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
    for moments in (net[1].running_mean, net[1].running_var):
        moments.data.uniform_(0.5, 2)
    return net.to(memory_format=layout)


def _channels_last(net: Any) -> nn.Module:
    return net.to(memory_format=torch.channels_last)


def _shapes(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    a, b = torch.split(x, [1, 3], dim=1)
    stacked = torch.stack([x[0], x[1]], dim=-1)
    joined = torch.cat([a, b[:, ::2], x[:, -1:]], dim=1)
    return stacked, joined, x.index_select(1, torch.tensor([2, 0])), x.flip(0), x[..., 1].T


def _indexing(x: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x[at], x[:, at % 3], torch.gather(x, 1, at[:, None]), torch.where(x > 0, x, -x)


def _integers(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x + y, x // 2, x % 3, (x > y) & (y != 2), ~(x == y), x.sum(0), x.to(torch.float32) / y


def _reductions(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    top = x.topk(2, dim=1)
    return x.amax(1), x.var(1), x.argmax(1), x.mean(), x.cumsum(1), top.values, top.indices


def _mixed(x: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x + n, x * 2, 1 - x, n / 2, x.to(torch.float64) + 1, torch.full_like(x, 3.0) - x


def _elementwise(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = torch.tanh(x) * torch.exp(-y.abs()) + F.gelu(x) - F.silu(y)
    return z.clamp(-1, 2) ** 2 + torch.rsqrt(x * x + 1) + F.hardswish(y) + F.leaky_relu(x)


def _nested(batch: dict[str, torch.Tensor], scale: float) -> dict[str, Any]:
    return {"sum": batch["a"] + batch["b"] * scale, "pair": [batch["a"], batch["b"].neg()]}


ROWS = {0: torch.export.Dim("rows", min=2, max=9)}
X, Y = torch.randn(2, 4, 5), torch.randn(2, 4, 5)
IMAGE = torch.randn(2, 3, 12, 12)
CAUSAL = torch.ones(6, 6, dtype=torch.bool).tril()
POSITION = torch.tensor([1])

SAMPLES: dict[str, Sample] = {
    "attention": Sample(Attention, (torch.randn(2, 6, 16), CAUSAL)),
    "bfloat16": of(lambda x: x * 2 + x.relu(), X.bfloat16()),
    "bool_output": of(lambda x: (x > 0, x.isnan().logical_not()), X),
    "channels_last": Sample(
        lambda: conv_bn(torch.channels_last), (IMAGE.to(memory_format=torch.channels_last),)
    ),
    "channels_last_mixed": of(
        lambda x: (F.max_pool2d(x * 2 + 1, 2).mean((2, 3)), torch.cat([x, x], 1), x.sum(1)),
        IMAGE.to(memory_format=torch.channels_last),
    ),
    "constant_tensor": of(lambda x: x + torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]), X),
    "conv_bn": Sample(conv_bn, (IMAGE,)),
    "conv_transpose": Sample(lambda: nn.ConvTranspose2d(3, 4, 3, stride=2), (IMAGE,)),
    "counter": Sample(Counter, (torch.ones(3),), ((torch.randn(3),), (torch.ones(3),))),
    "dropout": Sample(lambda: nn.Sequential(nn.Dropout(), nn.Linear(5, 3)), (X,)),
    "dynamic_batch": Sample(
        lambda: nn.Sequential(nn.Linear(5, 3), nn.Softmax(-1)),
        (torch.randn(4, 5),),
        ((torch.randn(2, 5),), (torch.randn(9, 5),)),
        (ROWS,),
    ),
    "dynamic_shapes": of(
        lambda x: (x.reshape(-1, 2), torch.cat([x, x]), x.sum(0), x * x.shape[0]),
        torch.randn(4, 6),
        further=((torch.randn(7, 6),),),
        dynamic=((ROWS,),),
    ),
    "elementwise": of(_elementwise, X, Y),
    "embedding_tied": Sample(Embeddings, (torch.tensor([[1, 5, 19], [0, 2, 2]]),)),
    "empty_tensor": of(lambda x: torch.cat([x[:0], x], 0), X),
    "einsum": of(lambda a, b: torch.einsum("bij,bkj->bik", a, b), X, Y),
    "expand": of(lambda x: x[:, :1].expand(2, 4, 5) + x.repeat(1, 2, 1)[:, :4], X),
    "float16": of(lambda x: x + 1, X.half()),
    "group_norm": Sample(lambda: nn.GroupNorm(2, 4), (X,)),
    "gru": Sample(lambda: Recurrent(nn.GRU), (torch.randn(2, 5, 8),)),
    "identity": of(lambda x: x, X),
    "in_place": Sample(InPlace, (X,)),
    "indexing": of(_indexing, torch.randn(4, 3), torch.tensor([2, 0, 1, 2])),
    "instance_norm": Sample(lambda: nn.InstanceNorm2d(3), (IMAGE,)),
    "integers": of(_integers, torch.arange(1, 7), torch.tensor([3, 2, 1, 4, 5, 7])),
    "kv_cache": Sample(
        lambda: Cache(through_view=False),
        (torch.randn(1, 1, 4), POSITION),
        ((torch.randn(1, 1, 4), POSITION + 3),),
    ),
    "kv_cache_through_view": Sample(
        lambda: Cache(through_view=True),
        (torch.randn(1, 1, 4), POSITION),
        ((torch.randn(1, 1, 4), POSITION),),
    ),
    "layer_norm": Sample(lambda: nn.LayerNorm(5), (X,)),
    "linear": Sample(lambda: nn.Linear(5, 3, bias=False), (X,)),
    "lstm": Sample(lambda: Recurrent(nn.LSTM), (torch.randn(2, 5, 8),)),
    "matmul": of(lambda a, b: (a @ b.transpose(1, 2), a[0] @ b[0].T), X, Y),
    "mixed_types": of(_mixed, X, torch.arange(5)),
    "multi_head": Sample(
        lambda: nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), (torch.randn(2, 6, 16),)
    ),
    "nested_structures": of(_nested, {"a": X, "b": Y}, 2.5),
    "no_grad": of(lambda x: torch.no_grad()(lambda y: y * 2)(x) + 1, X),
    "pixel_shuffle": of(lambda x: F.pixel_shuffle(x, 2), torch.randn(1, 8, 3, 3)),
    "pools": Sample(Pools, (IMAGE,)),
    "reductions": of(_reductions, torch.randn(4, 6)),
    "same_output_twice": of(lambda x: (x + 1, (x + 1).neg(), x.neg()), X),
    "shapes": of(_shapes, torch.randn(2, 4, 3)),
    "softmax": of(lambda x: (F.softmax(x, -1), F.log_softmax(x, 1)), X),
    "unused_input": of(lambda x, _: x.neg(), X, Y),
    "write_through_view": Sample(WriteThroughView, (torch.randn(4, 4),)),
}

NETS: dict[str, Sample] = {
    "mobile_net": Sample(nets.mobile_net, (torch.randn(1, 3, 64, 64),), tolerance=1e-4),
    "res_net": Sample(nets.res_net, (torch.randn(1, 3, 64, 64),), tolerance=1e-4),
    "cached_decoder": Sample(
        more_nets.CachedDecoder,
        (torch.tensor([[3]]), torch.tensor([0])),
        tuple((torch.tensor([[step]]), torch.tensor([step])) for step in (1, 2)),
    ),
    "depthwise_two_heads": Sample(
        more_nets.DepthwiseTwoHeads, (torch.randn(1, 3, 16, 16),), tolerance=1e-4
    ),
    "depthwise_channels_last": Sample(
        lambda: _channels_last(more_nets.DepthwiseTwoHeads()),
        (torch.randn(1, 3, 16, 16).to(memory_format=torch.channels_last),),
        tolerance=1e-4,
    ),
    "gated_counts": Sample(
        more_nets.GatedCounts, (torch.randn(2, 5, 6), torch.rand(2, 5) > 0.3), tolerance=1e-4
    ),
    "half_net": Sample(lambda: conv_bn().half(), (IMAGE.half(),), tolerance=8e-3),
    "mobile_net_v3": Sample(more_nets.mobile_net_v3, (torch.randn(1, 3, 32, 32),), tolerance=1e-4),
    "speech": Sample(
        more_nets.SpeechNet, (torch.randn(2, 4, 8), *torch.zeros(2, 2, 2, 6)), tolerance=1e-4
    ),
    "small_vit": Sample(more_nets.SmallViT, (torch.randn(2, 3, 32, 32),), tolerance=1e-4),
    "transformer_bfloat16": Sample(
        lambda: nets.transformer().bfloat16(),
        (torch.randn(1, 7, 32, dtype=torch.bfloat16),),
        tolerance=4e-2,
    ),
    "u_net": Sample(more_nets.UNet, (torch.randn(1, 2, 16, 16),), tolerance=1e-4),
    "transformer": Sample(nets.transformer, (torch.randn(2, 7, 32),), tolerance=1e-4),
}
EVERY = {**SAMPLES, **NETS}
