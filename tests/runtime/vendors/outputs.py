"""What the references of the vendors gave, and what a program gives here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from runtime import Runtime

DATA = Path(__file__).parents[2] / "data" / "backends"
# torch's float32 products round by the instruction set of the processor
_ROUNDING = 8 * torch.finfo(torch.float32).eps


def check_outputs(program: bytes, name: str) -> None:
    """Check that a program gives integers equal to the references and floats within rounding."""
    inputs, expected = torch.load(DATA / f"{name}.pt")
    method = Runtime.get().load_program(program).load_method("forward")
    made: Any = method.execute(inputs)
    assert len(made) == len(expected)
    for ours, theirs in zip(made, expected, strict=True):
        step = _ROUNDING * float(theirs.abs().max()) if theirs.is_floating_point() else 0
        torch.testing.assert_close(ours, theirs, rtol=0, atol=step)
