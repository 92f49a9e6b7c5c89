"""Gains and losses of a change: latency, size, memory and error, weighed together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from inspector.compare.model import Comparison, Delta
from inspector.compare.numbers import FLOPS, MEASURED, MOVED, UNLIKE
from inspector.compare.output_errors import BEYOND, DIFFERING, ERROR
from inspector.compare.statistics import ALIKE, TimeVerdict
from inspector.memory.measured import PHASES, STEADY, resident_alike
from inspector.units import format_bytes, format_share, plain_text

BETTER, WORSE, SAME, UNKNOWN = "better", "worse", "not distinguishable", "unknown"
MANY = 2.0  # times as much; a share says little beyond
_CLEARLY = 1.5  # times the work, above which a factor reads better than a share
_FILE = " file"  # the figures of entire files
_ERROR_ALIKE = 1.1  # errors of two runs of one program differ by as much on other kernels


@dataclass(frozen=True, slots=True)
class Weighed:
    """One quantity of a session beside that of the first.

    Attributes:
        area: latency, size, memory, error or work
        word: better, worse, not distinguishable or unknown
        text: phrase with the figures
    """

    area: str
    word: str
    text: str


def weigh(found: Comparison, number: int) -> tuple[Weighed, ...]:
    """Return the quantities of a session beside those of the first one, latency first.

    Work explains the others, and comes last. Figures of another program are not judged.
    """
    weighed = (
        _latency(found, number),
        _bytes("size", "size", _of(found, "size", _FILE), number),
        _memory(found, number),
        _error(found, number),
        _work(found, number),
    )
    if number in found.unlike:
        return tuple(replace(one, word=UNKNOWN) for one in weighed)
    return weighed


def time_verdict(found: Comparison, number: int) -> TimeVerdict | None:
    """Return the verdict on the measured times of a session beside the first, None without one."""
    for delta in found.summary:
        if delta.area == "time" and number < len(delta.verdicts):
            return delta.verdicts[number]
    return None


def how_much(ratio: float, more: str, less: str) -> str:
    """Return a ratio in words: a share, or a factor where it is large."""
    if ratio >= MANY:
        return f"{ratio:.1f} times {more}"
    if 0 < ratio <= 1 / MANY:
        return f"{1 / ratio:.1f} times {less}"
    return f"{format_share(abs(ratio - 1))} {more if ratio > 1 else less}"


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
    both = _both(list(deltas), number)
    if both is None:
        return Weighed(area, UNKNOWN, f"{name} unknown")
    old, new = both
    if old == new:
        return Weighed(area, SAME, f"same {name}")
    sign = "+" if new > old else "−"
    words = ("larger", "smaller") if area == "size" else ("more", "less")
    share = how_much(new / old, *words) if old else words[0]
    text = f"{name} {share} ({sign}{format_bytes(abs(new - old))})"
    return Weighed(area, WORSE if new > old else BETTER, text)


def _memory(found: Comparison, number: int) -> Weighed:
    """Return planned memory, and beside it what a steady run took where both were measured."""
    planned = _bytes("memory", "peak memory", _of(found, "memory", "peak"), number)
    steady = _of(found, "memory", f"{MEASURED}, {PHASES[STEADY]}")
    real = _bytes("memory", "measured memory", steady, number)
    if real.word == UNKNOWN:
        return planned
    if not all(one.better for one in steady):
        return Weighed("memory", planned.word, f"{planned.text}, {MEASURED} {UNLIKE}")
    old, new = _both(steady, number) or (0, 0)
    if resident_alike(old, new - old):
        real = Weighed("memory", SAME, f"measured memory {ALIKE}")
    if planned.word == UNKNOWN:
        return real
    word = planned.word if real.word == SAME else real.word
    return Weighed("memory", word, f"{planned.text}, {real.text}")


def _work(found: Comparison, number: int) -> Weighed:
    """Return FLOPs and bytes moved: why a variant can be faster or slower."""
    flops, moved = (_both(_of(found, "work", what), number) for what in (FLOPS, MOVED))
    if flops is None or moved is None:
        return Weighed("work", UNKNOWN, "FLOPs and bytes unknown")
    text = f"{_times_as(flops, 'FLOPs')} and {_times_as(moved, 'bytes moved')}"
    old, new = moved if moved[0] != moved[1] else flops
    return Weighed("work", SAME if old == new else WORSE if new > old else BETTER, text)


def _both(deltas: Sequence[Delta], number: int) -> tuple[float, float] | None:
    pairs = [(one.values[0], one.values[number]) for one in deltas]
    known = [(old, new) for old, new in pairs if old is not None and new is not None]
    if not known:
        return None
    return sum(old for old, _ in known), sum(new for _, new in known)


def _times_as(pair: tuple[float, float], what: str) -> str:
    old, new = pair
    if old == new or not old:
        return f"the same {what}" if old == new else f"more {what}"
    ratio = new / old
    if 1 / _CLEARLY < ratio < _CLEARLY:
        return f"{format_share(abs(ratio - 1))} {'more' if ratio > 1 else 'fewer'} {what}"
    return f"{ratio:.2g} times the {what}"


def _error(found: Comparison, number: int) -> Weighed:
    """Return the error of the outputs beside one reference, else the largest of recorded values."""
    beyond, differing = (_both(_of(found, "gap", what), number) for what in (BEYOND, DIFFERING))
    if {beyond, differing} <= {None, (0, 0)} and (beyond or differing):
        return Weighed("error", SAME, "outputs equal within rounding")
    of_floats = _largest(_of(found, "gap", ERROR), number)
    of_integers = _differing(differing)
    if of_floats.word == UNKNOWN:
        recorded = _largest(_of(found, "gap", "largest error"), number)
        return recorded if of_integers is None else of_integers
    if of_integers is None:
        return of_floats
    word = of_floats.word if of_integers.word == SAME else of_integers.word
    return Weighed("error", word, f"{of_floats.text}, {of_integers.text}")


def _differing(both: tuple[float, float] | None) -> Weighed | None:
    """Return the integer outputs: of indices and classes only how many differ has a meaning."""
    if both is None:
        return None
    old, new = both
    if old == new:
        return Weighed("error", SAME, "integer outputs as before")
    text = f"{format_share(new)} of an integer output differs, before {format_share(old)}"
    return Weighed("error", WORSE if new > old else BETTER, text)


def _largest(deltas: Iterable[Delta], number: int) -> Weighed:
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
