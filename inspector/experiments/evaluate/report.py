"""Figures of an evaluation: for each variant and output over all samples, and the worst samples."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from inspector.jobs.eval_samples import (
    EvalSample,
    EvalSettings,
    EvalState,
    ObservedRange,
    OutputSums,
)
from inspector.numerics.metrics import ErrorSums, Metrics, is_floating
from inspector.trace.run_times import FEW

# From where a scale is said not to fit: observers leave out some tenths of a percent on purpose,
# and half of the steps unused is one bit of eight.
_CLIPPED, _UNUSED = 0.01, 0.5
WORST = 10  # samples listed of each variant
FIGURES = ("snr", "cosine", "max_abs", "mean_abs", "top1")  # besides the metrics of the user


@dataclass(frozen=True, slots=True)
class OutputFigures:
    """One output of one variant over all samples.

    Units: the errors are absolute differences; snr_db decibels

    Attributes:
        variant: its index
        output: its index
        samples: that were compared
        total: over the elements of all samples
        median: of the largest error of each sample
        p95: 95th percentile of these, None for few samples
        top_1: share of rows whose largest element is at the same place; None if not class-like
        strange: elements that are NaN or infinite in one of the two only
        notes: why samples were not compared, once each
        floating: whether it has floats; differences of indices and classes do not count as errors
    """

    variant: int
    output: int
    samples: int
    total: Metrics
    mean_abs: float
    median: float | None
    p95: float | None
    top_1: float | None
    strange: int
    notes: tuple[str, ...] = ()
    floating: bool = True

    @property
    def max_abs(self) -> float | None:
        """Return the largest error, None where none of the samples could be compared."""
        return None if self.median is None else self.total.max_abs


@dataclass(frozen=True, slots=True)
class WorstSample:
    """A sample with a large error.

    Attributes:
        variant: index of the variant
        index: of the sample
        output: the output with the least signal to noise
        snr_db: of that output; None where the reference is zero throughout
        max_abs: of that output; None where nothing could be compared
        top_1: share of agreeing rows; None if not class-like
        strange: elements that are NaN or infinite in one of the two only
    """

    variant: int
    index: int
    output: int
    snr_db: float | None
    max_abs: float | None
    top_1: float | None
    strange: int


@dataclass(frozen=True, slots=True)
class RangeFigures:
    """The values of one quantized tensor over all samples.

    Attributes:
        values: ends over all samples, and sums of elements
    """

    values: ObservedRange

    @property
    def clipped(self) -> float:
        """Return the share of elements beyond what the scale can hold."""
        return self.values.clipped / max(self.values.elements, 1)

    @property
    def unused(self) -> float:
        """Return the share of the scale's range that no value is in."""
        one = self.values
        used = min(one.high, one.most) - max(one.low, one.least)
        whole = one.most - one.least
        return 1 - min(max(used, 0.0) / whole, 1.0) if whole > 0 else 0.0

    @property
    def advice(self) -> str:
        """Return what to change, empty where the scale fits."""
        if self.clipped > _CLIPPED:
            return "clips: calibrate with this data set (--calibration)"
        if self.unused > _UNUSED:
            return "coarser than needed: calibrate with this data set (--calibration)"
        return ""


@dataclass(frozen=True, slots=True)
class VariantFigures:
    """One variant over all samples.

    Attributes:
        index: of the variant
        name: of the variant
        outputs: figures of each output; empty for the reference
        metrics: means of the user's metrics by name; None where a value is not finite
        refused: samples that did not run or are not comparable
        sentence: why the first of them did not
        worst: samples with the largest errors, worst first
        ranges: of quantized values, in order of execution; empty if not observed
    """

    index: int
    name: str
    outputs: tuple[OutputFigures, ...]
    metrics: Mapping[str, float | None]
    refused: int
    sentence: str
    worst: tuple[WorstSample, ...]
    ranges: tuple[RangeFigures, ...] = ()

    @property
    def measured(self) -> tuple[OutputFigures, ...]:
        """The outputs of floats, or all of a program that has none."""
        return tuple(one for one in self.outputs if one.floating) or self.outputs

    def figure(self, name: str) -> float | None:
        """Return the figure of the worst output, or a metric of the user; None if unknown."""
        if name == "refused":
            return self.refused
        if name in self.metrics:
            return self.metrics[name]
        if name not in FIGURES:
            return None
        known = [value for one in self.measured if (value := _figure(one, name)) is not None]
        worst = max if name.endswith("_abs") else min
        return worst(known, default=None)


def _figure(one: OutputFigures, name: str) -> float | None:
    if not one.samples or (one.strange and name != "top1"):
        return None
    values = {
        "snr": one.total.snr_db,
        "cosine": one.total.cosine,
        "max_abs": one.total.max_abs,
        "mean_abs": one.mean_abs,
        "top1": one.top_1,
    }
    return values[name]


@dataclass(frozen=True, slots=True)
class EvalReport:
    """An evaluation.

    Attributes:
        settings: what it is of
        samples: number of finished ones
        variants: figures of each
        reference: means of the user's metrics for the reference
        unreferenced: samples that the reference did not run
        sentence: why the first of them did not
    """

    settings: EvalSettings
    samples: int
    variants: tuple[VariantFigures, ...]
    reference: Mapping[str, float | None]
    unreferenced: int
    sentence: str

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return the names of the user's metrics."""
        names = [name for one in self.variants for name in one.metrics]
        return tuple(dict.fromkeys((*names, *self.reference)))


def evaluation_report(state: EvalState, most: int | None = None) -> EvalReport:
    """Return the figures of an evaluation, finished or not.

    Args:
        state: settings and samples
        most: only samples below this index; None for all
    """
    samples = [one for one in state.samples.values() if most is None or one.index < most]
    failed = [one for one in samples if one.error]
    return EvalReport(
        state.settings,
        len(samples),
        tuple(
            _variant(number, state.settings, samples) for number in range(len(state.settings.names))
        ),
        _means([one.reference for one in samples if not one.error]),
        len(failed),
        failed[0].error if failed else "",
    )


def _variant(number: int, settings: EvalSettings, samples: Sequence[EvalSample]) -> VariantFigures:
    found = [one.variants[number] for one in samples]
    errors = [one.error for one in found if one.error]
    count = max((len(one.outputs) for one in found), default=0)
    outputs = tuple(
        _output(number, place, [one.outputs[place] for one in found if place < len(one.outputs)])
        for place in range(count)
    )
    ran = [one.metrics for one in found if not one.error]
    worst = sorted(filter(None, (_sample(number, one) for one in samples)), key=_badness)
    return VariantFigures(
        number,
        settings.names[number],
        outputs,
        _means(ran),
        len(errors),
        errors[0] if errors else "",
        tuple(worst[:WORST]),
        _ranges([one.ranges for one in found]),
    )


def _ranges(samples: Sequence[Sequence[ObservedRange]]) -> tuple[RangeFigures, ...]:
    """Return the ranges over all samples, by the node that quantizes."""
    found: dict[str, ObservedRange] = {}
    for one in (each for sample in samples for each in sample):
        old = found.get(one.node)
        found[one.node] = (
            one
            if old is None
            else replace(
                old,
                low=min(old.low, one.low),
                high=max(old.high, one.high),
                elements=old.elements + one.elements,
                clipped=old.clipped + one.clipped,
            )
        )
    return tuple(map(RangeFigures, found.values()))


def _means(values: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """Return the mean of each metric; unknown if a sample has no finite value of it."""
    names = dict.fromkeys(name for one in values for name in one)
    columns = {name: [one.get(name) for one in values] for name in names}
    return {
        name: None if None in column else statistics.fmean(x for x in column if x is not None)
        for name, column in columns.items()
    }


def _output(variant: int, place: int, found: Sequence[OutputSums]) -> OutputFigures:
    whole = [one for one in found if not one.note]
    sums = reduce(add, (one.sums for one in whole), ErrorSums())
    errors = [one.sums.max_abs for one in whole if not one.sums.is_unknown]
    rows = sum(one.rows for one in whole)
    return OutputFigures(
        variant,
        place,
        len(whole),
        sums.metrics(whole[0].dtype if whole else ""),
        sums.length / max(sums.finite, 1),
        float(np.percentile(errors, 50)) if errors else None,
        float(np.percentile(errors, 95)) if len(errors) >= FEW else None,
        sum(one.agreeing for one in whole) / rows if rows else None,
        sum(_strange(one.sums) for one in whole),
        tuple(dict.fromkeys(one.note for one in found if one.note)),
        not whole or is_floating(whole[0].dtype),
    )


def _strange(sums: ErrorSums) -> int:
    """Return how many elements are not finite in one of the two only, at least."""
    return abs(sums.nan - sums.nan_reference) + abs(sums.inf - sums.inf_reference)


def _sample(variant: int, sample: EvalSample) -> WorstSample | None:
    """Return the worst output of a sample, None without one or without any error."""
    outputs = sample.variants[variant].outputs
    floating = any(not one.note and is_floating(one.dtype) for one in outputs)
    rows = [
        WorstSample(
            variant,
            sample.index,
            place,
            one.sums.metrics(one.dtype).snr_db,
            None if one.sums.is_unknown else one.sums.max_abs,
            one.agreeing / one.rows if one.rows else None,
            _strange(one.sums),
        )
        for place, one in enumerate(outputs)
        if not one.note
        and (one.sums.max_abs or _strange(one.sums))
        and (is_floating(one.dtype) or not floating)
    ]
    return min(rows, key=_badness, default=None)


def _badness(one: WorstSample) -> tuple[float, float, float]:
    """Return the sort key: non-finite elements first, then low SNR, then large differences."""
    return -one.strange, math.inf if one.snr_db is None else one.snr_db, -(one.max_abs or 0.0)


def report_content(report: EvalReport) -> dict[str, Any]:
    """Return an evaluation as a JSON object."""
    settings = report.settings
    return {
        "data": settings.data,
        "metric": settings.metric or None,
        "reference": settings.reference,
        "notes": list(settings.notes),
        "samples": report.samples,
        "complete": settings.total is not None,
        "reference_metrics": dict(report.reference),
        "unreferenced": report.unreferenced,
        "variants": [_variant_json(one, settings) for one in report.variants],
    }


def _variant_json(one: VariantFigures, settings: EvalSettings) -> dict[str, Any]:
    return {
        "name": one.name,
        "program": settings.programs[one.index],
        "is_reference": settings.reference_variant == one.index,
        "metrics": dict(one.metrics),
        "refused": one.refused,
        "sentence": one.sentence,
        "outputs": [_output_json(each) for each in one.outputs],
        "ranges": [
            {
                **asdict(each.values),
                "clipped_share": each.clipped,
                "unused_share": each.unused,
                "advice": each.advice,
            }
            for each in one.ranges
        ],
        "worst": [
            {
                "sample": each.index,
                "output": each.output,
                "snr_db": finite(each.snr_db),
                "max_abs": finite(each.max_abs),
                "top_1": each.top_1,
                "not_finite": each.strange,
            }
            for each in one.worst
        ],
    }


def _output_json(one: OutputFigures) -> dict[str, Any]:
    return {
        "output": one.output,
        "floating": one.floating,
        "samples": one.samples,
        "snr_db": finite(one.total.snr_db),
        "differing": one.total.out_of_tolerance if one.samples else None,
        "exact": one.samples > 0 and one.total.snr_db == math.inf and not one.strange,
        "cosine": finite(one.total.cosine),
        "max_abs": finite(one.max_abs),
        "mean_abs": finite(one.mean_abs),
        "median": finite(one.median),
        "p95": finite(one.p95),
        "top_1": one.top_1,
        "not_finite": one.strange,
        "notes": list(one.notes),
    }


def finite(value: float | None) -> float | None:
    """Return a number for JSON: None for infinity and NaN."""
    return value if value is not None and math.isfinite(value) else None
