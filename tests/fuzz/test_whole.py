"""Verbs and views on damaged files: a seeded slice, and the mutants that once failed."""

from __future__ import annotations

import pytest

from tests.fuzz.run import DATA
from tests.fuzz.whole import check_case, check_mutant, company_of

pytestmark = pytest.mark.slow

CASES = 80
ONCE_FAILED = (
    # An instruction id beyond the program, one of two thousand million, and sizes below zero.
    ("extra/xnnpack_dynamic_quantised/run.etdp", "bytes", 187748878479),
    ("corpus/special/dynamic/run.etdp", "bytes", 638595508484),
    ("extra/external_weights/run.etdp", "bytes", 509550855946),
    ("extra/xnnpack_8da4w/run.etdp", "bytes", 577805958659),
    # Instruction ids below zero, and ids that span all 64-bit numbers.
    ("corpus/v1.5.1/mm_xnnpack/run.etdp", "fields", 918789707997),
    ("extra/half_precision/run.etdp", "bytes", 897320872765),
    ("extra/bool_and_int/run.etdp", "fields", 11010564),
    # A delegate call of 2 ** 70 outputs, an input that is value -1, 40 MiB of brackets.
    ("corpus/v1.5.1/tinygpt_xnnpack/model.etrecord", "fields", 466201206448),
    ("corpus/v1.0.1/mm_xnnpack/model.etrecord", "fields", 11006687),
    ("extra/inline_delegate/model.pte", "fields", 1010853964237),
    ("corpus/special/xnnpack_two_delegates/model.etrecord", "fields", 1082474725070),
    # An arena of less than no bytes; tensors of a payload of more than there can be.
    ("corpus/v1.5.1/tinygpt_xnnpack/model.pte", "fields", 571247204727),
    ("corpus/payloads/vgf_fp_0.11.0.pte", "bytes", 701794756704),
)


@pytest.mark.parametrize(("name", "damage", "seed"), ONCE_FAILED)
def test_mutant_that_once_failed_is_shown(name: str, damage: str, seed: int) -> None:
    path = DATA / name
    assert check_mutant(path, seed, company_of(path), damage) == []


@pytest.mark.parametrize("part", range(2))
def test_verbs_and_views_of_seeded_mutants_never_fail(part: int) -> None:
    wrong = [found for case in range(CASES // 2) for found in check_case(case, seed=part)]
    assert wrong == []
