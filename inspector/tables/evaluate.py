"""An evaluation on a data set as tables: by variant and output, the worst samples, all samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspector.experiments.evaluate.report import EvalReport, OutputFigures, evaluation_report
from inspector.jobs.eval_samples import EvalState, read_evaluation
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import AUTOMATIC, Units
from inspector.tables.table import Table
from inspector.units import Quantity

_NUMBER, _COUNT, _SHARE = Quantity.PLAIN, Quantity.COUNT, Quantity.SHARE
REFERENCE = "reference"
_FIELDS = (
    RowField("variant"),
    *(RowField(name, _COUNT, missing="") for name in ("output", "samples")),
    *(
        RowField(name, _NUMBER, missing="")
        for name in ("SNR dB", "cosine", "max abs", "mean abs", "median", "p95")
    ),
    RowField("top-1", _SHARE, missing=""),
    RowField("not finite", _COUNT, missing=""),
)
_REFUSED = RowField("refused", _COUNT, missing="")
_FIRST = 3  # columns before the metrics of the user
_BLANK = (None,) * (len(_FIELDS) - _FIRST)


def figures_table(report: EvalReport, units: Units = AUTOMATIC) -> Table:
    """Return a row for each output of each variant, and one of the reference with its metrics."""
    own = (RowField(name, _NUMBER, missing="") for name in report.metrics)
    fields = (*_FIELDS[:_FIRST], *own, *_FIELDS[_FIRST:], _REFUSED)
    return row_table(fields, list(_rows(report)), "outputs", units=units)


def _rows(report: EvalReport) -> Iterator[tuple[Any, ...]]:
    names = report.metrics
    own = report.settings.reference_variant
    if own < 0:
        metrics = (report.reference.get(name) for name in names)
        yield (REFERENCE, None, None, *metrics, *_BLANK, report.unreferenced or None)
    for one in report.variants:
        metrics = tuple(one.metrics.get(name) for name in names)
        refused, blank = one.refused or None, (None,) * len(names)
        title = f"{one.name} ({REFERENCE})" if one.index == own else one.name
        if not one.outputs:
            yield (title, None, None, *metrics, *_BLANK, refused)
        for place, each in enumerate(one.outputs):
            own_metrics, own_refused = (blank, None) if place else (metrics, refused)
            yield (title, place, each.samples, *own_metrics, *_cells(each), own_refused)


def _cells(one: OutputFigures) -> tuple[Any, ...]:
    if not one.samples:
        return _BLANK
    total = one.total
    return (
        total.snr_db,
        total.cosine,
        one.max_abs,
        one.mean_abs,
        one.median,
        one.p95,
        one.top_1,
        one.strange or None,
    )


_WORST = (
    RowField("variant"),
    RowField("sample", _COUNT),
    RowField("output", _COUNT),
    RowField("SNR dB", _NUMBER),
    RowField("max abs", _NUMBER),
    RowField("top-1", _SHARE, missing=""),
    RowField("not finite", _COUNT, missing=""),
)


def worst_table(report: EvalReport, units: Units = AUTOMATIC) -> Table:
    """Return the samples with the largest errors, by variant, worst first."""
    worst = [(one, each) for one in report.variants for each in one.worst]
    rows = [
        (
            one.name,
            each.index,
            each.output,
            each.snr_db,
            each.max_abs,
            each.top_1,
            each.strange or None,
        )
        for one, each in worst
    ]
    keys = [(one.index, each.index) for one, each in worst]
    return row_table(_WORST, rows, "samples", keys=keys, units=units)


_RANGES = (
    RowField("variant"),
    RowField("value", mono=True),
    RowField("low", _NUMBER),
    RowField("high", _NUMBER),
    RowField("least", _NUMBER),
    RowField("most", _NUMBER),
    RowField("clipped", _SHARE),
    RowField("unused", _SHARE),
    RowField("advice"),
    RowField("source"),
)


@dataclass(frozen=True, slots=True)
class RangeKey:
    """The row of a quantized value.

    Attributes:
        variant: its index
        node: that quantizes it, in the recorded program
        made_by: node whose result it is
    """

    variant: int
    node: str
    made_by: str


def ranges_table(report: EvalReport, units: Units = AUTOMATIC) -> Table:
    """Return a row for each quantized value: its range in the data, and that of its scale."""
    rows = [
        (
            one.name,
            each.values.made_by,
            each.values.low,
            each.values.high,
            each.values.least,
            each.values.most,
            each.clipped,
            each.unused,
            each.advice,
            each.values.source,
        )
        for one in report.variants
        for each in one.ranges
    ]
    keys = [
        RangeKey(one.index, each.values.node, each.values.made_by)
        for one in report.variants
        for each in one.ranges
    ]
    return row_table(_RANGES, rows, "values", keys=keys, units=units)


def samples_table(state: EvalState, units: Units = AUTOMATIC) -> Table:
    """Return a row for each sample, variant and output."""
    report = evaluation_report(state)
    fields = (
        *_WORST[:5],
        RowField("mean abs", _NUMBER),
        RowField("top-1", _SHARE, missing=""),
        *(RowField(name, _NUMBER, missing="") for name in report.metrics),
        RowField("why"),
    )
    return row_table(fields, list(_sample_rows(state, report.metrics)), "samples", units=units)


def _sample_rows(state: EvalState, metrics: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    for sample in state.samples.values():
        for name, one in zip(state.settings.names, sample.variants, strict=True):
            own = tuple(one.metrics.get(metric) for metric in metrics)
            why = one.error or sample.error
            if not one.outputs:
                yield (name, sample.index, *(None,) * 5, *own, why)
            for place, each in enumerate(one.outputs):
                sums = each.sums
                known = not each.note
                yield (
                    name,
                    sample.index,
                    place,
                    sums.metrics(each.dtype).snr_db if known else None,
                    sums.max_abs if known and not sums.is_unknown else None,
                    sums.length / sums.finite if known and sums.finite else None,
                    each.agreeing / each.rows if each.rows else None,
                    *own,
                    each.note or why,
                )


def outputs(folder: Path, units: Units) -> Table:
    """Return the figures of the evaluation in a folder.

    Raises: FormatError, OSError
    """
    return figures_table(evaluation_report(read_evaluation(folder)), units)


def worst(folder: Path, units: Units) -> Table:
    """Return the worst samples of the evaluation in a folder.

    Raises: FormatError, OSError
    """
    return worst_table(evaluation_report(read_evaluation(folder)), units)


def ranges(folder: Path, units: Units) -> Table:
    """Return the ranges of quantized values of the evaluation in a folder.

    Raises: FormatError, OSError
    """
    return ranges_table(evaluation_report(read_evaluation(folder)), units)


def samples(folder: Path, units: Units) -> Table:
    """Return all samples of the evaluation in a folder.

    Raises: FormatError, OSError
    """
    return samples_table(read_evaluation(folder), units)
