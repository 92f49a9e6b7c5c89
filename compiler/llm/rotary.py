"""Rotary embeddings: tables of cosine and sine by position."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import torch

from compiler.errors import CompileError

Tensor = torch.Tensor
_ORIGINAL = "original_max_position_embeddings"


class RopeError(CompileError, ValueError):
    """A kind of scaling that is not known."""


def rotary_tables(
    size: int, length: int, theta: float, scaling: Mapping[str, Any] | None = None
) -> tuple[Tensor, Tensor]:
    """Return cosine and sine for each position.

    Args:
        size: of the rotated part of a head
        length: number of positions
        theta: base of the frequencies
        scaling: ``rope_scaling`` of a model's configuration

    Shapes: results: [length, size]

    Raises: RopeError for an unknown kind of scaling
    """
    frequencies, factor = rotary_frequencies(size, length, theta, scaling)
    return turns_at(torch.arange(length), frequencies, factor)


def rotary_frequencies(
    size: int, length: int, theta: float, scaling: Mapping[str, Any] | None = None
) -> tuple[Tensor, float]:
    """Return the angle of each position by pair of values, and the factor of cosine and sine.

    Args:
        size: of the rotated part of a head
        length: number of positions
        theta: base of the frequencies
        scaling: ``rope_scaling`` of a model's configuration

    Shapes: first result: [size / 2]

    Raises: RopeError for an unknown kind of scaling
    """
    frequencies = 1.0 / theta ** (torch.arange(0, size, 2, dtype=torch.int64).float() / size)
    return _scaled(frequencies, length, dict(scaling or {}))


def turns_at(positions: Tensor, frequencies: Tensor, factor: float) -> tuple[Tensor, Tensor]:
    """Return cosine and sine of positions.

    Shapes: positions: [tokens]; frequencies: [size / 2]; results: [tokens, size]
    """
    angles = positions.float().unsqueeze(1) * frequencies
    both = torch.cat((angles, angles), -1)
    return both.cos() * factor, both.sin() * factor


def _scaled(frequencies: Tensor, length: int, scaling: dict[str, Any]) -> tuple[Tensor, float]:
    kind = scaling.get("rope_type") or scaling.get("type") or "default"
    if kind == "default":
        return frequencies, 1.0
    if kind == "linear":
        return frequencies / _positive(scaling, "factor"), 1.0
    if kind == "llama3":
        return _llama3(frequencies, scaling), 1.0
    if kind == "longrope":
        return _longrope(frequencies, length, scaling)
    raise RopeError(f"unknown rope scaling {kind!r}; available: default, linear, llama3, longrope")


def _positive(scaling: Mapping[str, Any], name: str, default: float | None = None) -> float:
    """Return a member of a scaling.

    Raises: RopeError if it is missing or not a positive number
    """
    found = scaling.get(name, default)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < math.inf:
        raise RopeError(f"rope scaling: {name}: expected a positive number, found {found!r:.40}")
    return found


def _factors(scaling: Mapping[str, Any], name: str, count: int) -> Tensor:
    """Return the list of a scaling that has a positive number for each frequency.

    Raises: RopeError
    """
    given: Any = scaling.get(name)
    listed = cast("list[Any]", given) if isinstance(given, list) else []
    if len(listed) != count:
        words = f"expected {count} numbers, found {len(listed)}"
        raise RopeError(f"rope scaling: {name}: {words}")
    return torch.tensor([_positive({name: one}, name) for one in listed])


def _llama3(frequencies: Tensor, scaling: dict[str, Any]) -> Tensor:
    """Return frequencies of which low ones are divided, high ones are kept."""
    factor, original = _positive(scaling, "factor"), _positive(scaling, _ORIGINAL)
    low, high = _positive(scaling, "low_freq_factor"), _positive(scaling, "high_freq_factor")
    if high <= low:
        raise RopeError(
            f"rope scaling: high_freq_factor: {high} is not above low_freq_factor {low}"
        )
    lengths = 2 * math.pi / frequencies
    smooth = (original / lengths - low) / (high - low)
    between = (1 - smooth) * frequencies / factor + smooth * frequencies
    found = torch.where(lengths > original / low, frequencies / factor, frequencies)
    inside = (lengths >= original / high) & (lengths <= original / low)
    return torch.where(inside, between, found)


def _longrope(frequencies: Tensor, length: int, scaling: dict[str, Any]) -> tuple[Tensor, float]:
    """Return frequencies divided one by one, for lengths beyond those of the training or not."""
    original = _positive(scaling, _ORIGINAL)
    longest = _positive(scaling, "max_position_embeddings", original)
    name = "long_factor" if length > original else "short_factor"
    factors = _factors(scaling, name, len(frequencies))
    attention = scaling.get("attention_factor")
    if attention is None:
        ratio = longest / original
        attention = 1.0 if ratio <= 1 else math.sqrt(1 + math.log(ratio) / math.log(original))
    return frequencies / factors, float(attention)


def rotated(values: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Return values turned by their position; a part beyond the tables is kept.

    Shapes: values: [1, tokens, heads, size]; cosine, sine: [tokens, at most size]
    """
    size = cosine.shape[-1]
    turned, kept = values[..., :size], values[..., size:]
    half = size // 2
    swapped = torch.cat((-turned[..., half:], turned[..., :half]), -1)
    found = turned * cosine.unsqueeze(1) + swapped * sine.unsqueeze(1)
    return found if values.shape[-1] == size else torch.cat((found, kept), -1)
