"""Distances between two outputs, in full precision, on numpy arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from inspector.compat.devtools.tensors import MissingTensor
from inspector.compat.devtools.values import LazyValues, as_array
from inspector.rebuild.torch_bridge import Torch

Numbers = NDArray[Any]


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """One pair of outputs.

    Attributes:
        equal: whether both are the same, NaN in the same places included
        elements: elements compared, or 0
        nan_reference: NaN in the reference
        nan_run: NaN in the run
        inf_reference: infinities in the reference
        inf_run: infinities in the run
        max_abs_difference: largest absolute difference, None without elements
        note: why a metric is missing, empty otherwise
    """

    equal: bool
    elements: int = 0
    nan_reference: int = 0
    nan_run: int = 0
    inf_reference: int = 0
    inf_run: int = 0
    max_abs_difference: float | None = None
    note: str = ""


def mean_squared_error(reference: Numbers, run: Numbers) -> float:
    """Return the mean of the squared differences.

    Shapes: both float64[n]
    """
    return float(np.mean(np.abs(reference - run) ** 2))


def signal_to_noise(reference: Numbers, run: Numbers) -> float:
    """Return the power of the reference over that of the difference; infinite for equal outputs.

    Units: decibel
    """
    signal = float(np.mean(np.abs(reference) ** 2))
    noise = float(np.mean(np.abs(reference - run) ** 2))
    if noise == 0:
        return float("inf")
    return float(10 * np.log10(signal / noise)) if signal else float("-inf")


def cosine_similarity(reference: Numbers, run: Numbers) -> float:
    """Return the cosine of the angle between both; 1 for equal ones, NaN if one of them is zero."""
    if np.array_equal(reference, run):
        return 1.0
    lengths = float(np.linalg.norm(reference)) * float(np.linalg.norm(run))
    if lengths == 0:
        return float("nan")
    found = complex(np.vdot(reference, run)).real / lengths
    # Rounding may pass 1.
    return found if np.isnan(found) else min(1.0, max(-1.0, found))


METRICS: dict[str, Callable[[Numbers, Numbers], float]] = {
    "snr": signal_to_noise,
    "mse": mean_squared_error,
    "cosine_similarity": cosine_similarity,
}


def compare_pair(
    reference: object, run: object, names: tuple[str, ...]
) -> tuple[ComparedValue, dict[str, float | None]]:
    """Return the facts of one pair of outputs, and its metrics by name, None for missing ones."""
    nothing: dict[str, float | None] = dict.fromkeys(names)
    one, two = numbers_of(reference), numbers_of(run)
    if one is None or two is None:
        return _without_numbers(reference, run), nothing
    if one.shape != two.shape:
        return ComparedValue(False, note=f"shapes {one.shape} and {two.shape} differ"), nothing
    if one.size == 0:
        return ComparedValue(True, note="no elements"), nothing
    one, two = np.ravel(one), np.ravel(two)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        facts = _facts(one, two)
        return facts, {name: METRICS[name](one, two) for name in names}


def _facts(one: Numbers, two: Numbers) -> ComparedValue:
    return ComparedValue(
        equal=bool(np.array_equal(one, two, equal_nan=True)),
        elements=int(one.size),
        nan_reference=int(np.isnan(one).sum()),
        nan_run=int(np.isnan(two).sum()),
        inf_reference=int(np.isinf(one).sum()),
        inf_run=int(np.isinf(two).sum()),
        max_abs_difference=float(np.linalg.norm(one - two, ord=np.inf)),
    )


def _without_numbers(reference: object, run: object) -> ComparedValue:
    missing = [name for name, value in (("reference", reference), ("run", run)) if _lacks(value)]
    if missing:
        return ComparedValue(False, note=f"elements of the {' and the '.join(missing)} are missing")
    kinds = (type(reference).__name__, type(run).__name__)
    if any(isinstance(value, (str, type(None))) for value in (reference, run)):
        equal = type(reference) is type(run) and reference == run
        return ComparedValue(equal, note=f"{kinds[0]} and {kinds[1]}: not numeric")
    return ComparedValue(False, note=f"{kinds[0]} and {kinds[1]} cannot be compared")


def _lacks(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_lacks(item) for item in cast("list[object]", value))
    return isinstance(value, MissingTensor)


def numbers_of(value: object) -> Numbers | None:
    """Return a value as an array of double precision, None for other values.

    Tensors of torch are taken without importing it; a list of tensors is one long vector.
    """
    if isinstance(value, (bool, int, float, complex, np.generic)):
        value = np.asarray(value)
    elif callable(getattr(value, "detach", None)):
        value = _of_torch(value)
    if isinstance(value, np.ndarray):
        found = cast("Numbers", value)
        kind = np.complex128 if np.iscomplexobj(found) else np.float64
        return found.astype(kind) if found.dtype.kind in "biufc" else None
    if isinstance(value, (list, tuple)) and value:
        parts = [numbers_of(item) for item in cast("list[object]", value)]
        known = [np.ravel(part) for part in parts if part is not None]
        return np.concatenate(known) if len(known) == len(parts) else None
    return None


def _of_torch(tensor: Torch) -> Numbers:
    plain = tensor.detach().cpu()
    if getattr(plain, "is_quantized", False):
        plain = plain.dequantize()
    wide = plain if plain.is_complex() else plain.double()
    return wide.resolve_conj().numpy()


def plain_list(outputs: object) -> list[object]:
    """Return a list of outputs with arrays for tensors that are still in a file."""
    if isinstance(outputs, LazyValues):
        return list(outputs.arrays())
    if isinstance(outputs, (list, tuple)):
        return [as_array(item) for item in cast("list[object]", outputs)]
    return [outputs]
