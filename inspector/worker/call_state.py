"""The state of a program before and after each call of a sequence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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
    """Observes the state of the methods that are called; copies are made outside of timed calls.

    State that methods share is one tensor. State above a size is not observed: it is copied where
    the calls are to be made again, and then once.

    Attributes:
        tensors: the state, in the order in which the methods were loaded
    """

    def __init__(self, program: ProgramFile, *, needed: bool) -> None:
        """Take the program; ``needed`` means that the state is put back by ``reset``."""
        self._program, self._needed = program, needed
        self._tensors: list[torch.Tensor] = []
        self._first: list[torch.Tensor] = []
        self._before: list[torch.Tensor] = []
        self._places: list[tuple[str, int]] = []  # method and value of each tensor
        self._names: list[str] = []
        self._observed = True
        self._methods: list[Method] = []

    @property
    def tensors(self) -> tuple[StateTensor, ...]:
        """Return the state; a name that methods have for memory of their own begins with theirs."""
        count = Counter(self._names)
        return tuple(
            StateTensor(
                name if count[name] == 1 else f"{owner}.{name}",
                str(one.dtype).removeprefix("torch."),
                tuple(one.shape),
                one.nbytes,
            )
            for name, (owner, _), one in zip(self._names, self._places, self._tensors, strict=True)
        )

    def add(self, method: Method) -> None:
        """Observe the state of a method that was loaded."""
        self._methods.append(method)
        plan = self._program.plan(method.name)
        known = set(map(_place, self._tensors))
        for index in state_values(self._program, method.name):
            value = method.value(index)
            if not isinstance(value, torch.Tensor) or _place(value) in known:
                continue
            self._tensors.append(value)
            self._names.append(value_name(plan, index))
            self._places.append((method.name, index))
        nbytes = sum(one.nbytes for one in self._tensors)
        self._observed = nbytes <= _LARGEST_STATE
        new = self._tensors[len(self._first) :] if self._observed or self._needed else []
        self._first += [one.clone() for one in new]
        if not self._observed:
            self._before = []
        else:
            self._before += [one.clone() for one in new]

    def name_with(self, naming: Callable[[str], Mapping[int, str]]) -> None:
        """Name the state that the program does not.

        Args:
            naming: returns value index -> name of each state tensor of a method
        """
        for at, (method, index) in enumerate(self._places):
            if self._names[at] == f"v{index}":
                self._names[at] = naming(method).get(index, self._names[at])

    def snapshot(self) -> list[torch.Tensor]:
        """Return a copy of the state."""
        return [one.clone() for one in self._tensors]

    def restore(self, held: Sequence[torch.Tensor]) -> None:
        """Put the state back to a copy; that of methods loaded since is left alone."""
        for tensor, saved in zip(self._tensors, held, strict=False):
            tensor.copy_(saved)

    def of_all(self, changes: tuple[StateChange, ...]) -> tuple[StateChange, ...]:
        """Return the changes of a call with those of state that was loaded behind it: none."""
        if not self._observed:
            return ()
        missing = len(self._tensors) - len(changes)
        return (*changes, *[StateChange(0, 0, 0.0)] * missing)

    def reset(self) -> None:
        """Put the state back to what it was after loading, also that inside of delegates."""
        for method in self._methods:
            method.reset_delegates()
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


def _place(tensor: torch.Tensor) -> tuple[int, str, tuple[int, ...]]:
    return tensor.data_ptr(), str(tensor.dtype), tuple(tensor.shape)


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
