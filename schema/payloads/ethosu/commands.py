"""The NPU command stream: operations in order, with their shapes.

A word with bit 14 set is followed by a 32-bit operand; register writes accumulate until an
operation starts. Source: Arm Ethos-U NPU command stream (cmd0 and cmd1 numbers); core driver
``COP`` header (driver actions).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from schema.errors import FormatError

_MAGICS = (b"COP1", b"COP2")
_OPTIMIZER_CONFIG, _COMMAND_STREAM, _NOP = 1, 2, 5  # actions of the driver's command list
_HAS_OPERAND = 0x4000  # set for commands of two words
_MAX_OPERATIONS = 200_000

OPERATIONS = {
    0x002: "CONV",
    0x003: "DEPTHWISE",
    0x005: "POOL",
    0x006: "ELEMENTWISE",
    0x007: "RESIZE",
    0x010: "DMA_START",
}
_SYNCHRONISATION = {0x000, 0x001, 0x011, 0x012, 0x013}
# registers that hold an extent minus one
_SHAPES = {
    "ifm_shape": (0x10B, 0x10A, 0x104),
    "ofm_shape": (0x112, 0x111, 0x113),
    "kernel": (0x121, 0x120),
}
_REGIONS = {"ifm_region": 0x10F, "ofm_region": 0x11F}
_ADDRESSES = {"ifm_offset": 0x4000, "ofm_offset": 0x4010}


@dataclass(frozen=True, slots=True)
class NpuOperation:
    """An operation of the NPU.

    Attributes:
        kind: as in ``OPERATIONS``
        facts: shapes as height, width, depth; regions and offsets of the feature maps
        at: bytes from the start of the stream to its command word
    """

    kind: str
    facts: Mapping[str, object]
    at: int = 0


@dataclass(frozen=True, slots=True)
class CommandStream:
    """A decoded command stream.

    Attributes:
        version: ``COP1`` or ``COP2``
        words: length in 32-bit words
        operations: in order
        synchronisations: waits, masks, the stop and interrupts
    """

    version: str
    words: int
    operations: tuple[NpuOperation, ...]
    synchronisations: int


def read_commands(data: memoryview) -> CommandStream:
    """Return the operations of a command block.

    Raises: FormatError if the block is not a command stream
    """
    version = bytes(data[:4])
    if version not in _MAGICS:
        raise FormatError("a command stream COP1 or COP2", repr(version)[1:], field="cmd_data")
    words = np.frombuffer(data[: len(data) // 4 * 4], dtype="<u4")
    start, count = _stream(words)
    operations, waits = _operations(words[start : start + count].tolist())
    return CommandStream(version.decode("ascii"), count, operations, waits)


def _stream(words: np.ndarray) -> tuple[int, int]:
    at = 1
    while at < len(words):
        action, high, length = struct.unpack("<BBH", int(words[at]).to_bytes(4, "little"))
        if action == _COMMAND_STREAM:
            count = high << 16 | length
            if count > len(words) - at - 1:
                raise FormatError(f"{count} command words", str(len(words) - at - 1))
            return at + 1, count
        if action not in (_OPTIMIZER_CONFIG, _NOP):
            raise FormatError("a driver action 1, 2 or 5", str(action), field="cmd_data")
        at += 3 if action == _OPTIMIZER_CONFIG else 1
    raise FormatError("a command stream after the driver header", "none", field="cmd_data")


def _operations(words: list[int]) -> tuple[tuple[NpuOperation, ...], int]:
    built: list[NpuOperation] = []
    state: dict[int, int] = {}
    waits = at = 0
    while at < len(words):
        code, parameter = words[at] & 0xFFFF, words[at] >> 16
        at += 1
        if code & _HAS_OPERAND:
            state[code] = words[at] if at < len(words) else 0
            at += 1
        elif code in OPERATIONS:
            if len(built) >= _MAX_OPERATIONS:
                raise FormatError(f"at most {_MAX_OPERATIONS} NPU operations", "more")
            built.append(
                NpuOperation(OPERATIONS[code], _facts(code, parameter, state), 4 * (at - 1))
            )
        elif code in _SYNCHRONISATION:
            waits += 1
        else:
            state[code] = parameter
    return tuple(built), waits


def _facts(code: int, parameter: int, state: Mapping[int, int]) -> dict[str, object]:
    facts: dict[str, object] = {"parameter": parameter}
    if OPERATIONS[code] == "DMA_START":
        return facts
    for name, registers in _SHAPES.items():
        if all(register in state for register in registers):
            facts[name] = tuple(state[register] + 1 for register in registers)
    for name, register in (*_REGIONS.items(), *_ADDRESSES.items()):
        if register in state:
            facts[name] = state[register]
    return facts
