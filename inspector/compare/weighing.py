"""What a change brought and what it cost: latency, size, memory and error, weighed together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from inspector.compare.model import Comparison, Delta
from inspector.compare.statistics import ALIKE, TimeVerdict
from inspector.units import format_bytes, format_share, plain_text

BETTER, WORSE, SAME, UNKNOWN = "better", "worse", "not distinguishable", "unknown"
_MANY = 2.0  # times as much; a share says little beyond
_FILE = " in all"  # the figures of entire files
_RELATED = 0.2  # of the nodes; recompiled programs share nearly all recorded ones
_ERROR_ALIKE = 1.1  # errors of two runs of one program differ by as much on other kernels


@dataclass(frozen=True, slots=True)
class Weighed:
    """One quantity of a session beside that of the first.

    Attributes:
        area: latency, size, memory or error
        word: better, worse, not distinguishable or unknown
        text: phrase with the figures
    """

    area: str
    word: str
    text: str


def weigh(found: Comparison, number: int) -> tuple[Weighed, ...]:
    """Return the quantities of a session beside those of the first one, latency first."""
    return (
        _latency(found, number),
        _bytes("size", "size", _of(found, "size", _FILE), number),
        _bytes("memory", "peak memory", _of(found, "memory", "peak"), number),
        _error(_of(found, "gap", "largest error"), number),
    )


def time_verdict(found: Comparison, number: int) -> TimeVerdict | None:
    """Return the verdict on the measured times of a session beside the first, None without one."""
    for delta in found.summary:
        if delta.area == "time" and number < len(delta.verdicts):
            return delta.verdicts[number]
    return None


def how_much(ratio: float, more: str, less: str) -> str:
    """Return a ratio in words: a share, or a factor where it is large."""
    if ratio >= _MANY:
        return f"{ratio:.1f} times {more}"
    if 0 < ratio <= 1 / _MANY:
        return f"{1 / ratio:.1f} times {less}"
    return f"{abs(ratio - 1):.1%} {more if ratio > 1 else less}"


def _of(found: Comparison, area: str, what: str) -> list[Delta]:
    return [one for one in found.summary if one.area == area and one.what.endswith(what)]


def _latency(found: Comparison, number: int) -> Weighed:
    verdict = time_verdict(found, number)
    if verdict is not None and verdict.blocks and math.isfinite(verdict.high):
        if verdict.word == ALIKE:
            return Weighed("latency", SAME, f"latency {ALIKE}")
        word = WORSE if verdict.ratio > 1 else BETTER
        return Weighed("latency", word, how_much(verdict.ratio, "slower", "faster"))
    recorded = [one for one in found.summary if one.area == "time" and not one.verdicts]
    if verdict is None and any(one.difference(number) is not None for one in recorded):
        return Weighed("latency", UNKNOWN, "latency not measured together")
    return Weighed("latency", UNKNOWN, "latency not measured")


def _bytes(area: str, name: str, deltas: Iterable[Delta], number: int) -> Weighed:
    """Return the bytes of all that both have; that of one alone does not count."""
    both = [(one.values[0], one.values[number]) for one in deltas]
    known = [(old, new) for old, new in both if old is not None and new is not None]
    if not known:
        return Weighed(area, UNKNOWN, f"{name} unknown")
    old, new = sum(old for old, _ in known), sum(new for _, new in known)
    if old == new:
        return Weighed(area, SAME, f"same {name}")
    sign = "+" if new > old else "−"
    words = ("larger", "smaller") if area == "size" else ("more", "less")
    share = how_much(new / old, *words) if old else words[0]
    text = f"{name} {share} ({sign}{format_bytes(abs(new - old))})"
    return Weighed(area, WORSE if new > old else BETTER, text)


def _error(deltas: Iterable[Delta], number: int) -> Weighed:
    """Return the largest error, of the method where it is largest."""
    known = [
        (float(old), float(new))
        for one in deltas
        if (old := one.values[0]) is not None and (new := one.values[number]) is not None
    ]
    if not known:
        return Weighed("error", UNKNOWN, "error not computed")
    old, new = max(known, key=lambda pair: pair[1])
    text = f"largest error {plain_text(new)}, before {plain_text(old)}"
    if old == new or (old > 0 and 1 / _ERROR_ALIKE <= new / old <= _ERROR_ALIKE):
        return Weighed("error", SAME, f"same largest error {plain_text(new)}")
    return Weighed("error", WORSE if new > old else BETTER, text)


def unrelated(nodes: int, shared: int) -> str:
    """Return how few nodes two programs share, where they are not variants of one; else empty."""
    share = shared / nodes if nodes else 1.0
    if share >= _RELATED:
        return ""
    return f"{format_share(share)} of the nodes are in both"
