"""Traces: what is written is read back, in every variant that releases have written."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from schema import etdump
from schema.errors import FormatError
from schema.etdump import (
    DebugEvent,
    DebugTensor,
    DebugValue,
    EventKind,
    EventTable,
    ProfileEvent,
    ValueType,
    joined,
)
from schema.etdump.build import dump, run, synthetic, table
from schema.flatbuf import spec as fb
from schema.flatbuf.spec import SKIP, Blob, String, Vec, spec
from schema.flatbuf.writer import write_root
from tests.conftest import DATA
from tests.schema.etdump_samples import DUMPS, every_value, small_dump

KERNELS = tuple(f"native_call_op_{index}.out" for index in range(11))

pytestmark = pytest.mark.slow

TRACES = sorted(DATA.rglob("run.etdp"))


# --- laws ---------------------------------------------------------------------------------


@given(DUMPS)
@settings(max_examples=200, deadline=None)
def test_decode_of_encoded_dump_gives_equal_dump(made: etdump.ETDump) -> None:
    again = etdump.decode(etdump.encode(made))
    assert again == made
    assert [tuple(run.events) for run in etdump.decode(etdump.encode(again)).run_data] == [
        tuple(run.events) for run in again.run_data
    ] or any_nan(made)


def any_nan(made: etdump.ETDump) -> bool:
    return "nan" in repr([tuple(run.events) for run in made.run_data])


@given(DUMPS)
@settings(max_examples=100, deadline=None)
def test_events_of_decoded_dump_are_those_it_was_made_of(made: etdump.ETDump) -> None:
    again = etdump.decode(etdump.encode(made))
    for ours, theirs in zip(made.run_data, again.run_data, strict=True):
        assert [plain(event) for event in ours.events] == [plain(event) for event in theirs.events]


def plain(event: etdump.AnyEvent) -> str:
    # repr: NaN equals itself, and metadata is bytes here and a view there
    if isinstance(event, ProfileEvent) and event.metadata is not None:
        event = replace(event, metadata=bytes(event.metadata))
    return repr(event)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: str(path.parent.relative_to(DATA)))
def test_decode_of_rewritten_stock_trace_gives_equal_trace(path: Path) -> None:
    read = etdump.decode(path.read_bytes(), file=str(path))
    again = etdump.decode(etdump.encode(read))
    assert again == read
    assert again.issues == tuple(issue for issue in again.issues if "no runs" in issue.message)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"chain_index": 1},
        {"instruction_id": 9},
        {"start_time": 21},
        {"end_time": 31},
        {"delegate_id_int": 4},
        {"delegate_id_str": "id"},
        {"metadata": b"x"},
    ],
)
def test_tables_that_differ_in_one_field_are_not_equal(change: dict[str, object]) -> None:
    event = ProfileEvent("op", 0, 3, 20, 30)
    assert table([event]) == table([replace(event)])
    assert table([event]) != table([replace(event, **change)])


def test_tables_that_differ_in_a_value_are_not_equal() -> None:
    values = every_value()
    for value in values:
        assert table([DebugEvent(value)]) == table([DebugEvent(replace(value))])
        assert table([DebugEvent(value)]) != table([DebugEvent(None)])
        flipped = DebugEvent(replace(value, output=not value.output))
        assert table([DebugEvent(value)]) != table([flipped])


def test_tables_are_equal_however_strings_are_numbered() -> None:
    a, b = ProfileEvent("a", 0, 0, 1, 2), ProfileEvent("b", 0, 1, 3, 4)
    whole = table([b, a, b])
    assert EventTable(whole.store, 1, 3) == table([a, b])
    assert hash(EventTable(whole.store, 1, 3)) == hash(table([a, b]))


def test_absent_and_empty_texts_and_metadata_stay_apart() -> None:
    events = [
        ProfileEvent(name, delegate_id_str=text, metadata=blob)
        for name in (None, "", "x")
        for text in (None, "", "x")
        for blob in (None, b"", b"x")
    ]
    again = etdump.decode(etdump.encode(dump([run("Execute", events)])))
    found = [(e.name, e.delegate_id_str, e.metadata) for e in again.run_data[0].events]
    assert found == [(e.name, e.delegate_id_str, e.metadata) for e in events]


def test_chain_index_of_program_outputs_is_normalised_without_loss() -> None:
    chains = [-1, 0, 5, -(2**63), 2**63 - 1]
    made = dump([run("Execute", [DebugEvent(every_value()[0], chain) for chain in chains])])
    raw = etdump.encode(made)
    assert struct.pack("<Q", 2**64 - 1) in raw
    assert etdump.decode(raw).run_data[0].events.chain_index.tolist() == chains


def test_columns_are_read_only_and_unused_ones_take_no_memory() -> None:
    events = etdump.decode(etdump.encode(synthetic(1000))).run_data[0].events
    for name in ("kind", "start_time", "allocation_size", "value", "name"):
        column = getattr(events, name)
        assert not column.flags.writeable
    assert events.store.allocation_size.strides == (0,)
    assert events.store.metadata.strides == (0,)


def test_indexing_works_like_a_sequence() -> None:
    events = table([ProfileEvent(str(i)) for i in range(5)])
    assert events[-1] == ProfileEvent("4")
    assert events[1:3] == (ProfileEvent("1"), ProfileEvent("2"))
    assert [event.name for event in events if isinstance(event, ProfileEvent)] == list("01234")
    with pytest.raises(IndexError):
        events[5]


# --- joining ------------------------------------------------------------------------------


def test_joined_neighbours_share_the_columns_of_their_trace() -> None:
    made = etdump.decode(etdump.encode(small_dump()))
    assert made.events.store is made.run_data[0].events.store
    assert len(made.events) == sum(len(run.events) for run in made.run_data)


@given(DUMPS, DUMPS)
@settings(max_examples=40, deadline=None)
def test_joined_events_of_two_dumps_are_the_events_of_both(
    a: etdump.ETDump, b: etdump.ETDump
) -> None:
    tables = [run.events for made in (a, b) for run in made.run_data]
    expected = [plain(event) for part in tables for event in part]
    assert [plain(event) for event in joined(tables)] == expected


def test_encode_of_some_runs_of_a_trace_keeps_only_those() -> None:
    made = etdump.decode(etdump.encode(small_dump()))
    kept = replace(made, run_data=(made.run_data[2], made.run_data[0]))
    assert etdump.decode(etdump.encode(kept)) == kept


# --- recognition --------------------------------------------------------------------------


@pytest.mark.parametrize("prefixed", [True, False])
def test_decode_finds_out_whether_there_is_a_size_prefix(prefixed: bool) -> None:
    raw = etdump.encode(replace(small_dump(), size_prefixed=prefixed))
    assert etdump.sniff(raw[:16])
    assert etdump.decode(raw).size_prefixed is prefixed
    names = [entry.name for entry in etdump.header_fields(raw)]
    assert names == ["size prefix", "root offset", "file_identifier"][0 if prefixed else 1 :]


def test_decode_of_identifier_at_both_places_trusts_the_size() -> None:
    # not prefixed, and the first vtable happens to spell the identifier
    body = struct.pack("<I4s4sHHi", 16, b"ED00", b"ED00", 4, 4, 4) + bytes(4)
    assert not etdump.decode(body).size_prefixed
    # prefixed, and the root offset happens to spell it: then the root is far away
    far = struct.unpack("<I", b"ED00")[0]
    with pytest.raises(FormatError) as caught:
        etdump.decode(struct.pack("<I4s4s8x", 16, b"ED00", b"ED00"))
    assert str(far + 4) in str(caught.value) or "region" in str(caught.value)


@pytest.mark.parametrize(
    "data", [b"", b"ED00", b"0000ED00", b"\0" * 64, b"PK\x03\x04" + b"\0" * 60, b"x" * 7]
)
def test_decode_of_something_else_says_what_it_expected(data: bytes) -> None:
    with pytest.raises(FormatError, match=r"x\.etdp: .*expected"):
        etdump.decode(data, file="x.etdp")


@pytest.mark.parametrize("data", [b"", b"0000ET12eh00", b"0000ED0", b"ED00ED0"])
def test_sniff_of_something_else_is_false(data: bytes) -> None:
    assert not etdump.sniff(data)


def test_header_fields_name_place_and_value() -> None:
    raw = etdump.encode(small_dump())
    size, root, name = etdump.header_fields(raw)
    assert (size.offset, size.size, size.value) == (0, 4, len(raw) - 4)
    assert (root.offset, root.size) == (4, 4)
    assert (name.offset, name.size, name.value) == (8, 4, "ED00")
    with pytest.raises(FormatError):
        etdump.header_fields(b"short", file="x")


def test_tables_for_the_structure_view_read_the_same_file() -> None:
    raw = etdump.encode(small_dump())
    reader, layout, base = etdump.root_table(memoryview(raw))
    root = reader.root(layout, base)
    runs = root["run_data"]
    assert isinstance(runs, tuple)
    assert [entry["name"] for entry in runs] == ["Default", "Execute", "Execute"]
    event = runs[1]["events"][3]["profile_event"]
    assert (event["delegate_debug_id_int"], event["start_time"]) == (3, 40)
    assert bytes(event["delegate_debug_metadata"]) == b"meta"


# --- traces without content ---------------------------------------------------------------


@pytest.mark.parametrize("prefixed", [True, False])
def test_decode_of_empty_dump_says_that_tracing_was_off(prefixed: bool) -> None:
    empty = etdump.decode(etdump.encode(dump([], size_prefixed=prefixed)))
    assert empty.run_data == ()
    assert "tracing was off" in empty.issues[0].message


def test_decode_of_dump_without_run_vector_says_that_tracing_was_off() -> None:
    raw = write_root(spec("ETDump", Shell, ("version", fb.U32)), Shell(), b"ED00")
    assert "tracing was off" in etdump.decode(raw).issues[0].message


class Shell:
    version = 0


def test_decode_of_newer_version_reads_it_and_says_so() -> None:
    raw = etdump.encode(replace(small_dump(), version=3))
    read = etdump.decode(raw)
    assert (read.version, len(read.run_data)) == (3, 3)
    assert "schema version 3" in read.issues[0].message


# --- older releases -----------------------------------------------------------------------

TEXT = String()


def test_decode_of_0_3_trace_reads_debug_events_without_name() -> None:
    older = spec(
        "DebugEvent",
        dict,
        ("chain_index", fb.U64),
        ("instruction_id", fb.I32, -1),
        ("debug_entry", spec("Value", dict, ("val", fb.I8), ("tensor", SKIP))),
    )
    raw = write_old(
        {"debug_event": {"chain_index": 2**64 - 1, "instruction_id": 4, "debug_entry": {"val": 0}}},
        debug=older,
    )
    (event,) = etdump.decode(raw).run_data[0].events
    assert event == DebugEvent(DebugValue(ValueType.NULL), -1, 4)


def write_old(event: dict[str, object], *, debug: object, first_release: bool = False) -> bytes:
    profile = spec(
        "ProfileEvent",
        dict,
        ("name", TEXT),
        ("chain_id", fb.I32),
        ("instruction_id", fb.I32, -1),
        ("delegate_debug_id_int", fb.I32, -1),
        ("delegate_debug_id_str", TEXT),
        ("delegate_debug_metadata", TEXT if first_release else Blob()),
        ("start_time", fb.U64),
        ("end_time", fb.U64),
    )
    kinds = spec(
        "Event",
        Record,
        ("profile_event", profile),
        ("allocation_event", SKIP),
        ("debug_event", debug),
    )
    allocator = spec("Allocator", Record, ("name", TEXT))
    index = [] if first_release else [("bundled_input_index", fb.I32, -1)]
    one = spec(
        "RunData",
        Record,
        ("name", TEXT),
        *index,
        ("allocators", Vec(allocator)),
        ("events", Vec(kinds)),
    )
    root = spec("ETDump", Record, ("version", fb.U32), ("run_data", Vec(one)))
    both = {"profile_event": None, "debug_event": None, **event}
    block = {"name": "run", "bundled_input_index": 2, "allocators": [], "events": [both]}
    tree = Record({"version": 0, "run_data": [block]})
    return write_root(root, tree, b"ED00", prefixed=True)


class Record:
    """Attribute access to nested dicts, which is what the writer takes."""

    def __init__(self, values: dict[str, object] | None = None, **more: object) -> None:
        for name, value in {**(values or {}), **more}.items():
            setattr(self, name, wrapped(value))


def wrapped(value: object) -> object:
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list):
        return tuple(wrapped(item) for item in value)
    return value


def test_decode_of_0_1_trace_reads_profile_events_from_its_other_slots() -> None:
    event = {
        "name": "OPERATOR_CALL",
        "chain_id": 1,
        "instruction_id": 7,
        "delegate_debug_id_int": -1,
        "delegate_debug_id_str": None,
        "delegate_debug_metadata": None,
        "start_time": 11,
        "end_time": 13,
    }
    raw = write_old({"profile_event": event}, debug=OLD_DEBUG, first_release=True)
    read = etdump.decode(raw)
    assert tuple(read.run_data[0].events) == (ProfileEvent("OPERATOR_CALL", 1, 7, 11, 13),)
    assert read.run_data[0].bundled_input_index == -1
    assert "0.1" in read.issues[0].message
    assert etdump.decode(etdump.encode(read)) == read


OLD_DEBUG = spec(
    "DebugEvent", Record, ("chain_idx", fb.U64), ("debug_handle", fb.U64), ("entries", Vec(fb.U64))
)


def test_decode_of_allocators_without_events_is_not_taken_for_0_1() -> None:
    named = spec("Allocator", Record, ("name", TEXT))
    one = spec("RunData", Record, ("name", TEXT), ("index", fb.I32), ("allocators", Vec(named)))
    root = spec("ETDump", Record, ("version", fb.U32), ("run_data", Vec(one)))
    block = {"name": "r", "index": 1, "allocators": [{"name": "pool"}, {"name": "x" * 40}]}
    tree = Record({"version": 0, "run_data": [block]})
    read = etdump.decode(write_root(root, tree, b"ED00"))
    assert read.run_data[0].allocators == ("pool", "x" * 40)
    assert read.run_data[0].bundled_input_index == 1
    assert read.issues == ()


# --- large traces -------------------------------------------------------------------------


@pytest.mark.parametrize("shared_names", [True, False])
def test_synthetic_trace_of_many_events_survives_writing(shared_names: bool) -> None:
    made = synthetic(20_003, runs=7, kernels=KERNELS, shared_names=shared_names)
    read = etdump.decode(etdump.encode(made))
    assert read == made
    assert read.issues == ()
    assert len(read.events.strings) == 13
    assert sum(len(run.events) for run in read.run_data) == 20_003
    assert (read.events.end_time >= read.events.start_time).all()
    assert set(np.unique(read.events.kind)) == {EventKind.PROFILE}


def test_many_blocks_of_one_trace_are_read_at_once() -> None:
    event = ProfileEvent("Method::execute", -1, 0, 1, 2)
    made = dump(run("Execute", [event]) for _ in range(3000))
    read = etdump.decode(etdump.encode(made))
    assert len(read.run_data) == 3000
    assert all(tuple(block.events) == (event,) for block in read.run_data)


def test_values_of_many_tensors_keep_their_sizes() -> None:
    tensors = [DebugTensor(6, tuple(range(i % 5)), (1,) * (i % 5), 64 * i) for i in range(2000)]
    values = [DebugValue(ValueType.TENSOR, tensor=tensor) for tensor in tensors]
    read = etdump.decode(etdump.encode(dump([run("x", [DebugEvent(v) for v in values])])))
    assert [value.tensor for value in read.run_data[0].events.values] == tensors
