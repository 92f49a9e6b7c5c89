"""Files that TensorBoard opens: durations as scalars, the events as a text table.

Source: tensorflow/core/util/event.proto, summary.proto and lib/io/record_writer.cc: a file of
records, each a length, its masked CRC-32C, a protobuf ``Event``, and the CRC of that. Neither
TensorBoard nor TensorFlow is needed to write them.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from inspector.compat.devtools.event_block import EventBlock
from inspector.trace.event_kinds import OPERATOR_CALL

_VERSION = "brain.Event:2"
_TEXT = "text"  # name of the plugin that shows markdown
_STRING, _MASK = 7, 0xA282EAD8  # dtype of tensor.proto; mask of the CRCs in TFRecord files


def tensorboard_bytes(blocks: Iterable[EventBlock], wall_time: float) -> bytes:
    """Return an event file.

    Scalars ``BLOCK/events`` have the mean duration of each event, by its place in the block, and
    ``BLOCK/operators/NAME`` the sum of those of an operator; both in the target time scale.

    Args:
        blocks: of an Inspector
        wall_time: seconds since 1970, which TensorBoard shows beside each value
    """
    records = [_event(wall_time, 0, _field(3, _VERSION.encode()))]
    for number, block in enumerate(blocks):
        records += _block(f"{number} {block.name}", block, wall_time)
    return b"".join(map(_record, records))


def write_tensorboard(path: str | os.PathLike[str], blocks: Iterable[EventBlock]) -> Path:
    """Write an event file into a folder and return its path.

    Raises: OSError
    """
    import time

    now, folder = time.time(), Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"events.out.tfevents.{int(now)}.etscope.{os.getpid()}"
    target.write_bytes(tensorboard_bytes(blocks, now))
    return target


def _block(title: str, block: EventBlock, wall_time: float) -> Iterator[bytes]:
    unit = block.target_time_scale.value
    rows, sums = [f"| event | avg ({unit}) | operators |", "|---|---|---|"], dict[str, float]()
    for place, event in enumerate(block.events):
        if event.perf_data is None or event.name == OPERATOR_CALL:
            continue
        mean = float(event.perf_data.avg)
        yield _event(wall_time, place, _summary(f"{title}/events", _scalar(mean)))
        name = ", ".join(dict.fromkeys(event.op_types))
        rows.append(f"| {_cell(event.name)} | {mean:.6g} | {_cell(name)} |")
        if not event.is_delegated_op:  # those are inside the event of their call
            key = name or event.name
            sums[key] = sums.get(key, 0.0) + mean
    for name, total in sums.items():
        tag = f"{title}/operators/{name.replace('/', '_')}"
        yield _event(wall_time, 0, _summary(tag, _scalar(total)))
    yield _event(wall_time, 0, _summary(f"{title}/table", _markdown("\n".join(rows))))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


# ---- protobuf
def _event(wall_time: float, step: int, payload: bytes) -> bytes:
    return struct.pack("<Bd", 1 << 3 | 1, wall_time) + _number(2, step) + payload


def _summary(tag: str, value: bytes) -> bytes:
    """Return ``Event.summary`` of one value."""
    return _field(5, _field(1, _field(1, tag.encode()) + value))


def _scalar(value: float) -> bytes:
    return struct.pack("<Bf", 2 << 3 | 5, value)


def _markdown(text: str) -> bytes:
    """Return a string as a tensor, with the plugin that shows it."""
    shape = _field(2, _field(2, _number(1, 1)))
    tensor = _number(1, _STRING) + shape + _field(8, text.encode())
    return _field(9, _field(1, _field(1, _TEXT.encode()))) + _field(8, tensor)


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


# ---- records
def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    turned = (crc >> 15 | crc << 17) & 0xFFFFFFFF
    return struct.pack("<I", (turned + _MASK) & 0xFFFFFFFF)


def crc32c(data: bytes) -> int:
    """Return the CRC-32C (Castagnoli) of bytes."""
    table, crc = _table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


@lru_cache(maxsize=1)
def _table() -> tuple[int, ...]:
    found: list[int] = []
    for number in range(256):
        crc = number
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        found.append(crc)
    return tuple(found)
