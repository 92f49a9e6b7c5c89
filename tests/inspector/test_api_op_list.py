"""Events by operator, and the file for TensorBoard."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inspector import Inspector
from inspector.compat.devtools.tensorboard import crc32c, tensorboard_bytes
from tests.inspector.sessions import folders, label

pytestmark = pytest.mark.slow
TRACED = list(folders("model.etrecord", "run.etdp"))
_BYTES, _DOUBLE, _FLOAT = 2, 1, 5


def _inspector(folder: Path) -> Inspector:
    buffer = folder / "run.debug"
    return Inspector(
        etdump_path=folder / "run.etdp",
        etrecord=folder / "model.etrecord",
        debug_buffer_path=buffer if buffer.exists() else None,
    )


@pytest.mark.filterwarnings("ignore:Output Buffer not found")
@pytest.mark.parametrize("folder", TRACED, ids=label)
def test_every_event_with_an_operator_is_in_its_list(folder: Path) -> None:
    inspector = _inspector(folder)
    for name in {block.name for block in inspector.event_blocks}:
        events = [e for b in inspector.event_blocks if b.name == name for e in b.events]
        counted = [e for e in events if e.op_types and e.name != "OPERATOR_CALL"]
        found = inspector.get_op_list(name)
        assert {id(e) for each in found.values() for e in each} == {id(e) for e in counted}
        assert all(operator in e.op_types for operator, each in found.items() for e in each)
        own = inspector.get_op_list(name, show_delegated_ops=False)
        kept = [e for e in counted if not e.is_delegated_op and e.delegate_backend_name is None]
        assert {id(e) for each in own.values() for e in each} == {id(e) for e in kept}


def test_unknown_block_names_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"block 'Runs' not found; available: .*Execute"):
        _inspector(TRACED[0]).get_op_list("Runs")


def test_checksum_is_that_of_the_standard() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA  # this one and the next: RFC 3720, appendix B.4
    assert crc32c(b"\xff" * 32) == 0x62A8AB43


def _records(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        body = data[at + 12 : at + 12 + length]
        for part, place in ((data[at : at + 8], at + 8), (body, at + 12 + length)):
            crc = crc32c(part)
            masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
            assert struct.unpack_from("<I", data, place) == (masked,)
        yield body
        at += 16 + length


def _fields(data: bytes) -> dict[int, list[Any]]:
    """Return the fields of a protobuf message, without its schema."""
    found: dict[int, list[Any]] = {}
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if not data[at - 1] & 0x80:
                return value

    while at < len(data):
        key = varint()
        kind: Any = key & 7
        if kind == _BYTES:
            length = varint()
            value: Any = data[at : at + length]
            at += length
        elif kind in (_DOUBLE, _FLOAT):
            form = "<d" if kind == _DOUBLE else "<f"
            (value,) = struct.unpack_from(form, data, at)
            at += struct.calcsize(form)
        else:
            value = varint()
        found.setdefault(key >> 3, []).append(value)
    return found


@pytest.mark.filterwarnings("ignore:Output Buffer not found")
@pytest.mark.parametrize("folder", TRACED[:6], ids=label)
def test_tensorboard_file_has_the_durations(folder: Path, tmp_path: Path) -> None:
    inspector = _inspector(folder)
    inspector.write_tensorboard_artifact(tmp_path / "runs" / "one")
    (path,) = (tmp_path / "runs" / "one").glob("events.out.tfevents.*")
    first, *others = map(_fields, _records(path.read_bytes()))
    assert first[3] == [b"brain.Event:2"]
    scalars: dict[tuple[str, int], float] = {}
    tables: list[str] = []
    for event in others:
        (value,) = _fields(event[5][0])[1]
        fields = _fields(value)
        if 2 in fields:
            scalars[fields[1][0].decode(), event[2][0]] = fields[2][0]
            continue
        assert _fields(_fields(fields[9][0])[1][0])[1] == [b"text"]
        tensor = _fields(fields[8][0])
        assert tensor[1] == [7]
        tables.append(tensor[8][0].decode())
    for number, block in enumerate(inspector.event_blocks):
        for place, event in enumerate(block.events):
            if event.perf_data is not None and event.name != "OPERATOR_CALL":
                wanted = pytest.approx(event.perf_data.avg, rel=1e-6)
                assert scalars[f"{number} {block.name}/events", place] == wanted
                assert event.name in tables[number]
    assert len(tables) == len(inspector.event_blocks)


def test_file_of_nothing_is_its_version_alone() -> None:
    (only,) = _records(tensorboard_bytes((), 1.5))
    assert _fields(only) == {1: [1.5], 2: [0], 3: [b"brain.Event:2"]}
