"""Programs of the stock compiler on the stock runtime and on both engines of ours."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime import Runtime
from tests.runtime.samples import calls_of
from tests.runtime.stock import Stock
from tests.runtime.xnnpack.sessions import DATA, SESSIONS, WHOLE, gap

pytestmark = [pytest.mark.slow, pytest.mark.interop]


@pytest.mark.parametrize("name", SESSIONS)
def test_stock_program_without_record_equals_stock_on_both_engines(name: str, stock: Stock) -> None:
    runtime = Runtime()
    program = runtime.load_program(DATA / name)
    calls = calls_of(program)
    wanted = stock.calls(DATA / name, calls)
    found = [program.load_method(m, engine="torch").execute(given) for m, given in calls]
    assert worst(found, wanted) <= 1e-5
    real = runtime.load_program(DATA / name)
    found = [real.load_method(m, engine="native").execute(given) for m, given in calls]
    # What is left to torch's own kernels beside the partitions is not bit for bit the same.
    assert worst(found, wanted) <= (0.0 if name in WHOLE else 1e-5)


def worst(found: list[list[Any]], wanted: list[list[Any]]) -> float:
    """Return the largest gap of all outputs."""
    return max(
        gap(one, other)
        for ours, theirs in zip(found, wanted, strict=True)
        for one, other in zip(ours, theirs, strict=True)
        if isinstance(other, torch.Tensor)
    )
