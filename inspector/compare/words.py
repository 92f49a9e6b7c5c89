"""Numbers of a comparison in words, for tables and the report."""

from __future__ import annotations

from inspector.compare.model import LESS, MORE, Delta, GapRow
from inspector.tables.units import format_bytes, format_share, format_time, plain_text

Number = float | int | None
_NS_IN_MS = 1e6


def value_text(value: Number, unit: str) -> str:
    """Return a number with its unit, a dash where it is missing."""
    if value is None:
        return "—"
    if unit == "bytes":
        return format_bytes(value)
    if unit == "share":
        return format_share(value)
    if unit == "ms":
        return format_time(value * _NS_IN_MS)
    return f"{plain_text(value)} {unit}".rstrip()


def difference_text(delta: Delta, number: int) -> str:
    """Return how a session differs from the first: the difference, its share, and the verdict."""
    if not delta.alike and None not in (delta.values[0], delta.values[number]):
        return "not comparable"
    gap = delta.difference(number)
    if gap is None:
        return ""
    if gap == 0:
        return "same"
    verdict = delta.verdicts[number] if delta.verdicts else None
    if verdict is not None:
        return verdict.words()
    return signed_text(gap, delta.unit) + share_text(delta.values[0], gap, delta.unit)


def output_name(row: GapRow) -> str:
    """Return the node of a row, with the number of its output where it is not the first."""
    return row.node if row.output == 0 else f"{row.node}, output {row.output}"


def signed_text(gap: Number, unit: str) -> str:
    """Return a difference with its sign and unit."""
    if gap is None:
        return ""
    if unit == "share":
        return f"{100 * gap:+.1f} points".replace("-", "−")
    sign = "+" if gap > 0 else "−" if gap < 0 else ""
    return sign + value_text(abs(gap), unit)


def share_text(old: Number, gap: Number, unit: str) -> str:
    """Return a difference as a share of what it was, in brackets; empty where that says nothing."""
    if not old or gap is None or unit == "share":
        return ""
    return f" ({100 * gap / abs(old):+.1f} %)".replace("-", "−")


def tone(delta: Delta, number: int) -> str:
    """Return good, bad or empty: whether a difference is what one wishes for, and real."""
    gap = delta.difference(number)
    verdict = delta.verdicts[number] if delta.verdicts else None
    if not gap or delta.better not in (LESS, MORE) or (verdict is not None and not verdict.real):
        return ""
    return "good" if (gap < 0) == (delta.better == LESS) else "bad"
