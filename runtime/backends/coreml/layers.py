"""Matrix products, norms, recurrent layers and random numbers of MIL."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from runtime.backends.coreml.given import Given, ints, number

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "hard_sigmoid": lambda x: (0.2 * x + 0.5).clamp(0, 1),
    "linear": lambda x: x,
    "relu": torch.relu,
    "scaled_tanh": lambda x: 1.7159 * torch.tanh(x * (2 / 3)),
    "sigmoid": torch.sigmoid,
    "sigmoid_hard": lambda x: (0.2 * x + 0.5).clamp(0, 1),
    "tanh": torch.tanh,
}


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return F.linear(x, weight, bias)


def _matmul(x: Tensor, y: Tensor, transpose_x: Given = False, transpose_y: Given = False) -> Tensor:
    return torch.matmul(x.mT if transpose_x else x, y.mT if transpose_y else y)


def _attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None
) -> Tensor:
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if attn_mask is not None and attn_mask.dtype is torch.bool:
        scores = scores.masked_fill(~attn_mask, -torch.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    return torch.softmax(scores, -1) @ value


def _einsum(values: Sequence[Tensor], equation: str) -> Tensor:
    return torch.einsum(equation, *values)


def _batch_norm(
    x: Tensor,
    mean: Tensor,
    variance: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    epsilon: Given = 1e-5,
) -> Tensor:
    return F.batch_norm(x, mean, variance, gamma, beta, eps=float(epsilon))


def _instance_norm(
    x: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None, epsilon: Given = 1e-5
) -> Tensor:
    return F.instance_norm(x, weight=gamma, bias=beta, eps=float(epsilon))


def _layer_norm(
    x: Tensor,
    axes: Given = None,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    epsilon: Given = 1e-5,
) -> Tensor:
    rank = x.dim()
    dims = list(range(rank)) if axes is None else sorted(one % rank for one in ints(axes))
    sizes = [x.shape[dim] for dim in dims]
    if dims == list(range(rank - len(dims), rank)):
        return F.layer_norm(x, sizes, _of(gamma, sizes), _of(beta, sizes), float(epsilon))
    mean = x.mean(dims, keepdim=True)
    scale = torch.rsqrt(x.var(dims, unbiased=False, keepdim=True) + float(epsilon))
    wide = [size if dim in dims else 1 for dim, size in enumerate(x.shape)]
    made = (x - mean) * scale
    if gamma is not None:
        made = made * gamma.reshape(wide)
    return made if beta is None else made + beta.reshape(wide)


def _of(value: Tensor | None, sizes: Sequence[int]) -> Tensor | None:
    return None if value is None else value.reshape(tuple(sizes))


def _l2_norm(x: Tensor, epsilon: Given = 1e-6) -> Tensor:
    dims = list(range(max(0, x.dim() - 3), x.dim()))
    return x * torch.rsqrt(x.square().sum(dims, keepdim=True) + float(epsilon))


def _response_norm(
    x: Tensor, size: Given, alpha: Given = 1e-4, beta: Given = 0.75, k: Given = 1.0
) -> Tensor:
    return F.local_response_norm(x, int(size), float(alpha), float(beta), float(k))


# ---- recurrent
def _steps(x: Tensor, direction: str) -> Sequence[Tensor]:
    rows = x.unbind(0)
    return rows[::-1] if direction == "reverse" else rows


def _sequence(rows: list[Tensor], direction: str, *, whole: bool) -> Tensor:
    if not whole:
        return rows[-1].unsqueeze(0)
    return torch.stack(rows[::-1] if direction == "reverse" else rows)


def _rnn(  # noqa: PLR0913 - those of the operator
    x: Tensor,
    initial_h: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias: Tensor | None = None,
    direction: str = "forward",
    output_sequence: Given = False,
    activation: str = "tanh",
) -> tuple[Tensor, Tensor]:
    run, h = _ACTIVATIONS[activation], initial_h
    rows: list[Tensor] = []
    for step in _steps(F.linear(x, weight_ih, bias), direction):
        h = run(step + h @ weight_hh.mT)
        rows.append(h)
    return _sequence(rows, direction, whole=bool(output_sequence)), h


def _gru(  # noqa: PLR0913 - those of the operator
    x: Tensor,
    initial_h: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias: Tensor | None = None,
    direction: str = "forward",
    output_sequence: Given = False,
    recurrent_activation: str = "sigmoid",
    activation: str = "tanh",
    reset_after: Given = False,
    input_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Gates in the order reset, output, update."""
    gate, run, h = _ACTIVATIONS[recurrent_activation], _ACTIVATIONS[activation], initial_h
    inside = bias if reset_after else None  # of the product that the reset gate scales
    outside = input_bias if reset_after or bias is None else bias
    if not reset_after and bias is not None and input_bias is not None:
        outside = bias + input_bias
    rows: list[Tensor] = []
    for step in _steps(F.linear(x, weight_ih, outside), direction):
        (ir, io, iz), (hr, ho, hz) = step.chunk(3, -1), F.linear(h, weight_hh, inside).chunk(3, -1)
        update = gate(iz + hz)
        h = (1 - update) * run(io + gate(ir + hr) * ho) + update * h
        rows.append(h)
    return _sequence(rows, direction, whole=bool(output_sequence)), h


def _lstm_way(
    x: Tensor, state: tuple[Tensor, Tensor], weights: Sequence[Any], facts: dict[str, Given]
) -> tuple[list[Tensor], Tensor, Tensor]:
    """Return the hidden states in the order of computation, and the last of both."""
    weight_ih, weight_hh, bias, peephole = weights
    gate = _ACTIVATIONS[facts["recurrent_activation"]]
    cell, run = _ACTIVATIONS[facts["cell_activation"]], _ACTIVATIONS[facts["activation"]]
    h, c = state
    pi, pf, po = (0.0, 0.0, 0.0) if peephole is None else peephole.chunk(3, -1)
    rows: list[Tensor] = []
    for step in _steps(F.linear(x, weight_ih, bias), facts["way"]):
        i, f, o, z = (step + h @ weight_hh.mT).chunk(4, -1)
        new = gate(f + pf * c) * c + gate(i + pi * c) * cell(z)
        if facts["clip"] is not None:
            new = new.clamp(-facts["clip"], facts["clip"])
        c = new
        h = gate(o + po * c) * run(c)
        rows.append(h)
    return rows, h, c


def _lstm(  # noqa: PLR0913 - those of the operator
    x: Tensor,
    initial_h: Tensor,
    initial_c: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias: Tensor | None = None,
    peephole: Tensor | None = None,
    weight_ih_back: Tensor | None = None,
    weight_hh_back: Tensor | None = None,
    bias_back: Tensor | None = None,
    peephole_back: Tensor | None = None,
    direction: str = "forward",
    output_sequence: Given = False,
    recurrent_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    activation: str = "tanh",
    clip: Given = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gates in the order input, forget, output, cell."""
    facts: dict[str, Given] = {
        "recurrent_activation": recurrent_activation,
        "cell_activation": cell_activation,
        "activation": activation,
        "clip": None if clip is None else float(number(clip)),
        "way": "forward" if direction == "bidirectional" else direction,
    }
    whole = bool(output_sequence)
    ahead = weight_ih, weight_hh, bias, peephole
    if direction != "bidirectional":
        rows, h, c = _lstm_way(x, (initial_h, initial_c), ahead, facts)
        return _sequence(rows, direction, whole=whole), h, c
    back = weight_ih_back, weight_hh_back, bias_back, peephole_back
    hs, cs = initial_h.chunk(2, -1), initial_c.chunk(2, -1)
    first, h1, c1 = _lstm_way(x, (hs[0], cs[0]), ahead, facts)
    second, h2, c2 = _lstm_way(x, (hs[1], cs[1]), back, {**facts, "way": "reverse"})
    joined = [
        _sequence(first, "forward", whole=whole),
        _sequence(second, "reverse", whole=whole),
    ]
    return torch.cat(joined, -1), torch.cat([h1, h2], -1), torch.cat([c1, c2], -1)


# ---- random
def _generator(seed: Given) -> torch.Generator | None:
    chosen = int(number(seed))
    return None if chosen < 0 else torch.Generator().manual_seed(chosen)


def _uniform(shape: Given, low: Given = 0.0, high: Given = 1.0, seed: Given = -1) -> Tensor:
    made = torch.rand(ints(shape), generator=_generator(seed))
    return made * (number(high) - number(low)) + number(low)


def _normal(shape: Given, mean: Given = 0.0, stddev: Given = 1.0, seed: Given = -1) -> Tensor:
    made = torch.randn(ints(shape), generator=_generator(seed))
    return made * number(stddev) + number(mean)


def _bernoulli(shape: Given, prob: Given = 0.5, seed: Given = -1) -> Tensor:
    return (torch.rand(ints(shape), generator=_generator(seed)) < number(prob)).float()


def _categorical(x: Tensor, mode: str = "logits", size: Given = 1, seed: Given = -1) -> Tensor:
    shares = torch.softmax(x, -1) if mode == "logits" else x
    return torch.multinomial(shares, int(number(size)), True, generator=_generator(seed))


TABLE: dict[str, Callable[..., Any]] = {
    "batch_norm": _batch_norm,
    "einsum": _einsum,
    "gru": _gru,
    "instance_norm": _instance_norm,
    "l2_norm": _l2_norm,
    "layer_norm": _layer_norm,
    "linear": _linear,
    "local_response_norm": _response_norm,
    "lstm": _lstm,
    "matmul": _matmul,
    "random_bernoulli": _bernoulli,
    "random_categorical": _categorical,
    "random_normal": _normal,
    "random_uniform": _uniform,
    "rnn": _rnn,
    "scaled_dot_product_attention": _attention,
}
