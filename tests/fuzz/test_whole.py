"""Verbs and views on damaged files: a seeded slice, and the mutants that once failed."""

from __future__ import annotations

import pytest

from tests.fuzz.run import DATA
from tests.fuzz.whole import check_case, check_mutant, company_of

CASES = 24
# An instruction id beyond the program, one of two thousand million, and sizes below zero.
ONCE_FAILED = (
    ("extra/xnnpack_dynamic_quantised/run.etdp", 187748878479),
    ("corpus/special/dynamic/run.etdp", 638595508484),
    ("extra/external_weights/run.etdp", 509550855946),
)


@pytest.mark.parametrize(("name", "seed"), ONCE_FAILED)
def test_mutant_that_once_failed_is_shown(name: str, seed: int) -> None:
    path = DATA / name
    assert check_mutant(path, seed, company_of(path)) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_verbs_and_views_of_seeded_mutants_never_fail(part: int) -> None:
    wrong = [found for case in range(CASES // 2) for found in check_case(case, seed=part)]
    assert wrong == []
