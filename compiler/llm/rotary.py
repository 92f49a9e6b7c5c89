"""Rotary embeddings: cosine and sine by position."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch

from compiler.errors import CompileError

Tensor = torch.Tensor
_ORIGINAL = "original_max_position_embeddings"
_LONGEST = "max_position_embeddings"


class RopeError(CompileError, ValueError):
    """A scaling that is not known or does not fit.

    Attributes:
        member: of the sizes of a model, ``rope_scaling`` or one in it
        problem: what is wrong with it
    """

    def __init__(self, name: str, problem: str) -> None:
        self.member = f"rope_scaling.{name}" if name else "rope_scaling"
        self.problem = problem
        super().__init__(f"{self.member}: {problem}")


@dataclass(frozen=True)
class Frequencies:
    """The angle of each position, by pair of values.

    Some kinds have other ones for a call that ends beyond a limit.

    Shapes: rows [calls, size / 2]

    Attributes:
        rows: the first for calls that end within the limit, the next ones for those that end one
            position beyond it, two, and so on; the last for all that end later
        limit: positions
        factor: of cosine and sine
    """

    rows: Tensor
    limit: int = 0
    factor: float = 1.0

    @property
    def is_fixed(self) -> bool:
        """Return whether they are the same for all calls."""
        return len(self.rows) == 1


def rotary_frequencies(
    size: int, length: int, theta: float, scaling: Mapping[str, Any] | None = None
) -> Frequencies:
    """Return the angles of a model's positions.

    Args:
        size: of the rotated part of a head
        length: number of positions
        theta: base of the frequencies
        scaling: ``rope_scaling`` of a model's configuration

    Raises: RopeError for an unknown kind of scaling
    """
    given = dict(scaling or {})
    kind = given.get("rope_type") or given.get("type") or "default"
    if not isinstance(kind, str) or kind not in _KINDS:
        raise RopeError("", f"unknown {kind!r}; available: {', '.join(_KINDS)}")
    return _KINDS[kind](_Rotary(size, length, theta), given)


def turns_at(positions: Tensor, angles: Frequencies) -> tuple[Tensor, Tensor]:
    """Return cosine and sine of the positions of a call.

    Shapes: positions: [tokens]; results: [tokens, size]
    """
    frequencies = angles.rows[0]
    if not angles.is_fixed:
        beyond = positions[-1:] + 1 - angles.limit
        frequencies = angles.rows[beyond.clamp(0, len(angles.rows) - 1)]
    turned = positions.float().unsqueeze(1) * frequencies
    both = torch.cat((turned, turned), -1)
    return both.cos() * angles.factor, both.sin() * angles.factor


@dataclass(frozen=True, slots=True)
class _Rotary:
    size: int
    length: int
    theta: float

    @property
    def plain(self) -> Tensor:
        """Return the frequencies without scaling.

        Shapes: result: [size / 2]
        """
        return 1.0 / self.theta**self.exponents

    @property
    def exponents(self) -> Tensor:
        return torch.arange(0, self.size, 2, dtype=torch.int64).float() / self.size


def _default(of: _Rotary, _scaling: Mapping[str, Any]) -> Frequencies:
    return Frequencies(of.plain.unsqueeze(0))


def _linear(of: _Rotary, scaling: Mapping[str, Any]) -> Frequencies:
    return Frequencies((of.plain / _positive(scaling, "factor")).unsqueeze(0))


def _dynamic(of: _Rotary, scaling: Mapping[str, Any]) -> Frequencies:
    """Return a base that grows with what a call exceeds the positions of the training by."""
    limit, factor = _positions(scaling, _LONGEST), _positive(scaling, "factor")
    if of.size <= 2:  # at every length, as the sizes are checked before the length is known
        raise RopeError("", f"dynamic needs more than 2 turned elements, found {of.size}")
    if of.length <= limit:
        return _default(of, scaling)
    ends = torch.arange(limit, of.length + 1, dtype=torch.float64)
    grown = (factor * ends / limit - (factor - 1)) ** (of.size / (of.size - 2))
    bases = (of.theta * grown).float().unsqueeze(1)
    return Frequencies(1.0 / bases**of.exponents, limit)


def _yarn(of: _Rotary, scaling: Mapping[str, Any]) -> Frequencies:
    """Return fast frequencies as they are, slow ones divided, and a blend of both between."""
    original = _positive(scaling, _ORIGINAL)
    longest = _positive(scaling, _LONGEST, original)
    factor = _positive(scaling, "factor", longest / original)
    if of.theta <= 1:
        raise RopeError("", f"yarn needs a rope_theta above 1, found {of.theta}")

    def pair_of(turns: float) -> float:
        """Return the pair that turns as often within the original positions."""
        return of.size * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(of.theta))

    begin = pair_of(_positive(scaling, "beta_fast", 32.0))
    end = pair_of(_positive(scaling, "beta_slow", 1.0))
    if scaling.get("truncate", True):
        begin, end = math.floor(begin), math.ceil(end)
    begin, end = max(begin, 0), min(end, of.size - 1)
    pairs = torch.arange(of.size // 2, dtype=torch.float32)
    slow = ((pairs - begin) / ((end - begin) or 0.001)).clamp(0, 1)
    blend = of.plain / factor * slow + of.plain * (1 - slow)
    return Frequencies(blend.unsqueeze(0), factor=_yarn_factor(scaling, factor))


def _yarn_factor(scaling: Mapping[str, Any], factor: float) -> float:
    """Return the factor of cosine and sine, which keeps the entropy of longer attention."""
    if scaling.get("attention_factor") is not None:
        return _positive(scaling, "attention_factor")

    def by(part: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * part * math.log(factor) + 1.0

    if scaling.get("mscale") and scaling.get("mscale_all_dim"):
        return by(_positive(scaling, "mscale")) / by(_positive(scaling, "mscale_all_dim"))
    return by(1.0)


def _positive(scaling: Mapping[str, Any], name: str, default: float | None = None) -> float:
    """Return a member of a scaling.

    Raises: RopeError if it is missing or not a positive number
    """
    found = default if scaling.get(name) is None else scaling[name]
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < math.inf:
        raise RopeError(name, f"expected a positive number, found {found!r:.40}")
    return found


def _positions(scaling: Mapping[str, Any], name: str) -> int:
    """Return a member of a scaling that counts positions.

    Raises: RopeError if it is missing or less than 1
    """
    found = _positive(scaling, name)
    if found < 1:
        raise RopeError(name, f"expected at least 1, found {found!r:.40}")
    return int(found)


def _factors(scaling: Mapping[str, Any], name: str, count: int) -> Tensor:
    """Return the list of a scaling that has a positive number for each frequency.

    Raises: RopeError
    """
    given: Any = scaling.get(name)
    listed = cast("list[Any]", given) if isinstance(given, list) else []
    if len(listed) != count:
        words = f"expected {count} numbers, found {len(listed)}"
        raise RopeError(name, words)
    return torch.tensor([_positive({name: one}, name) for one in listed])


def _llama3(of: _Rotary, scaling: Mapping[str, Any]) -> Frequencies:
    """Return frequencies of which low ones are divided, high ones are kept."""
    frequencies = of.plain
    factor, original = _positive(scaling, "factor"), _positive(scaling, _ORIGINAL)
    low, high = _positive(scaling, "low_freq_factor"), _positive(scaling, "high_freq_factor")
    if high <= low:
        raise RopeError("high_freq_factor", f"{high} is not above low_freq_factor {low}")
    lengths = 2 * math.pi / frequencies
    smooth = (original / lengths - low) / (high - low)
    between = (1 - smooth) * frequencies / factor + smooth * frequencies
    found = torch.where(lengths > original / low, frequencies / factor, frequencies)
    inside = (lengths >= original / high) & (lengths <= original / low)
    return Frequencies(torch.where(inside, between, found).unsqueeze(0))


def _longrope(of: _Rotary, scaling: Mapping[str, Any]) -> Frequencies:
    """Return frequencies divided one by one, for calls that end beyond the training or not."""
    original = _positions(scaling, _LONGEST if scaling.get(_ORIGINAL) is None else _ORIGINAL)
    longest = _positive(scaling, _LONGEST, original)
    short, long = (
        of.plain / _factors(scaling, name, of.size // 2) for name in ("short_factor", "long_factor")
    )
    rows = torch.stack((short, long)) if of.length > original else short.unsqueeze(0)
    attention = scaling.get("attention_factor")
    if attention is None:
        ratio = _positive(scaling, "factor", longest / original)
        if ratio > 1 and original == 1:
            raise RopeError(_ORIGINAL, "expected above 1, found 1")
        attention = 1.0 if ratio <= 1 else math.sqrt(1 + math.log(ratio) / math.log(original))
    return Frequencies(rows, original, float(attention))


_KINDS: Mapping[str, Callable[[_Rotary, Mapping[str, Any]], Frequencies]] = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "yarn": _yarn,
    "llama3": _llama3,
    "longrope": _longrope,
}


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
