"""The cost of quantizing each module alone, and the edit that leaves it as it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inspector.experiments.sweeps.results import PointResult, Results, read_results
from inspector.experiments.sweeps.sensitivity import MODE, MODULES, TABLES
from inspector.recipes.compile_job import NOT_QUANTIZED
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import AUTOMATIC, Units
from inspector.tables.table import Table
from inspector.units import Quantity
from schema.recipe.assignments import split_pair

_FLOAT, _ALL = "nothing quantized", "the recipe"
_EXACT = "done, exact"  # which has no ratio of signal to noise
_FIGURES = ("eval.snr", "eval.max_abs", "eval.mean_abs", "eval.top1")


def sensitivity_table(results: Results, units: Units = AUTOMATIC) -> Table:
    """Return one row per module, the one that costs most first; then the recipe and the float."""
    own = [name for name in results.metrics if name.startswith("eval.") and name not in _FIGURES]
    points = sorted(results.points, key=_order)
    rows = [_row(one, own) for one in points]
    fields = (
        RowField("quantized alone", mono=True),
        RowField("SNR dB", Quantity.PLAIN, missing=""),
        RowField("max abs", Quantity.PLAIN, missing=""),
        RowField("mean abs", Quantity.PLAIN, missing=""),
        RowField("top-1", Quantity.SHARE, missing=""),
        *(RowField(name.removeprefix("eval."), Quantity.PLAIN, missing="") for name in own),
        RowField("size", Quantity.SIZE),
        RowField("leave it out", mono=True, missing=""),
        RowField("state"),
    )
    return row_table(fields, rows, "modules", keys=[one.key for one in points], units=units)


def sensitivity(folder: Path, units: Units) -> Table:
    """Return the sensitivity that a sweep with one module at a time has measured.

    Raises: FormatError for a folder without results; OSError
    """
    return sensitivity_table(read_results(folder), units)


def is_sensitivity(results: Results) -> bool:
    """Return whether the points of a sweep quantize one module at a time."""
    return any(map(module_of, results.points))


def module_of(point: PointResult) -> str:
    """Return the only module that a point quantizes, empty for others."""
    modules: list[str] = list(point.changes.get(MODULES) or ())
    rest = point.changes.get(MODE) != NOT_QUANTIZED or point.changes.get(TABLES)
    alone = not rest and len(modules) == 1
    return split_pair(modules[0], last=True)[0] if alone else ""


def _order(point: PointResult) -> tuple[int, float]:
    """Return the key by which modules with the least signal to noise come first."""
    snr = point.metrics.get("eval.snr")
    if module_of(point):
        return 0, math.inf if snr is None else snr
    return (1, 0.0) if _is_quantized(point) else (2, 0.0)


def _is_quantized(point: PointResult) -> bool:
    return bool(point.changes.get(MODE) or point.changes.get(TABLES))


def _row(point: PointResult, own: Sequence[str]) -> tuple[Any, ...]:
    module = module_of(point)
    metrics = point.metrics
    return (
        module or (_ALL if _is_quantized(point) else _FLOAT),
        *(metrics.get(name) for name in (*_FIGURES, *own)),
        metrics.get("size"),
        f"--quantize-module {module}=none" if module else None,
        point.sentence or (_EXACT if metrics.get("eval.max_abs") == 0 else point.status.value),
    )
