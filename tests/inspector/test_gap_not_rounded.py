"""Integers of 32 bits under the name of what they round to are not that value."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inspector.numerics.metrics import Tolerance
from inspector.numerics.replay import comparing
from inspector.numerics.replay.comparing import NOT_ROUNDED, GapComparison
from inspector.numerics.report import INSIDE, INSTRUCTION
from runtime.emulation.recorded import UNKNOWN

SUMS = torch.tensor([[69000, -1200, 7]], dtype=torch.int32)


def _compared(
    monkeypatch: pytest.MonkeyPatch, found: torch.Tensor, recorded: torch.Tensor, **facts: Any
) -> tuple[Any, str]:
    """Return with which value the run goes on, and why nothing was compared."""
    log: Any = SimpleNamespace(
        buffer=None, method="forward", join=None, logged=None, outputs=(), inside=(), held={}
    )
    comparison = GapComparison(log, Tolerance(), SimpleNamespace(put=None))  # pyright: ignore
    monkeypatch.setattr(comparing, "logged_tensor", lambda _buffer, tensor: tensor)
    monkeypatch.setattr(comparison, "_compare", lambda _each, _sides, value: (value, True))
    given = {"place": INSIDE, "quantized": True, **facts}
    each: Any = SimpleNamespace(
        key=(given["place"], 0, 0),
        passes=[found],
        scale=None,
        index=0,
        quantized=given["quantized"],
        arbitrary=False,
        target=SimpleNamespace(grade="FLOW", order=()),
    )
    value, _ = comparison._found(each, 0, [UNKNOWN, recorded])
    return value, comparison._why.get(each.key, "")


@pytest.mark.parametrize("recorded", [torch.int8, torch.uint8, torch.int16])
@pytest.mark.parametrize("found", [torch.int32, torch.int64])
def test_sums_before_their_rounding_are_not_compared(
    found: torch.dtype, recorded: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    value, why = _compared(monkeypatch, SUMS.to(found), SUMS.to(recorded))
    assert value is UNKNOWN
    assert why == NOT_ROUNDED


@pytest.mark.parametrize(
    ("found", "recorded", "facts"),
    [
        (torch.int8, torch.int8, {}),
        (torch.int16, torch.int8, {}),  # of a signed value that was shifted
        (torch.int32, torch.int64, {}),  # an index
        (torch.int32, torch.float32, {}),
        (torch.float32, torch.int8, {}),
        (torch.int32, torch.int8, {"place": INSTRUCTION}),
        (torch.int32, torch.int8, {"quantized": False}),
    ],
)
def test_other_values_are_compared(
    found: torch.dtype,
    recorded: torch.dtype,
    facts: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    value, why = _compared(monkeypatch, SUMS.to(found), SUMS.to(recorded), **facts)
    assert torch.equal(value, SUMS.to(found))
    assert why == ""


@pytest.mark.parametrize("dtypes", [("int8", "uint8"), ("uint8", "int8")])
@pytest.mark.parametrize("quantized", [True, False])
def test_integers_of_the_other_sign_are_compared_in_that_of_the_record(
    dtypes: tuple[str, str], quantized: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, recorded = (torch.zeros(2, dtype=getattr(torch, name)) for name in dtypes)
    value, _ = _compared(monkeypatch, found, recorded, quantized=quantized)
    expected = recorded + (128 if dtypes[1] == "uint8" else -128) if quantized else found
    assert value.dtype == expected.dtype
    assert torch.equal(value, expected)
