"""Weights of recorded programs by name: gone, new, of another type or with other values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.check_tensors import saved_tensors
from inspector.comparing.model import WeightChange
from inspector.session import Session
from schema.etrecord.tensor_data import TensorData

_MOST_ELEMENTS = 1 << 22  # compared at a time


def recorded_weights(session: Session, method: str) -> Mapping[str, TensorData] | None:
    """Return the weights a record has of a method, None without a record that has them."""
    record = session.record
    name = record.roles.edge.get(method) if record is not None else None
    if record is None or name is None:
        return None
    return saved_tensors(record, name) or None


def weight_changes(
    old: Mapping[str, TensorData], new: Mapping[str, TensorData], method: str, number: int
) -> tuple[WeightChange, ...]:
    """Return the weights that are not the same on both sides, by name.

    Args:
        old: of the first session
        new: of the session with this number
        method: name
        number: of the session
    """
    found: list[WeightChange] = []
    for name in sorted(old.keys() | new.keys()):
        one, two = old.get(name), new.get(name)
        if one is None or two is None:
            found.append(WeightChange(method, number, name, _kind(one), _kind(two)))
        elif (change := _pair(one, two)) is not None:
            found.append(WeightChange(method, number, name, _kind(one), _kind(two), *change))
    return tuple(found)


def _kind(tensor: TensorData | None) -> str | None:
    return None if tensor is None else f"{tensor.dtype} {list(tensor.sizes)}"


def _pair(one: TensorData, two: TensorData) -> tuple[float | None, float | None] | None:
    """Return the largest difference and the share of elements that differ, None for no change.

    Both are None where numbers cannot be compared: other types or shapes, or missing bytes.
    """
    if _kind(one) != _kind(two):
        return None, None
    if one.data is None or two.data is None:
        return None if one.data is two.data else (None, None)
    same = (one.strides, one.big_endian) == (two.strides, two.big_endian)
    if same and one.data == two.data:
        return None
    here, there = one.to_numpy(), two.to_numpy()
    if here is None or there is None or here.dtype.kind not in "biuf":
        return None, None
    flat: tuple[NDArray[Any], ...] = tuple(np.ravel(each) for each in (here, there))
    largest, different = 0.0, 0
    for at in range(0, len(flat[0]), _MOST_ELEMENTS):
        a, b = (each[at : at + _MOST_ELEMENTS].astype(np.float64) for each in flat)
        unequal = (a != b) & ~(np.isnan(a) & np.isnan(b))
        different += int(unequal.sum())
        with np.errstate(invalid="ignore"):  # infinity less infinity
            gaps = np.abs(a - b)[unequal]
        largest = max(largest, float(gaps[np.isfinite(gaps)].max(initial=0.0)))
    return (largest, different / len(flat[0])) if different else None
