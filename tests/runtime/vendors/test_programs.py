"""Programs that vendors' flows wrote run without their packages, as their references do."""

from __future__ import annotations

import pytest

from tests.runtime.vendors.outputs import DATA, check_outputs

NAMES = sorted(
    path.stem for pattern in ("cortexm_*.pte", "cadence_*.pte") for path in DATA.glob(pattern)
)


@pytest.mark.parametrize("name", NAMES)
def test_a_program_of_a_flow_equals_the_vendors_reference(name: str) -> None:
    check_outputs((DATA / f"{name}.pte").read_bytes(), name)


def test_there_are_programs_of_both_flows() -> None:
    assert len(NAMES) >= 6
