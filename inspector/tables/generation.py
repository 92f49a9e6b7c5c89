"""Generations of text as tables: speed, calls, and what fits into memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import AUTOMATIC, Units
from inspector.tables.table import Table
from inspector.trace.run_times import median, percentiles
from inspector.units import NS_PER_MS, Quantity

DECODE = "decode"
SpeedRow: TypeAlias = "tuple[str, int | None, float | None, float | None]"
_WHOLE = 1000.0  # tokens a second from which decimals would be an exponent


def calls_table(calls: Sequence[Mapping[str, Any]], units: Units = AUTOMATIC) -> Table:
    """Return one row per call of the program: the positions it had and its time.

    Units: times in ns
    """
    fields = (
        RowField("call", Quantity.PLAIN),
        RowField("kind"),
        RowField("position", Quantity.PLAIN),
        RowField("tokens", Quantity.PLAIN),
        RowField("time", Quantity.TIME),
        RowField("per token", Quantity.TIME),
    )
    rows = [
        (
            place,
            one["kind"],
            one["position"],
            one["tokens"],
            one["ms"] * NS_PER_MS,
            one["ms"] * NS_PER_MS / max(one["tokens"], 1),
        )
        for place, one in enumerate(calls)
    ]
    return row_table(fields, rows, "calls", units=units)


def speed_table(report: Mapping[str, Any], units: Units = AUTOMATIC) -> Table:
    """Return the times of a generation: prompt, first token, later ones with their spread.

    Units: times in ns
    """
    rows: list[SpeedRow] = [
        ("load", None, report["load_ms"] * NS_PER_MS, None),
        _row("prompt", report["prompt_tokens"], report["prefill_ms"]),
        ("first token", 1, report["first_token_ms"] * NS_PER_MS, None),
    ]
    rows += spread_rows(report["calls"], "tokens")
    if len(later_calls(report["calls"])) > 1:
        rows.append(("growth per position", None, growth(report["calls"]) * NS_PER_MS, None))
    fields = (
        RowField("what"),
        RowField("tokens", Quantity.PLAIN, missing=""),
        RowField("time", Quantity.TIME),
        RowField("tokens/s", Quantity.PLAIN, missing=""),
    )
    return row_table(fields, rows, "times", units=units)


def spread_rows(calls: Sequence[Mapping[str, Any]], what: str) -> list[SpeedRow]:
    """Return the rows of the later calls: all of them, and median, p10 and p90 of five or more."""
    later = np.array([one["ms"] for one in later_calls(calls)])
    if not later.size:
        return []
    rows: list[SpeedRow] = [_row(f"later {what}", int(later.size), float(later.sum()))]
    named = {"median": 50, "10 % within": 10, "90 % within": 90}
    found = percentiles(later, tuple(named.values()))
    return rows + [
        _row(name, 1, float(ms)) for name, ms in zip(named, found, strict=True) if not np.isnan(ms)
    ]


def _row(name: str, tokens: int, ms: float) -> tuple[str, int, float, float | None]:
    rate = 1e3 * tokens / ms if ms else None
    shown = None if rate is None else round(rate, 1) if rate < _WHOLE else float(round(rate))
    return name, tokens, ms * NS_PER_MS, shown


def later_calls(calls: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the calls behind the prompt, one for each later token."""
    return [one for one in calls if one["kind"] == DECODE]


def growth(calls: Sequence[Mapping[str, Any]]) -> float:
    """Return the ms by which a call behind the prompt takes longer with each position.

    It is the median slope between calls half the sequence apart: a cold first call, which takes
    many times as long, does not turn it around as it would a least-squares line.

    Source: H. Theil (1950), the incomplete method
    """
    later = later_calls(calls)
    places = np.array([one["position"] for one in later], dtype=np.float64)
    times = np.array([one["ms"] for one in later], dtype=np.float64)
    half = len(later) // 2
    across, up = (values[half:] - values[: len(later) - half] for values in (places, times))
    slopes = up[across != 0] / across[across != 0]
    return median(slopes) if slopes.size else 0.0


def growth_line(calls: Sequence[Mapping[str, Any]]) -> tuple[float, float] | None:
    """Return the line of the times behind the prompt: ms at position 0, ms by each position.

    It is as robust against a slow first call as the growth; None for fewer than two calls.
    """
    later = later_calls(calls)
    if len(later) < 2:
        return None
    slope = growth(calls)
    return median([one["ms"] - slope * one["position"] for one in later]), slope


def _fits_tone(value: object) -> str:
    return {"yes": "good", "no": "bad"}.get(str(value), "muted")


def plan_table(rows: Sequence[Mapping[str, Any]], units: Units = AUTOMATIC) -> Table:
    """Return one row per context length: the bytes of weights, cache and other planned buffers."""
    fields = (
        RowField("context", Quantity.PLAIN),
        RowField("weights", Quantity.SIZE),
        RowField("KV cache", Quantity.SIZE),
        RowField("other planned", Quantity.SIZE),
        RowField("total at least", Quantity.SIZE),
        RowField("fits", tone=_fits_tone),
    )
    found = [
        (
            one["context"],
            one["weights"],
            one["cache"],
            one["planned"],
            one["total"],
            {True: "yes", False: "no", None: "unknown"}[one["fits"]],
        )
        for one in rows
    ]
    return row_table(fields, found, "lengths", units=units)


def token_table(rows: Sequence[Mapping[str, Any]], units: Units = AUTOMATIC) -> Table:
    """Return one row per token that two models read: how their logits behind it differ."""
    fields = (
        RowField("position", Quantity.PLAIN),
        RowField("token", Quantity.PLAIN),
        RowField("text", mono=True),
        RowField("max abs", Quantity.PLAIN),
        RowField("KL", Quantity.PLAIN),
        RowField("top-1", tone=lambda value: "good" if value == "same" else "bad"),
        RowField("margin", Quantity.PLAIN),
        RowField("loss, reference", Quantity.PLAIN, missing=""),
        RowField("loss", Quantity.PLAIN, missing=""),
    )
    found = [
        (
            one["position"],
            one["token"],
            _visible(one["text"]),
            one["max_abs"],
            one["kl"],
            "same" if one["top1"] else "differs",
            one["margin"],
            one["reference_loss"],
            one["loss"],
        )
        for one in rows
    ]
    return row_table(fields, found, "tokens", units=units)


def _visible(text: str) -> str:
    """Return the text of a token with escapes for what has no letter, as a line break."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def variant_table(
    named: Sequence[tuple[str, Mapping[str, Any]]], units: Units = AUTOMATIC
) -> Table:
    """Return one row per variant of a language model: how it agrees with its float model."""
    fields = (
        RowField("variant", mono=True),
        RowField("top-1", Quantity.SHARE),
        RowField("mean KL", Quantity.PLAIN),
        RowField("max abs", Quantity.PLAIN),
        RowField("perplexity", Quantity.PLAIN),
        RowField("of the float model", Quantity.PLAIN),
        RowField("first other choice", Quantity.PLAIN, missing="none"),
        RowField("first beyond its error", Quantity.PLAIN, missing="none"),
    )
    names = ("top1_agreement", "mean_kl", "max_abs", "perplexity", "reference_perplexity")
    firsts = ("first_difference", "first_unexplained")
    rows = [(name, *(one[key] for key in (*names, *firsts))) for name, one in named]
    return row_table(fields, rows, "variants", units=units)
