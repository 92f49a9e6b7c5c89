"""Numeric gaps as a table, as a curve along the program, and details of one tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.graph.node_text import operator_title
from inspector.numerics.join import WRITE_BACK
from inspector.numerics.kept import kept_arrays
from inspector.numerics.metrics import Metrics
from inspector.numerics.report import INSIDE, Row, RunGap, coverage_of
from inspector.profile.join_index import Related
from inspector.tables.rows import RowField, row_table
from inspector.tables.table import (
    Column,
    Table,
    badge_column,
    number_column,
    share_column,
    text_column,
)
from inspector.units import Quantity
from schema.objects.plural import plural

Floats = NDArray[np.float64]
FLOOR = 1e-12  # what is drawn at the bottom of a scale of decades
# odd, so that one bin is around zero; 256 cells a side are a readable heat map
_NONE = "none"
_BINS, _WORST, _WIDEST = 41, 12, 256
_TONES = {
    "diverges": "bad",
    "not compared": "muted",
    "inferred": "accent",
    "join uncertain": "warn",
}


@dataclass(frozen=True, slots=True)
class GapMeasure:
    """How far apart two tensors are, as one number that grows with the error.

    Attributes:
        title: of a column
        words: in a sentence
        get: the number, None if it is not known
    """

    title: str
    words: str
    get: Callable[[Metrics], float | None]


MEASURES: dict[str, GapMeasure] = {
    "max_abs": GapMeasure("max abs", "largest difference", lambda one: one.largest),
    "max_rel": GapMeasure("max rel", "largest relative difference", lambda one: one.max_rel),
    "rms": GapMeasure("RMS", "root mean square of the difference", lambda one: one.mse**0.5),
    "noise": GapMeasure(
        "noise",
        "noise to signal, 10^(−SNR/20)",
        lambda one: None if one.snr_db is None else one.noise,
    ),
    "cosine": GapMeasure(
        "1 − cosine",
        "1 − cosine of the angle",
        lambda one: None if one.cosine is None else max(1.0 - one.cosine, 0.0),
    ),
    "ulp": GapMeasure("max ULP", "units in the last place", lambda one: one.ulp),
    "outside": GapMeasure(
        "share outside", "share of elements outside the tolerance", lambda one: one.out_of_tolerance
    ),
}
USUAL = "max_abs"


def gap_table(rows: Sequence[Row], measure: str = USUAL) -> Table:
    """Return one row per output; the key of a row is its place in the order of execution.

    Args:
        rows: outputs
        measure: of the total, own and inherited error, a name of ``MEASURES``
    """
    used = MEASURES[measure]
    return Table(
        (
            number_column("#", [row.instruction for row in rows], Quantity.COUNT),
            text_column("operator", [_operator(row) for row in rows], width=20),
            text_column("node", [row.node or None for row in rows], mono=True),
            badge_column("state", [_state(row) for row in rows], tone=_tone),
            _numbers(used.title, [_measured(row.total, used) for row in rows]),
            _numbers("own", [_measured(row.own, used) for row in rows]),
            _numbers("inherited", [_measured(row.inherited, used) for row in rows]),
            share_column(
                "outside", [_of(row.total, "out_of_tolerance") for row in rows], missing=""
            ),
            _numbers("SNR dB", [_of(row.total, "snr_db") for row in rows]),
            _numbers("ULP", [_of(row.total, "ulp") for row in rows]),
            text_column("note", [_note(row) for row in rows], missing="", width=36),
            text_column("source", [row.source or None for row in rows], missing="", width=18),
        ),
        len(rows),
        keys=[row.order for row in rows],
        noun="outputs",
    )


def _numbers(title: str, values: list[float | None]) -> Column:
    return number_column(title, values, Quantity.PLAIN, missing="")


def _operator(row: Row) -> str:
    title = operator_title(row.operator).removeprefix("aten.")  # as of nearly all: it says nothing
    return f"  {title}" if row.place == INSIDE else title


def _of(metrics: Metrics | None, name: str) -> float | None:
    value = None if metrics is None else getattr(metrics, name)
    return None if value is None or not math.isfinite(value) else float(value)


def _measured(metrics: Metrics | None, used: GapMeasure) -> float | None:
    value = None if metrics is None else used.get(metrics)
    return None if value is None or not math.isfinite(value) else float(value)


def _state(row: Row) -> str | None:
    if not row.compared:
        return "not compared"
    if row.diverges:
        return "diverges"
    return "join uncertain" if row.uncertain else "inferred" if row.inferred else None


def _tone(value: object) -> str:
    return _TONES.get(str(value), "muted")


def _note(row: Row) -> str | None:
    if row.reason or row.note:
        return row.reason or row.note
    if row.total is not None and row.total.near_zero:
        return "the ULP are of an element near zero"
    if len(row.covers) > 1:
        return f"the last of {len(row.covers)} nodes it covers"
    return None


def selected_row(run: RunGap, related: Related) -> Row | None:
    """Return the row of the selection in another view, or None.

    An own node takes precedence over one covered by a fused operator, which precedes an
    instruction.
    """
    names = related.nodes
    steps = set(related.instructions)
    if len(names) > 1 and steps:  # a delegate call: what leaves it, not the nodes inside
        return next((row for row in run.outside() if row.instruction in steps), None)
    for name in names:
        own = [row for row in run.rows if row.graph_node == name]
        last = name.rsplit("/", 1)[-1]
        fused = [row for row in run.inside() if last in row.covers and row.compared]
        for row in (*own, *fused):
            if row.compared:
                return row
        if own:
            return own[0]
    return next((row for row in run.outside() if row.instruction in steps), None)


def summary(run: RunGap) -> str:
    """Return a summary sentence, the first divergence first."""
    compared = any(row.compared for row in run.outside())
    first = run.first_divergence()
    if run.is_float and compared:
        start = loss_words(run)
    elif first is not None:
        own = first.own or first.total
        start = f"First divergence: {first.node or first.operator}, {own.words() if own else ''}"
        start += f": {first.note}" if first.note else ""
    else:
        fine = "No node exceeds the tolerance by its own error"
        start = fine if compared else "Nothing was compared"
    words = [start, _coverage(run), *run.notes]
    doubtful = run.doubtful()
    if doubtful:
        words.insert(1, f"join uncertain: {len(doubtful):,} differ, first {doubtful[0].node}")
    return " · ".join(words)


def _coverage(run: RunGap) -> str:
    """Return how many rows were compared; those inside delegates are counted by themselves."""
    outside, inside = coverage_of(run.outside()), coverage_of(run.inside())
    whole = f"{outside.compared:,} of {outside.instruction_outputs:,} outputs"
    if not inside.instruction_outputs:
        return f"{whole} compared"
    within = f"{inside.compared:,} of {inside.instruction_outputs:,} inside delegates"
    return f"{whole} of instructions compared, {within}"


def _largest(found: Sequence[Metrics | None]) -> float | None:
    sizes = [one.largest for one in found if one is not None]
    return max((size for size in sizes if size is not None), default=None)


def call_gap_table(runs: Sequence[RunGap]) -> Table:
    """Return one row per call of a sequence: its errors, and the first node that diverges."""
    rows: list[tuple[object, ...]] = []
    for run in runs:
        known = [row for row in run.rows if row.total is not None]
        end = _end(run)
        first = run.first_divergence()
        rows.append(
            (
                run.call,
                len(known),
                _largest([row.total for row in known]),
                _largest([row.own for row in known]),
                None if end is None else _of(end, "snr_db"),
                (first.node or first.operator) if first else _NONE if known else None,
                None if first is None else first.module or None,
            )
        )
    fields = (
        RowField("call", Quantity.PLAIN),
        RowField("compared", Quantity.COUNT),
        RowField("max abs", Quantity.PLAIN, missing=""),
        RowField("own", Quantity.PLAIN, missing=""),
        RowField("SNR dB of output", Quantity.PLAIN, missing=""),
        RowField("first divergence", mono=True, missing="not compared"),
        RowField("module", mono=True, missing=""),
    )
    return row_table(fields, rows, "calls", keys=[run.call for run in runs])


def loss_words(run: RunGap) -> str:
    """Return where a quantized program loses most beside its float program, and how much in all."""
    worst = run.largest_loss()
    if worst is None or worst.own is None:
        return "No error of one node is known"
    end = _end(run) or worst.own
    above = [row for row in run.rows if row.diverges]
    words = f"Largest loss by quantization: {_layer(worst)}"
    words += f", {_decibels(worst.own)} by itself; last output {_decibels(end)}"
    if above:
        words += f"; {plural(len(above), 'value')} beyond the tolerance, first {_layer(above[0])}"
    return words


def _end(run: RunGap) -> Metrics | None:
    """Return the worst distance at the last instruction, None without one that was compared.

    State is written back behind it: a counter of positions there is always equal.
    """
    known = [
        (row.instruction, row.total)
        for row in run.outside()
        if row.total is not None and row.operator != WRITE_BACK
    ]
    last = [total for at, total in known if at == known[-1][0]]
    return min(last, key=lambda one: math.inf if one.snr_db is None else one.snr_db, default=None)


def computing_node(row: Row) -> str:
    """Return the node of a row: its last one that quantizes nothing."""
    computing = [name for name in row.covers if "quantize" not in name]
    return computing[-1] if computing else row.node or row.operator


def _layer(row: Row) -> str:
    """Return the node of a row, with its module."""
    name = computing_node(row)
    return f"{name} ({row.module})" if row.module else name


def _decibels(metrics: Metrics) -> str:
    found = metrics.snr_db
    if found is None:
        return "SNR unknown"
    return "equal" if math.isinf(found) else f"SNR {found:.1f} dB"


def growth(run: RunGap, measure: str = USUAL) -> tuple[Floats, Floats]:
    """Return total and own error along the program, as decades above ``FLOOR``; NaN is missing.

    Shapes: float64[rows] both; relative to the largest magnitude of the tolerance

    Args:
        run: the comparison
        measure: of the errors, a name of ``MEASURES``
    """
    used = MEASURES[measure]
    total = [_decades(_measured(row.total, used)) for row in run.rows]
    own = [_decades(_measured(row.own, used)) for row in run.rows]
    return np.array(total, dtype=np.float64), np.array(own, dtype=np.float64)


def _decades(value: float | None) -> float:
    return math.nan if value is None else math.log10(max(value, FLOOR) / FLOOR)


@dataclass(frozen=True, slots=True, eq=False)
class TensorLook:
    """One tensor of the run and its reference.

    Attributes:
        counts: elements per bin of the difference
        low: lower end of the bins
        high: upper end of the bins
        heat: absolute difference as an image of 0 to 1, rows of the last dimension
        worst: the largest differences: index, reference, run, difference
        shape: of the tensor
    """

    counts: NDArray[np.int64]
    low: float
    high: float
    heat: Floats
    worst: tuple[tuple[str, float, float, float], ...]
    shape: tuple[int, ...]


def tensor_look(path: Path) -> TensorLook:
    """Return details of the tensors in a stored file.

    Raises: OSError, ValueError if it cannot be read
    """
    kept = kept_arrays(path)
    reference, found = (np.asarray(kept[name], np.float64) for name in ("reference", "run"))
    with np.errstate(invalid="ignore"):
        apart = found - reference
    shape = tuple(int(size) for size in apart.shape)
    flat = apart.ravel()
    finite = flat[np.isfinite(flat)]
    reach = float(np.abs(finite).max(initial=0.0)) or FLOOR
    counts, edges = np.histogram(finite, bins=_BINS, range=(-reach, reach))
    size = np.where(np.isfinite(flat), np.abs(flat), np.inf)
    order = np.argsort(-size, kind="stable")[:_WORST]
    places = [np.unravel_index(int(at), shape or (1,)) for at in order]
    worst = tuple(
        (_index(place), float(reference.ravel()[at]), float(found.ravel()[at]), float(flat[at]))
        for at, place in zip(order, places, strict=True)
    )
    return TensorLook(
        counts.astype(np.int64), float(edges[0]), float(edges[-1]), _heat(apart), worst, shape
    )


def _index(place: Sequence[Any]) -> str:
    return f"[{', '.join(str(int(each)) for each in place)}]"


def _heat(apart: Floats) -> Floats:
    """Return the size of the difference as an image, large tensors by the worst of each patch."""
    size: Floats = np.abs(np.where(np.isfinite(apart), apart, 0.0))
    last = size.shape[-1] if size.ndim > 1 else max(size.size, 1)
    flat: Floats = np.reshape(size, (-1, last))
    for axis in (0, 1):
        step = -(-flat.shape[axis] // _WIDEST)
        if step > 1:
            starts: NDArray[np.int64] = np.arange(0, flat.shape[axis], step, dtype=np.int64)
            flat = np.maximum.reduceat(flat, starts, axis=axis)
    top = float(flat.max(initial=0.0))
    return flat / top if top else flat


def look_table(look: TensorLook) -> Table:
    """Return the worst elements; what a narrow view hides last comes first."""
    rows = look.worst
    return Table(
        (
            text_column("index", [row[0] for row in rows], mono=True, width=12),
            number_column("difference", [row[3] for row in rows], Quantity.PLAIN),
            number_column("reference", [row[1] for row in rows], Quantity.PLAIN),
            number_column("run", [row[2] for row in rows], Quantity.PLAIN),
        ),
        len(rows),
        keys=list(range(len(rows))),
        noun="elements",
    )
