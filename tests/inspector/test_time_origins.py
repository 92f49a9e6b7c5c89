"""Times of several origins, or of recorded graphs, get no verdict."""

from __future__ import annotations

import math

import pytest

from inspector.compare.statistics import ALIKE, SLOWER, judge
from inspector.compare.time_origins import weakest_origin, without_verdict
from schema.origins import ValueOrigin

OLD, NEW = [[1.0, 1.01]] * 6, [[2.0, 2.02]] * 6


def _facts(*origins: str) -> dict[str, object]:
    return {"partitions": [{"backend": "VulkanBackend", "origin": one} for one in origins]}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ((), (), ""),
        (("interpreted",), ("interpreted", "measured"), ""),
        ((), ("interpreted",), "times are measured on one side, interpreted on the other"),
        (("emulated",), ("emulated",), "delegates are emulated by the recorded graph"),
        (("measured",), ("measured", "emulated"), "not what the payload computes"),
    ],
)
def test_times_get_a_verdict_only_within_one_origin(
    old: tuple[str, ...], new: tuple[str, ...], reason: str
) -> None:
    verdict = judge(OLD, NEW)
    assert verdict.word == SLOWER
    found = without_verdict(verdict, _facts(*old), _facts(*new))
    assert (found.word == SLOWER) is (not reason)
    assert reason in found.reason
    assert found.ratio == verdict.ratio  # the figures stay
    if reason:
        assert found.words() == f"{ALIKE}: {found.reason}"
        assert found.high == math.inf


def test_partitions_of_older_runs_have_no_origin_and_count_as_measured() -> None:
    assert weakest_origin({"partitions": [{"backend": "X", "engine": "native"}]}) is (
        ValueOrigin.MEASURED
    )
    assert weakest_origin({}) is ValueOrigin.MEASURED
