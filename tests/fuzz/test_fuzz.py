"""The seeded slice of the fuzz run that belongs to the test suite."""

from __future__ import annotations

import pytest

from tests.fuzz.run import run

CASES, SLICES = 2_000, 4


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLICES))
def test_seeded_mutants_open_or_are_refused(part: int) -> None:
    report = run(CASES // SLICES, seed=part)
    assert report.failures == []
    assert report.outcomes["opened"] > 0
    assert report.outcomes["refused"] > 0


def test_few_mutants_open_or_are_refused() -> None:
    assert run(150, seed=99).failures == []
