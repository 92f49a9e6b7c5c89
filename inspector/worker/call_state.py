"""The state of a program before and after each call of a sequence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from inspector.files.run_calls import CALLS, StateChange, StateTensor
from inspector.memory.plan import state_values, value_name
from runtime import Method
from schema.program import ProgramFile

_LARGEST_STATE = 256 << 20  # bytes of state that are copied before each call
_LARGEST_VALUES = 512 << 20  # bytes of inputs, outputs and state that are written


class CallState:
    """Observes the state of a method; its copies are made outside of timed calls."""

    def __init__(self, program: ProgramFile, method: Method, *, needed: bool) -> None:
        """Copy the state, unless it is large and the copy is not needed."""
        plan = program.plan(method.name)
        found = [(index, method.value(index)) for index in state_values(program, method.name)]
        held = [(index, one) for index, one in found if isinstance(one, torch.Tensor)]
        self._tensors = [one for _, one in held]
        self.tensors = tuple(
            StateTensor(
                value_name(plan, index),
                str(one.dtype).removeprefix("torch."),
                tuple(one.shape),
                one.nbytes,
            )
            for index, one in held
        )
        nbytes = sum(one.bytes for one in self.tensors)
        small = nbytes <= _LARGEST_STATE
        self._first = [one.clone() for one in self._tensors] if small or needed else []
        self._before = [one.clone() for one in self._first] if small else []

    def reset(self) -> None:
        """Put the state back to what it was after loading."""
        for tensor, saved in zip(self._tensors, self._first, strict=False):
            tensor.copy_(saved)

    def changes(self) -> tuple[StateChange, ...]:
        """Return what the call since the last one did, empty for a state too large to copy."""
        found: list[StateChange] = []
        for tensor, first, before in zip(self._tensors, self._first, self._before, strict=False):
            differs = _differs(tensor, before)
            size = tensor.element_size()
            found.append(
                StateChange(
                    int(differs.sum()) * size,
                    int(_differs(tensor, first).sum()) * size,
                    _largest(tensor[differs], before[differs]),
                    _region(differs),
                )
            )
            before.copy_(tensor)
        return tuple(found)

    def values(self) -> dict[str, torch.Tensor]:
        """Return a copy of the state by name."""
        pairs = zip(self.tensors, self._tensors, strict=True)
        return {one.name: tensor.clone() for one, tensor in pairs}

    def content(self) -> list[dict[str, Any]]:
        """Return the tensors for a report."""
        return [asdict(one) for one in self.tensors]


def _differs(tensor: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return which elements differ; NaN equals NaN."""
    return (tensor != other) & ~((tensor != tensor) & (other != other))


def _largest(tensor: torch.Tensor, other: torch.Tensor) -> float | None:
    if not tensor.numel():
        return 0.0
    found = float((tensor.double() - other.double()).abs().max())
    return found if math.isfinite(found) else None


def _region(differs: torch.Tensor) -> tuple[tuple[int, int], ...]:
    """Return begin and end of the true elements in each dimension, empty without any."""
    if not bool(differs.any()):
        return ()
    found: list[tuple[int, int]] = []
    for dimension in range(differs.dim()):
        others = [one for one in range(differs.dim()) if one != dimension]
        places = (differs.any(others) if others else differs).nonzero()
        found.append((int(places[0]), int(places[-1]) + 1))
    return tuple(found)


class CallValues:
    """Writes inputs, outputs and the state around each call, one file a call."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / CALLS
        self._left = _LARGEST_VALUES
        self.written = 0

    def write(
        self,
        number: int,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        states: tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]],
    ) -> None:
        """Write the values of a call, none from the first one on that is too much."""
        before, after = states
        kept = [*inputs, *outputs, *before.values(), *after.values()]
        self._left -= sum(one.nbytes for one in kept if isinstance(one, torch.Tensor))
        if self._left < 0:
            return
        self.written += 1
        self._folder.mkdir(exist_ok=True)
        content = {
            "inputs": list(inputs),
            "outputs": list(outputs),
            "state before": before,
            "state": after,
        }
        torch.save(content, self._folder / f"{number:05}.pt")
