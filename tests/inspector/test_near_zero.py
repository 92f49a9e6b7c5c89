"""Units of the last place are many where the reference is near zero, and are said to be of that."""

from __future__ import annotations

import numpy as np
import pytest

from inspector.numerics.metrics import Distance, Metrics, Tolerance
from inspector.numerics.report import Row
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
