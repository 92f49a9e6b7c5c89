"""Arm's reference model with the value of every tensor of a TOSA payload: for tests beside it.

The model returns the outputs of the first block only. A flatbuffer's offsets point forwards, so a
longer vector of outputs is appended, and the block's field turned to it; no other byte changes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

_REGIONS, _BLOCKS, _OUTPUTS = 1, 1, 4  # slots of TosaGraph, TosaRegion and TosaBasicBlock


def _word(data: bytes | bytearray, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _field(data: bytes | bytearray, table: int, slot: int) -> int:
    (back,) = struct.unpack_from("<i", data, table)
    return table + int.from_bytes(data[table - back + 4 + 2 * slot :][:2], "little")


def _target(data: bytes | bytearray, at: int) -> int:
    return at + _word(data, at)


def _aligned(data: bytearray) -> None:
    data += bytes(-len(data) % 4)


def with_outputs(payload: bytes, names: Sequence[str]) -> bytes:
    """Return the payload with these tensors as outputs."""
    data = bytearray(payload)
    region = _target(data, _target(data, _field(data, _target(data, 0), _REGIONS)) + 4)
    block = _target(data, _target(data, _field(data, region, _BLOCKS)) + 4)
    field = _field(data, block, _OUTPUTS)
    _aligned(data)
    vector = len(data)
    data[field : field + 4] = struct.pack("<I", vector - field)
    data += struct.pack("<I", len(names)) + bytes(4 * len(names))
    for number, name in enumerate(names):
        at = vector + 4 + 4 * number
        data[at : at + 4] = struct.pack("<I", len(data) - at)
        encoded = name.encode()
        data += struct.pack("<I", len(encoded)) + encoded + b"\0"
        _aligned(data)
    return bytes(data)


def reference_values(
    payload: bytes, names: Sequence[str], inputs: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Return the values of tensors of a payload."""
    model: Any = __import__("tosa_reference_model")
    given = [np.ascontiguousarray(one.numpy()) for one in inputs]
    results, status = model.run(with_outputs(payload, names), given)
    assert str(status).endswith("TOSA_VALID"), status
    return [torch.from_numpy(np.array(one)) for one in results]
