"""Records of flows whose passes replace operators after the graph is recorded."""

from __future__ import annotations

import pytest

from inspector.check.pairs import program_and_record
from inspector.files.load import load_session
from tests.architecture.tree import ROOT

DATA = ROOT / "tests/data/backends"


@pytest.mark.parametrize("flow", ["cortexm_m1_int8", "cadence_m1_int8", "cadence_m1"])
def test_the_record_of_a_flow_belongs_to_its_program(flow: str) -> None:
    opened = load_session([DATA / f"{flow}.pte", DATA / f"{flow}.etrecord"])
    assert opened.program is not None
    assert opened.record is not None
    found = program_and_record(opened.program, opened.record)
    assert found.mismatch == ""
    assert found.matched > 3
