"""Units of the last place are many where the reference is near zero, and are said to be of that."""

from __future__ import annotations

import numpy as np
import pytest

from inspector.compare.gaps import gap_rows, gap_summary
from inspector.experiments.evaluate.report import evaluation_report
from inspector.jobs.eval_samples import (
    EvalSample,
    EvalSettings,
    EvalState,
    OutputSums,
    VariantSample,
)
from inspector.numerics.metrics import Distance, Metrics, Tolerance, measure
from inspector.numerics.report import GapReport, Row, RunGap
from inspector.tables.numeric_gap import gap_table


def _metrics(reference: list[float], error: list[float]) -> Metrics:
    wanted = np.array(reference, np.float32)
    found = wanted + np.array(error, np.float32)
    distance = Distance("float32", Tolerance())
    distance.add(lambda: iter(((wanted, found),)))
    return distance.metrics()


@pytest.mark.parametrize(
    ("reference", "error", "near"),
    [
        ([1.0, -2.0, 1e-7], [0.0, 0.0, 3.6e-7], True),  # as in a sum that cancels
        ([1.0, -2.0, 0.0], [0.0, 0.0, 3.6e-7], True),
        ([1.0, -2.0, 0.5], [0.0, 1e-3, 0.0], False),
        ([1.0, -2.0, 0.5], [1e-6, 1e-6, 1e-6], False),
        ([1.0, -2.0, 0.5], [0.0, 0.0, 0.0], False),
        ([0.0, 0.0], [1e-6, 0.0], False),  # all of it is zero: no size is known
        ([1e-7, 2e-7], [1e-8, 0.0], False),  # small throughout
    ],
)
def test_units_of_the_last_place_near_zero(
    reference: list[float], error: list[float], near: bool
) -> None:
    found = _metrics(reference, error)
    assert found.near_zero is near
    assert not near or (found.ulp or 0) > 5


@pytest.mark.parametrize("near", [True, False])
def test_table_of_the_gap_names_what_many_ulp_are_of(near: bool) -> None:
    error = [0.0, 0.0, 3.6e-7] if near else [0.0, 1e-3, 0.0]
    row = Row("instruction", "forward", 0, 0, "aten::sum", total=_metrics([1.0, -2.0, 1e-7], error))
    table = gap_table((row,))
    texts = [table.text(0, column) for column in range(len(table.columns))]
    assert ("the ULP are of an element near zero" in texts) is near


@pytest.mark.parametrize("lost", [1, 3])
def test_error_of_values_that_are_not_finite_is_missing_not_zero(lost: int) -> None:
    """A program whose outputs became NaN is no better than one with small errors."""
    reference = [1.0, -2.0, 0.5]
    found = _metrics(reference, [np.nan] * lost + [0.0] * (3 - lost))
    small = _metrics(reference, [1e-3, 0.0, 0.0])
    assert (found.odd, small.odd) == (lost, 0)
    assert (found.snr_db is None) is (lost == 3)
    reports = [
        GapReport((RunGap("forward", 0, 0, -1, "", "", (row,)),))
        for row in (_row(small), _row(found))
    ]
    largest, _ = gap_summary("forward", reports)
    assert (largest.values[0] is not None, largest.values[1]) == (True, None)
    assert "NaN or infinite in one of the two only" in largest.note
    (alone,) = gap_rows("forward", reports[1:], [])
    assert (alone.max_abs, alone.reasons) == ((None,), ("NaN or infinite in one of the two only",))


def _row(metrics: Metrics) -> Row:
    return Row(
        "instruction", "forward", 0, 0, "aten::add", node="add", total=metrics, dtype="float32"
    )


def test_samples_that_are_nan_on_one_side_have_no_error_in_an_evaluation() -> None:
    distance = Distance("float32", Tolerance())
    distance.add(lambda: iter(((np.ones(2, np.float32), np.full(2, np.nan, np.float32)),)))
    sums = OutputSums(distance.sums(), "float32", (1, 2))
    settings = EvalSettings({}, ("a",), ("a.pte",), ("",), "data", "", "float", -1)
    sample = EvalSample(0, "", (VariantSample((sums,)),))
    report = evaluation_report(EvalState(settings, {0: sample}))
    (output,) = report.variants[0].outputs
    assert (output.max_abs, output.total.snr_db, output.strange) == (None, None, 2)
    (worst,) = report.variants[0].worst
    assert (worst.max_abs, worst.snr_db) == (None, None)


def test_words_count_what_is_infinite_on_one_side_where_finite_values_agree() -> None:
    wanted = np.array([1.0, -np.inf, -np.inf], np.float32)  # a mask; half floats hold -65504
    found = np.array([1.0, -65504.0, -65504.0], np.float32)
    one = measure(wanted, found, "float32", Tolerance())
    assert one.words() == "off by 0 by itself, with 0 infinite elements where 2 are expected"
    assert measure(wanted[:1], found[:1] + 0.5, "float32", Tolerance()).words() == (
        "off by 0.5 by itself"
    )
    nan = measure(wanted[:1], np.full(1, np.nan, np.float32), "float32", Tolerance())
    assert nan.words() == "off by itself, with 1 NaN elements where 0 are expected"
