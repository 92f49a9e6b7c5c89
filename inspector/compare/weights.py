"""Differences of weights of recorded programs by name: removed, added, other type or values."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.compare.model import WeightChange
from inspector.files.session import Session
from inspector.join.saved_tensors import saved_tensors
from schema.etrecord.torch_file.tensor_data import TensorData

_MOST_ELEMENTS = 1 << 22  # compared at a time
# What compilers name by number: the numbers of a program and what they have folded. How they are
# counted, and whether equal ones are kept once, is the compiler's own.
_NUMBERED = re.compile(r"(?:.*\.)?_?(?:lifted_tensor|prop_tensor|tensor)(?:_constant)?_?\d+")


def recorded_weights(session: Session, method: str) -> Mapping[str, TensorData] | None:
    """Return the recorded weights of a method, None if they are not recorded."""
    record = session.record
    name = record.roles.edge.get(method) if record is not None else None
    if record is None or name is None:
        return None
    return saved_tensors(record, name) or None


def weight_changes(
    old: Mapping[str, TensorData], new: Mapping[str, TensorData], method: str, number: int
) -> tuple[WeightChange, ...]:
    """Return the weights that differ, by name.

    Weights named by a number are equal if the other side has such a value
    under any number.

    Args:
        old: of the first session
        new: of the session with this index
        method: name
        number: of the session
    """
    found: list[WeightChange] = []
    here, there = _numbered(old), _numbered(new)
    shared = set(here.values()) & set(there.values())
    old = {name: one for name, one in old.items() if here.get(name) not in shared}
    new = {name: one for name, one in new.items() if there.get(name) not in shared}
    for name in sorted(old.keys() | new.keys()):
        one, two = old.get(name), new.get(name)
        if one is None or two is None:
            found.append(WeightChange(method, number, name, _kind(one), _kind(two)))
        elif (change := _pair(one, two)) is not None:
            found.append(WeightChange(method, number, name, _kind(one), _kind(two), *change))
    return tuple(found)


def _numbered(tensors: Mapping[str, TensorData]) -> dict[str, Hashable]:
    """Return name -> content of weights named by a number.

    A scalar is equal regardless of its type.
    """
    found: dict[str, Hashable] = {}
    for name, tensor in tensors.items():
        values = tensor.to_numpy() if _NUMBERED.fullmatch(name) else None
        if values is None:
            continue
        if values.size == 1:
            number = values.item()
            found[name] = (tensor.sizes, "", "nan" if number != number else number)
        else:
            found[name] = (tensor.sizes, tensor.dtype, values.tobytes())
    return found


def _kind(tensor: TensorData | None) -> str | None:
    return None if tensor is None else f"{tensor.dtype} {list(tensor.sizes)}"


def _pair(one: TensorData, two: TensorData) -> tuple[float | None, float | None] | None:
    """Return the largest difference and the share of elements that differ, None for no change.

    Both are None if values cannot be compared: other types or shapes, or missing bytes.
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
