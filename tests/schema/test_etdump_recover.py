"""Traces whose blocks cannot be read: their events are found by shape, exactly or not at all."""

from __future__ import annotations

import struct
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from schema import etdump
from schema.errors import Severity
from schema.etdump import DebugEvent, ProfileEvent, RunData, ValueType, debug_buffer
from schema.etdump.build import dump, run, synthetic
from schema.etdump.recover import recover
from schema.flatbuf.reader import Reader
from tests.conftest import DATA
from tests.schema.damage import survives
from tests.schema.etdump_samples import every_value

BROKEN = DATA / "corpus" / "special" / "dynamic"
WHOLE = sorted(path for path in DATA.rglob("run.etdp") if path.parent != BROKEN)


def run_vector(raw: bytes) -> int:
    """Position of the vector of runs."""
    base = 4 if raw[8:12] == b"ED00" else 0
    reader = Reader(memoryview(raw))
    root = reader.follow(base)
    return reader.follow(root + reader.slots(root)[0][1])


def without_blocks(raw: bytes) -> bytes:
    """The file with every offset to a block leading nowhere."""
    out = bytearray(raw)
    at = run_vector(raw)
    count = struct.unpack_from("<I", raw, at)[0]
    out[at + 4 : at + 4 + 4 * count] = bytes(4 * count)
    return bytes(out)


def huge_vector(raw: bytes) -> bytes:
    """The file with a vector of blocks that ends outside of it."""
    out = bytearray(raw)
    struct.pack_into("<I", out, run_vector(raw), 0x7FFFFFFF)
    return bytes(out)


def unindexed(blocks: tuple[RunData, ...]) -> tuple[RunData, ...]:
    return tuple(replace(block, bundled_input_index=-1) for block in blocks)


@pytest.mark.parametrize("damage", [without_blocks, huge_vector])
@pytest.mark.parametrize("path", WHOLE, ids=lambda path: str(path.parent.relative_to(DATA)))
def test_events_of_every_stock_trace_are_found_without_its_blocks(
    path: Path, damage: object
) -> None:
    raw = path.read_bytes()
    found = etdump.decode(damage(raw), file="x")  # pyright: ignore[reportCallIssue]
    assert found.run_data == unindexed(etdump.decode(raw).run_data)
    assert found.issues[0].severity is Severity.ERROR
    assert "found by their shape" in found.issues[1].message
    assert etdump.decode(etdump.encode(found)) == found


def test_trace_of_float16_session_shows_everything_but_the_float16_tensors() -> None:
    read = etdump.decode((BROKEN / "run.etdp").read_bytes())
    load, execute = read.run_data
    assert [event.name for event in load.events] == ["Method::init", "Program::load_method"]
    calls = [
        event.instruction_id
        for event in execute.events
        if isinstance(event, ProfileEvent) and event.name == "OPERATOR_CALL"
    ]
    assert calls == list(range(19))
    buffer = debug_buffer.decode((BROKEN / "run.debug").read_bytes())
    tensors = [tensor for value in read.events.values for tensor in value.all_tensors()]
    assert len(tensors) == 24
    assert all(buffer.tensor_array(tensor).values() is not None for tensor in tensors)
    starts, ends = buffer.extents(read)
    assert (np.sort(starts)[1:] >= np.sort(ends)[:-1]).all()
    logged = {event.instruction_id for event in execute.events if isinstance(event, DebugEvent)}
    assert 16 not in logged  # the conversion to float16
    assert any("float16" in issue.message for issue in read.issues)


def test_events_are_grouped_as_runtimes_log_them() -> None:
    path = DATA / "damaged" / "half_precision_debug.etdp"
    read = etdump.decode(path.read_bytes())
    assert [block.name for block in read.run_data] == ["Default", "Execute"]
    assert [event.name for event in read.run_data[1].events] == [
        "native_call_add.out",
        "OPERATOR_CALL",
        "native_call_mul.out",
        "OPERATOR_CALL",
        "Method::execute",
    ]


def test_profile_events_of_a_file_written_upwards_come_in_order_of_time() -> None:
    made = synthetic(500, runs=3, kernels=("a.out", "b.out", "c.out", "d.out"))
    found = etdump.decode(without_blocks(etdump.encode(made)))
    assert found.run_data == made.run_data


def test_values_of_a_file_written_upwards_are_not_guessed_into_a_place() -> None:
    events = [ProfileEvent(f"op{i}", 0, i, 10 * i, 10 * i + 5) for i in range(4)]
    values = [DebugEvent(every_value()[5], 0, i) for i in range(4)]
    mixed = [item for pair in zip(values, events, strict=True) for item in pair]
    found = etdump.decode(without_blocks(etdump.encode(dump([run("Execute", mixed)]))))
    assert found.run_data == ()
    assert "run block 0 is lost" in found.issues[0].message


def test_look_alikes_in_a_debug_value_only_trace_are_not_taken_for_events() -> None:
    values = [value for value in every_value() if value.type != ValueType.NULL]
    raw = etdump.encode(dump([run("Execute", [DebugEvent(value, 0, 0) for value in values])]))
    assert recover(memoryview(raw), len(raw)) == ()
    assert etdump.decode(without_blocks(raw)).run_data == ()


@pytest.mark.parametrize("seed", range(3))
def test_random_bytes_hold_no_events(seed: int) -> None:
    raw = np.random.default_rng(seed).integers(0, 256, 300_000, dtype=np.uint8).tobytes()
    small = np.random.default_rng(seed).integers(0, 13, 300_000, dtype=np.uint8).tobytes()
    assert recover(memoryview(raw), len(raw)) == ()
    assert recover(memoryview(small), len(small)) == ()


@pytest.mark.slow
def test_file_full_of_look_alikes_is_refused_in_bounded_time() -> None:
    # every aligned position is a table of 8 bytes whose one field leads to the next position
    vtable = struct.pack("<3H2x", 6, 8, 4)
    head = struct.pack("<II4s", 0, 1 << 30, b"ED00") + vtable
    at = len(head) + 4 * np.arange(2_000_000)
    body = (at - 12).astype("<i4").tobytes()
    raw = bytearray(head + body)
    struct.pack_into("<I", raw, 0, len(raw) - 4)
    began = time.process_time()
    assert survives(etdump.decode, bytes(raw)) is None
    assert time.process_time() - began < 5
