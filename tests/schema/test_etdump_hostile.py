"""Damaged and hostile traces: what is whole is kept, the rest is named, nothing explodes."""

from __future__ import annotations

import struct
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from schema import etdump
from schema.errors import FormatError, Severity
from schema.etdump import AllocationEvent, DebugEvent, DebugTensor, ETDump, ProfileEvent
from schema.etdump.build import dump, run, synthetic
from tests.schema.damage import all_kinds, survives
from tests.schema.etdump_samples import every_value, small_dump

pytestmark = pytest.mark.slow

MB = 1 << 20


# --- salvage ------------------------------------------------------------------------------


def three_blocks() -> ETDump:
    blocks = [
        run(name, [ProfileEvent(f"{name}{i}", 0, i, 10 * i, 10 * i + 5) for i in range(6)])
        for name in ("first", "second", "third")
    ]
    return dump(blocks)


def broken_text(raw: bytes, text: bytes) -> bytes:
    """Give the length of one text an impossible value."""
    out = bytearray(raw)
    struct.pack_into("<I", out, raw.index(text + b"\0") - 4, 0x7FFFFFFF)
    return bytes(out)


@pytest.mark.parametrize("lost_from", range(6))
def test_decode_of_damaged_event_keeps_the_events_before_it(lost_from: int) -> None:
    made = three_blocks()
    raw = broken_text(etdump.encode(made), b"second%d" % lost_from)
    read = etdump.decode(raw, file="run.etdp")
    assert read.run_data[0] == made.run_data[0]
    assert read.run_data[2] == made.run_data[2]
    kept = read.run_data[1]
    assert tuple(kept.events) == tuple(made.run_data[1].events)[:lost_from]
    (issue,) = read.issues
    assert issue.severity is Severity.ERROR
    assert issue.message.startswith(
        f"run block 1: {6 - lost_from} of its 6 events are lost, from event {lost_from} on"
    )
    assert etdump.decode(etdump.encode(read)) == read


def test_decode_of_damaged_block_name_loses_that_block_only() -> None:
    made = three_blocks()
    read = etdump.decode(broken_text(etdump.encode(made), b"second"))
    assert [block.name for block in read.run_data] == ["first", "third"]
    assert "run block 1 is lost" in read.issues[0].message


def test_decode_of_damaged_value_keeps_what_came_before() -> None:
    events = [DebugEvent(value, 0, i) for i, value in enumerate(every_value())]
    made = dump([run("Execute", [*events, *events])])
    raw = bytearray(etdump.encode(made))
    strides = struct.pack("<Iqq", 2, 3, 1)
    at = raw.rindex(strides)  # of the list in the second half
    struct.pack_into("<I", raw, at, 0x40000000)
    read = etdump.decode(bytes(raw))
    count = len(read.run_data[0].events)
    assert len(events) <= count < 2 * len(events)
    assert tuple(read.run_data[0].events) == (*events, *events)[:count]


def test_decode_of_many_damaged_blocks_tells_a_screenful() -> None:
    made = dump(run(f"b{i}", [ProfileEvent("x" * 30)]) for i in range(500))
    read = etdump.decode(broken_text(etdump.encode(made), b"x" * 30))
    assert all(len(block.events) == 0 for block in read.run_data)
    assert len(read.issues) <= 22
    assert "480 more" in read.issues[-1].message


@pytest.mark.parametrize("cut", [1, 40, 400])
def test_decode_of_trace_cut_short_keeps_whole_blocks_and_says_so(cut: int) -> None:
    raw = etdump.encode(small_dump())[:-cut]
    read = etdump.decode(raw)
    assert "cut short" in read.issues[0].message


def test_decode_of_trailing_bytes_says_how_many() -> None:
    read = etdump.decode(etdump.encode(small_dump()) + b"\0" * 5)
    assert read == small_dump()
    assert "5 bytes after the end" in read.issues[0].message


def test_decode_of_events_with_nothing_set_keeps_their_place() -> None:
    made = dump([run("Execute", [None, ProfileEvent("x"), None])])
    read = etdump.decode(etdump.encode(made))
    assert read == made
    assert "2 events are empty" in read.issues[0].message


def test_decode_of_text_that_is_not_utf8_shows_it_escaped() -> None:
    raw = etdump.encode(dump([run("Execute", [ProfileEvent("caf\u00e9!")])]))
    bad = raw.replace("é".encode(), b"\xc3\x28")
    read = etdump.decode(bad)
    assert read.run_data[0].events[0].name == "caf\\xc3(!"
    assert "not UTF-8" in read.issues[0].message


def test_decode_of_event_with_two_kinds_shows_the_first() -> None:
    raw = bytearray(etdump.encode(dump([run("E", [ProfileEvent("x", 0, 1, 2, 3)])])))
    # the vtable of Event: profile at 4, the others absent; let debug share the offset
    at = bytes(raw).index(struct.pack("<5H", 10, 8, 4, 0, 0))
    struct.pack_into("<5H", raw, at, 10, 8, 4, 0, 4)
    read = etdump.decode(bytes(raw))
    assert tuple(read.run_data[0].events) == (ProfileEvent("x", 0, 1, 2, 3),)
    assert "several" in read.issues[0].message
    assert etdump.decode(etdump.encode(read)) == read


# --- damage of every kind -----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("prefixed", [True, False])
def test_decode_of_damaged_bytes_refuses_or_gives_a_sound_dump(seed: int, prefixed: bool) -> None:
    made = small_dump()
    raw = etdump.encode(ETDump(0, prefixed, made.run_data))
    for broken in all_kinds(raw, seed, 120):
        read = survives(etdump.decode, broken)
        if read is not None:
            for block in read.run_data:
                assert len(repr(tuple(block.events))) >= 2  # every event can be shown
            again = etdump.decode(etdump.encode(read))
            assert again == read


@pytest.mark.parametrize("name", ["convnet_xnnpack", "mm_portable"])
def test_decode_of_damaged_stock_trace_refuses_or_gives_a_sound_dump(
    name: str, corpus: Path
) -> None:
    raw = (corpus / "v1.5.1" / name / "run.etdp").read_bytes()
    kept = 0
    for broken in all_kinds(raw, 7, 60):
        read = survives(etdump.decode, broken)
        kept += read is not None and len(read.run_data) > 0
    assert kept > 20  # most damage leaves most of the trace


# --- crafted files ------------------------------------------------------------------------


def trace(body: Callable[[int], bytes]) -> bytes:
    """A trace with one nameless run; `body` makes what its events vector points to.

    Layout: prefix, root, vtables of Event (profile), RunData, ETDump, then the tables.
    """
    head = bytearray(struct.pack("<II4s", 0, 0, b"ED00"))
    event_vtable = len(head)
    head += struct.pack("<3H2x", 6, 8, 4)
    run_vtable = len(head)
    head += struct.pack("<6H", 12, 8, 0, 0, 0, 4)
    root_vtable = len(head)
    head += struct.pack("<4H", 8, 8, 0, 4)
    root = len(head)
    head += struct.pack("<iI", root - root_vtable, 4)
    head += struct.pack("<II", 1, 4)  # the vector of runs
    table = len(head)
    head += struct.pack("<iI", table - run_vtable, 4)
    struct.pack_into("<I", head, 4, root - 4)
    out = bytes(head) + body(event_vtable)
    return struct.pack("<I", len(out) - 4) + out[4:]


START = len(trace(lambda _: b""))


def shared_event(count: int) -> bytes:
    """One empty Event, entered `count` times."""

    def body(event_vtable: int) -> bytes:
        at = START + 4 + 4 * count
        slots = START + 4 + 4 * np.arange(count)
        vector = struct.pack("<I", count) + (at - slots).astype("<u4").tobytes()
        return vector + struct.pack("<iI", at - event_vtable, 0)

    return trace(body)


def huge_count(count: int) -> bytes:
    return trace(lambda _: struct.pack("<I", count) + bytes(64))


def test_crafted_trace_without_tricks_is_read() -> None:
    def body(event_vtable: int) -> bytes:
        at = START + 8
        event = struct.pack("<iI", at - event_vtable, 12)
        table = at + 8 + 8
        return (
            struct.pack("<II", 1, 4)
            + event
            + struct.pack("<4H", 8, 12, 4, 8)
            + struct.pack("<iIi", table - (at + 8), 8, 5)
            + struct.pack("<I", 2)
            + b"ab\0\0"
        )

    (event,) = etdump.decode(trace(body)).run_data[0].events
    assert event == ProfileEvent("ab", 5)


@pytest.mark.parametrize(
    "raw",
    [
        shared_event(1_000_000),
        huge_count(0xFFFFFFFF),
        huge_count(0x3FFFFFFF),
        huge_count(17),
    ],
    ids=["one table a million times", "4 billion events", "1 billion events", "one too many"],
)
def test_crafted_trace_is_refused_or_salvaged_in_bounded_time_and_memory(raw: bytes) -> None:
    tracemalloc.start()
    began = time.process_time()
    read = survives(etdump.decode, raw)
    spent = time.process_time() - began
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert read is None or not any(len(block.events) for block in read.run_data)
    assert spent < 2
    assert peak < 4 * len(raw) + 100 * MB


def test_million_runs_that_share_one_event_vector_are_refused() -> None:
    runs = 200_000
    body = bytearray(struct.pack("<II4s", 0, 0, b"ED00"))
    body += struct.pack("<6H", 12, 8, 0, 0, 0, 4) + struct.pack("<4H4x", 8, 8, 0, 4)
    root = len(body)
    body += struct.pack("<iI", root - 24, 4) + struct.pack("<I", runs)
    first = len(body) + 4 * runs
    slots = len(body) + 4 * np.arange(runs)
    tables = first + 8 * np.arange(runs)
    body += (tables - slots).astype("<u4").tobytes()
    pairs = np.zeros((runs, 2), dtype="<u4")
    pairs[:, 0] = tables - 12
    end = first + 8 * runs
    pairs[:, 1] = end - (tables + 4)
    events = 1000
    body += pairs.tobytes() + struct.pack("<I", events) + struct.pack("<I", 4) * events
    struct.pack_into("<II", body, 0, len(body) - 4, root - 4)
    with pytest.raises(FormatError, match="more than twice"):
        etdump.decode(bytes(body))


def test_names_that_overlap_a_million_times_are_refused() -> None:
    kernels = [f"native_call_op_{index}.out" for index in range(3)]
    made = synthetic(50_000, runs=1, kernels=kernels, shared_names=False)
    raw = bytearray(etdump.encode(made))
    # Every byte of a long run of 0x00000100 words is the length of a name that fits the file.
    at = raw.index(b"native_call_op_0.out") - 4
    raw[at:] = b"\0\1\0\0" * ((len(raw) - at) // 4) + bytes((len(raw) - at) % 4)
    read = survives(etdump.decode, bytes(raw))
    assert read is None or len(read.events.strings) < 50_000


@pytest.mark.parametrize("soffset", [0, 1, -1, 2**31 - 1, -(2**31)])
def test_event_whose_vtable_is_elsewhere_is_salvaged(soffset: int) -> None:
    raw = bytearray(etdump.encode(three_blocks()))
    first = bytes(raw).index(struct.pack("<I", 4))
    for at in range(0, len(raw) - 8, 4):
        if struct.unpack_from("<I", raw, at)[0] == 4 and at > first + 200:
            struct.pack_into("<i", raw, at - 4, soffset)
            break
    survives(etdump.decode, bytes(raw))


# --- JSON ---------------------------------------------------------------------------------

JSON = b"""{
  version: 0,
  run_data: [ { name: "Execute", allocators: [ { name: "a" } ], events: [
    { profile_event: { name: "x \\xe2 \\"y\\" nan: 5", chain_index: -1, start_time: 5, end_time: 9,
        delegate_debug_metadata: [ 1, 255 ] } },
    { "debug_event": { "instruction_id": 4, "debug_entry": { "val": "Tensor", "output": {},
        "tensor": { "scalar_type": "HALF", "sizes": [ 2 ], "strides": [ 1 ], "offset": 64 } } } },
    { debug_event: { debug_entry: { val: 3, float_value: { float_val: -inf } } } },
    { allocation_event: { allocation_size: 18446744073709551615 } }, { } ] } ]
}
"""


def test_json_of_a_trace_gives_its_events_with_the_defaults_of_the_schema() -> None:
    assert etdump.sniff(JSON)
    read = etdump.decode(JSON, file="run.json")
    (block,) = read.run_data
    assert (block.name, block.allocators, block.bundled_input_index) == ("Execute", ("a",), -1)
    timed, tensor, real, taken, nothing = block.events
    assert isinstance(timed, ProfileEvent)
    assert (timed.name, timed.chain_index, timed.instruction_id) == ('x \xe2 "y" nan: 5', -1, -1)
    assert (timed.start_time, timed.end_time, bytes(timed.metadata or b"")) == (5, 9, b"\x01\xff")
    assert isinstance(tensor, DebugEvent)
    assert tensor.value is not None
    assert tensor.value.tensor == DebugTensor(5, (2,), (1,), 64)
    assert tensor.value.output is False
    assert (tensor.chain_index, tensor.instruction_id) == (0, 4)
    assert isinstance(real, DebugEvent)
    assert real.value is not None
    assert real.value.float_value == float("-inf")
    assert taken == AllocationEvent(0, 2**64 - 1)
    assert nothing is None
    assert [issue.severity for issue in read.issues] == [Severity.INFO]


def test_damaged_json_of_a_trace_is_refused_or_read() -> None:
    for data in all_kinds(JSON, 5, 400):
        if etdump.is_json(data):
            survives(etdump.decode, data)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            b'{run_data: [{name: "a", events: [{profile_event: 3}]}]}',
            "run_data[0].events[0].profile",
        ),
        (b"{run_data: 3}", "in run_data: expected a list, found 3"),
        (b"{run_data: [{bundled_input_index: 9999999999}]}", "run_data[0].bundled_input_index"),
        (b"{run_data: [{name: 3}]}", "expected a string, found 3"),
        (
            b'{run_data: [{events: [{debug_event: {debug_entry: {val: "Odd"}}}]}]}',
            "one of Null, Int",
        ),
        (b"{run_data: " + b"[" * 200_000, "expected JSON of moderate depth"),
        (b"{run_data: [" + b"9" * 10_000 + b"]}", "expected JSON as flatc prints it"),
        (b'{run_data: ["' + b'\\"' * 500_000, "expected JSON as flatc prints it"),
        (b"{run_data: [" + b"a: " * 500_000, "expected JSON as flatc prints it"),
        (b"{run_data: [\xff]}", "expected JSON in UTF-8"),
    ],
)
def test_hostile_json_of_a_trace_is_refused_at_once(text: bytes, told: str) -> None:
    assert etdump.is_json(text[:256])
    began = time.process_time()
    with pytest.raises(FormatError) as caught:
        etdump.decode(text, file="run.json")
    assert told in str(caught.value)
    assert time.process_time() - began < 5


def test_json_larger_than_what_is_read_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schema.flatbuf.json_text.MOST_BYTES", 100)
    with pytest.raises(FormatError, match="flatc --binary"):
        etdump.decode(JSON)
