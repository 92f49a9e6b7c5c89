"""A result that is off where its layer is not: the runtime is wrong when it keeps no values."""

from __future__ import annotations

import numpy as np
import pytest

from inspector.numerics.metrics import Metrics, Tolerance, measure
from inspector.numerics.replay.other_results import OTHER, with_other_results
from inspector.numerics.report import INSIDE, INSTRUCTION, Row


def _off(size: float) -> Metrics:
    wanted = np.ones(3, np.float32)
    return measure(wanted, wanted + np.float32(size), "float32", Tolerance())


def _rows(backend: str, layer: float, result: float) -> list[Row]:
    place = {"method": "forward", "instruction": 0, "node": "mean", "value": "mean"}
    return [
        Row(INSIDE, slot=0, operator="aten::mean", total=_off(layer), **place),
        Row(INSTRUCTION, slot=1, operator=backend, total=_off(result), differs=True, **place),
    ]


@pytest.mark.parametrize(
    ("backend", "layer", "result", "noted"),
    [
        ("OpenvinoBackend", 0.002, 1.5, True),
        ("OpenvinoBackend", 0.25, 0.5, False),  # bf16 rounds otherwise in another plan
        ("TOSABackend", 0.002, 1.5, False),  # its values are those of the run itself
    ],
)
def test_result_far_from_the_layer_of_its_value_says_so(backend, layer, result, noted) -> None:
    before = _rows(backend, layer, result)
    inside, outside = with_other_results(before)
    assert inside == before[0]
    words = OTHER.format(off=_off(layer).max_abs)
    assert outside.note == (words if noted else "")
