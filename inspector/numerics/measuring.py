"""Measures tensors as they come, pass by pass, and keeps them on disk within a budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.api.torch_bridge import load_torch
from inspector.numerics.graph_run import UNKNOWN
from inspector.numerics.metrics import Metrics, Tolerance, measure

Key = tuple[str, int, int]
Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of one output.

    Attributes:
        dtype: element type of what was logged
        sizes: its shape, that of one pass
        passes: how many there were
        by_reference: whether the reference's own value was known
        total: distance from the reference, or from the node on the run's inputs
        own: distance from the node on the run's inputs; None when those are unknown
        inherited: distance of that from the reference; None when either is unknown
        kept: name of the file with the tensors, empty when they were not kept
    """

    dtype: str
    sizes: tuple[int, ...]
    passes: int
    by_reference: bool
    total: Metrics
    own: Metrics | None
    inherited: Metrics | None
    kept: str


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The values of one output.

    Attributes:
        reference: of the reference, or unknown
        own: of the node on the run's inputs, or unknown
        found: what was logged
        quantised: whether rounding to steps lies between them
    """

    reference: Any
    own: Any
    found: Any
    quantised: bool = False


class Kept:
    """A folder of tensors that grows up to a budget."""

    def __init__(self, folder: Path | None, budget: int) -> None:
        self._folder = folder
        self._left = budget if folder is not None else 0

    def add(self, name: str, arrays: dict[str, Array]) -> str:
        """Write arrays into a file; return its name, empty when there is no room."""
        nbytes = sum(array.nbytes for array in arrays.values())
        if self._folder is None or nbytes > self._left:
            return ""
        self._left -= nbytes
        file = f"{name}.npz"
        try:
            with (self._folder / file).open("wb") as stream:
                np.savez(stream, allow_pickle=False, **arrays)
        except OSError:
            self._left = 0  # a full disk keeps nothing more; the comparison goes on
            (self._folder / file).unlink(missing_ok=True)
            return ""
        return file


class Measuring:
    """Collects what is measured, by key.

    Attributes:
        prefix: of the names of kept files
    """

    def __init__(self, tolerance: Tolerance, kept: Kept) -> None:
        self.prefix = ""
        self._tolerance = tolerance
        self._kept = kept
        self._done: dict[Key, Measured] = {}
        self._passes: dict[Key, list[Values]] = {}

    def take(self, key: Key, values: Values, *, several: bool) -> None:
        """Measure one output, or keep a pass of it until all are there."""
        if several:
            copies = replace(values, reference=_copy(values.reference), own=_copy(values.own))
            self._passes.setdefault(key, []).append(copies)
        else:
            self._done[key] = self._measured(key, values, 1)

    def result(self, key: Key) -> Measured | None:
        """Return what was measured, None when nothing came."""
        passes = self._passes.pop(key, None)
        if passes is not None:
            joined = Values(
                _joined([each.reference for each in passes]),
                _joined([each.own for each in passes]),
                _joined([each.found for each in passes]),
                passes[0].quantised,
            )
            self._done[key] = self._measured(key, joined, len(passes))
        return self._done.get(key)

    def _measured(self, key: Key, values: Values, passes: int) -> Measured:
        reference, own, found = values.reference, values.own, values.found
        by_reference = reference is not UNKNOWN
        basis = reference if by_reference else own
        kind, allowed = "quantised" if values.quantised else _dtype(basis), self._tolerance
        a, b = as_array(basis), as_array(found)
        mine = None if own is UNKNOWN else as_array(own)
        total = measure(a, b, _dtype(basis), allowed, kind)
        own_metrics, inherited = None, None
        if mine is not None:
            own_metrics = measure(mine, b, _dtype(basis), allowed, kind) if by_reference else total
            inherited = measure(a, mine, _dtype(basis), allowed, kind) if by_reference else None
        arrays = {"reference": a, "run": b}
        if mine is not None and by_reference:
            arrays["own"] = mine
        name = f"{self.prefix}-{key[0]}-{key[1]}-{key[2]}"
        sizes = tuple(found.shape)[1:] if passes > 1 else tuple(found.shape)
        kept = self._kept.add(name, arrays)
        dtype = _dtype(found)
        return Measured(dtype, sizes, passes, by_reference, total, own_metrics, inherited, kept)


def _copy(value: Any) -> Any:  # noqa: ANN401
    return value if value is UNKNOWN else value.detach().clone()


def _joined(values: list[Any]) -> Any:  # noqa: ANN401
    if any(value is UNKNOWN for value in values):
        return UNKNOWN
    return load_torch().stack(values)


def _dtype(tensor: Any) -> str:  # noqa: ANN401
    return str(tensor.dtype).removeprefix("torch.")


def as_array(tensor: Any) -> Array:  # noqa: ANN401
    """Return a tensor as numpy numbers: narrow floats as float32, complex ones as pairs."""
    torch = load_torch()
    tensor = tensor.detach()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    wide = (torch.float64, torch.float32, torch.float16)
    if tensor.is_floating_point() and tensor.dtype not in wide:
        tensor = tensor.to(torch.float32)
    return tensor.contiguous().numpy()
