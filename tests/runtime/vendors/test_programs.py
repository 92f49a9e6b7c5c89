"""Programs that vendors' flows wrote run without their packages, as their references do."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime import Runtime
from tests.architecture.tree import ROOT

DATA = ROOT / "tests/data/backends"
NAMES = sorted(
    path.stem for pattern in ("cortexm_*.pte", "cadence_*.pte") for path in DATA.glob(pattern)
)


@pytest.mark.parametrize("name", NAMES)
def test_a_program_of_a_flow_equals_the_vendors_reference_bit_by_bit(name: str) -> None:
    inputs, expected = torch.load(DATA / f"{name}.pt")
    program = Runtime.get().load_program((DATA / f"{name}.pte").read_bytes())
    made: Any = program.load_method("forward").execute(inputs)
    assert all(map(torch.equal, made, expected))
    assert len(made) == len(expected)


def test_there_are_programs_of_both_flows() -> None:
    assert len(NAMES) >= 6
