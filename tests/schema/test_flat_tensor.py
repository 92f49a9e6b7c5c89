"""External data: both layouts behind one signature, read, written, damaged."""

from __future__ import annotations

import struct
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schema import flat_tensor
from schema.dtypes.scalar_type import BY_NAME
from schema.errors import FormatError, Severity
from schema.flat_tensor import Entry, FileSegment, FlatTensor, PlacedBlob, TensorLayout
from schema.flat_tensor.tables import FLAT_TENSOR, OLD_FLAT_TENSOR
from tests.oracle.client import Oracle
from tests.schema.damage import all_kinds, survives

pytestmark = pytest.mark.slow

FLOAT = BY_NAME["float32"].code
KEYS = st.text(max_size=8)
LAYOUTS = st.builds(
    TensorLayout,
    st.integers(-128, 127),
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=4).map(tuple),
    st.lists(st.integers(0, 255), max_size=4).map(tuple),
)
BLOBS = st.builds(PlacedBlob, st.binary(max_size=300), st.none() | LAYOUTS)


def layout(*sizes: int) -> TensorLayout:
    return TensorLayout(FLOAT, sizes, tuple(range(len(sizes))))


def numbers(count: int, first: float = 0.0) -> bytes:
    return (np.arange(count, dtype="<f4") + first).tobytes()


def sample() -> FlatTensor:
    return flat_tensor.pack(
        [
            ("weight", PlacedBlob(numbers(6), layout(2, 3))),
            ("bias", PlacedBlob(numbers(3, 9.0), layout(3))),
            ("tied", PlacedBlob(numbers(6), layout(2, 3))),
            ("blob", PlacedBlob(b"opaque")),
        ]
    )


def old_sample(alignment: int = 16) -> FlatTensor:
    tensors = numbers(6) + bytes(8) + numbers(3, 9.0)
    whole, blob = FileSegment(memoryview(tensors)), FileSegment(memoryview(b"opaque"))
    entries = (
        Entry("weight", 0, layout(2, 3), 0, whole.data[:24]),
        Entry("bias", 0, layout(3), 32, whole.data[32:44]),
        Entry("blob", 1, None, 0, blob.data),
    )
    return FlatTensor(entries, (whole, blob), tensor_alignment=alignment)


def placed(data: FlatTensor) -> FlatTensor:
    """The artifact with the places that `encode` chose, to compare it with what is read."""
    read = flat_tensor.decode(flat_tensor.encode(data))
    segments = tuple(
        replace(segment, offset=found.offset)
        for segment, found in zip(data.segments, read.segments, strict=True)
    )
    return replace(data, segments=segments)


# --- laws ---------------------------------------------------------------------------------


@given(st.lists(st.tuples(KEYS, BLOBS), max_size=6), st.sampled_from([16, 128, 4096]))
@settings(max_examples=120, deadline=None)
def test_decode_of_encoded_data_gives_equal_data(
    blobs: list[tuple[str, PlacedBlob]], alignment: int
) -> None:
    data = flat_tensor.pack(blobs)
    read = flat_tensor.decode(flat_tensor.encode(data, alignment=alignment))
    assert read.entries == data.entries
    assert [segment.data for segment in read.segments] == [s.data for s in data.segments]
    assert all(segment.offset % alignment == 0 for segment in read.segments)
    assert flat_tensor.decode(flat_tensor.encode(read)) == read


@given(st.integers(0, 2**32 - 1), st.lists(KEYS, max_size=4))
@settings(max_examples=60, deadline=None)
def test_decode_of_encoded_old_data_gives_equal_data(alignment: int, keys: list[str]) -> None:
    data = old_sample(alignment)
    more = tuple(Entry(key, 1, None, 0, data.segments[1].data) for key in keys)
    data = replace(data, entries=data.entries + more)
    assert flat_tensor.decode(flat_tensor.encode(data)) == placed(data)


def test_pack_stores_equal_bytes_once() -> None:
    data = sample()
    assert [entry.segment_index for entry in data.entries] == [0, 1, 0, 2]
    assert data.blobs()["tied"] == numbers(6)
    assert data.entries[1].size == 12


@pytest.mark.parametrize("make", [sample, old_sample])
def test_old_and_new_layout_are_told_apart_by_the_root(make: object) -> None:
    data = make()  # pyright: ignore[reportCallIssue]
    raw = flat_tensor.encode(data)
    read = flat_tensor.decode(raw)
    assert raw[4:12] == b"FT01FH01"
    assert read.old_layout is data.old_layout
    _, table, _ = flat_tensor.root_table(memoryview(raw))
    assert table is (OLD_FLAT_TENSOR if data.old_layout else FLAT_TENSOR)
    assert read.blobs()["bias"] == numbers(3, 9.0)
    assert read.issues == ()


def test_encode_keeps_the_places_of_a_file_that_was_read() -> None:
    wide = flat_tensor.decode(flat_tensor.encode(sample(), alignment=4096))
    assert [segment.offset for segment in wide.segments] == [0, 4096, 8192]
    again = flat_tensor.decode(flat_tensor.encode(wide))
    assert again == wide


def test_encode_lays_overlapping_segments_out_anew() -> None:
    data = sample()
    segments = tuple(replace(segment, offset=0) for segment in data.segments)
    read = flat_tensor.decode(flat_tensor.encode(replace(data, segments=segments)))
    assert [segment.offset for segment in read.segments] == [0, 128, 256]
    assert read.blobs() == data.blobs()


def test_decode_of_data_without_segments_is_empty() -> None:
    read = flat_tensor.decode(flat_tensor.encode(FlatTensor((), ())))
    assert (read.entries, read.segments, read.issues) == ((), (), ())


# --- header -------------------------------------------------------------------------------

DOCUMENTED = bytes.fromhex(
    "44000000" "46543031" "46483031" "28000000" "3000000000000000" "0001000000000000"
    "3001000000000000" "2000000000000000"
)  # fmt: skip


def test_header_fields_of_the_documented_example_are_those_of_the_document() -> None:
    found = {entry.name: entry.value for entry in flat_tensor.header_fields(DOCUMENTED)}
    assert found == {
        "root offset": 0x44,
        "file_identifier": "FT01",
        "magic": "FH01",
        "length": 40,
        "flatbuffer_offset": 0x30,
        "flatbuffer_size": 0x100,
        "segment_base_offset": 0x130,
        "segment_data_size": 0x20,
    }
    places = [(entry.offset, entry.size) for entry in flat_tensor.header_fields(DOCUMENTED)]
    assert places == [(0, 4), (4, 4), (8, 4), (12, 4), (16, 8), (24, 8), (32, 8), (40, 8)]
    assert flat_tensor.sniff(DOCUMENTED)


def test_header_says_where_everything_is() -> None:
    raw = flat_tensor.encode(sample())
    read = flat_tensor.decode(raw)
    header = read.header
    assert header is not None
    assert header.flatbuffer_offset == 48
    assert header.segment_base_offset % 128 == 0
    assert header.segment_base_offset + header.segment_data_size == len(raw) == read.nbytes
    assert len(read.extents) == 3
    for segment, (start, end) in zip(read.segments, read.extents, strict=True):
        assert start % 128 == 0
        assert raw[start:end] == segment.data
    assert sample().extents == ()


@pytest.mark.parametrize(
    ("at", "code", "value", "sentence"),
    [
        (4, "4s", b"XT01", "the identifier FT01"),
        (8, "4s", b"eh00", "the header FH01"),
        (12, "<I", 39, "a header of 40 bytes or more, found 39"),
        (24, "<Q", 2**63, "cut short"),
        (16, "<Q", 10**6, "cut short"),
        (0, "<I", 0xFFFFFFF0, "inside a region"),
    ],
)
def test_decode_of_broken_header_says_what_is_wrong(
    at: int, code: str, value: object, sentence: str
) -> None:
    raw = bytearray(flat_tensor.encode(sample()))
    struct.pack_into(code, raw, at, value)
    with pytest.raises(FormatError, match=sentence) as caught:
        flat_tensor.decode(bytes(raw), file="w.ptd")
    assert str(caught.value).startswith("w.ptd: ")


@pytest.mark.parametrize("size", [0, 3, 8, 12, 47])
def test_decode_of_less_than_a_header_is_refused(size: int) -> None:
    raw = flat_tensor.encode(sample())[:size]
    with pytest.raises(FormatError) as found:
        flat_tensor.decode(raw)
    with pytest.raises(FormatError, match="w: "):
        flat_tensor.header_fields(raw, file="w")
    if size >= 12:  # the magic is there, and is not what is wrong
        assert f"expected a file of 48 bytes or more, found {size}; it was cut" in str(found.value)


# --- odd but readable ---------------------------------------------------------------------


def test_decode_of_cut_segments_shows_what_is_left() -> None:
    raw = flat_tensor.encode(sample())
    read = flat_tensor.decode(raw[:-4])
    assert read.blobs()["weight"] == numbers(6)
    assert read.blobs()["blob"] == b"op"
    assert read.issues[0].severity is Severity.ERROR
    assert "segment 2 ends at" in read.issues[0].message


def test_decode_of_dangling_and_short_entries_says_which() -> None:
    data = sample()
    strange = (
        Entry("nowhere", 9, None, 0, memoryview(b"")),
        Entry("short", 1, layout(4), 0, data.segments[1].data),
        Entry("bias", 0, None, 0, data.segments[0].data),
    )
    read = flat_tensor.decode(
        flat_tensor.encode(replace(data, entries=data.entries + strange, version=1))
    )
    messages = " | ".join(issue.message for issue in read.issues)
    assert "'nowhere' is in segment 9 of 3" in messages
    assert "'short' needs 16 bytes, its segment has 12" in messages
    assert "more than once" in messages
    assert "schema version 1" in messages


def test_decode_of_old_tensor_outside_its_segment_says_so() -> None:
    data = old_sample()
    lost = replace(data.entries[1], offset=40)
    read = flat_tensor.decode(flat_tensor.encode(replace(data, entries=(lost,))))
    assert "'bias' needs 12 bytes from byte 40 of a segment of 44" in read.issues[0].message
    assert read.entries[0].size == 4


def test_decode_of_another_identifier_number_reads_it_and_says_so() -> None:
    raw = flat_tensor.encode(sample()).replace(b"FT01", b"FT02")
    read = flat_tensor.decode(raw)
    assert read == placed(sample())
    assert "FT02" in read.issues[0].message


# --- damage -------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [sample, old_sample])
@pytest.mark.parametrize("seed", range(3))
def test_decode_of_damaged_bytes_refuses_or_gives_sound_data(make: object, seed: int) -> None:
    raw = flat_tensor.encode(make())  # pyright: ignore[reportCallIssue]
    for broken in all_kinds(raw, seed, 150):
        read = survives(flat_tensor.decode, broken)
        if read is not None:
            assert sum(len(segment.data) for segment in read.segments) <= 4 * len(broken)


def test_decode_of_a_million_empty_entries_is_bounded() -> None:
    count = 500_000
    body = bytearray(struct.pack("<5H2x2H", 10, 12, 0, 0, 4, 4, 4))
    at = 48
    root = at + len(body)
    body += struct.pack("<iIIII", root - at, 8, 0, 0, count)  # the vector follows
    tables = at + len(body) + 4 * count
    slots = at + len(body) + 4 * np.arange(count)
    steps = tables + 4 * np.arange(count)
    struct.pack_into("<I", body, root - at + 4, at + len(body) - 4 - (root + 4))
    body += (steps - slots).astype("<u4").tobytes() + (steps - (at + 12)).astype("<i4").tobytes()
    head = struct.pack("<I4s4sIQQQQ", root, b"FT01", b"FH01", 40, at, len(body), 0, 0)
    began = time.process_time()
    read = survives(flat_tensor.decode, head + bytes(body))
    assert time.process_time() - began < 5
    assert read is None or (len(read.entries) == count and len(read.issues) <= 25)


# --- the stock tool -----------------------------------------------------------------------


@pytest.mark.interop
def test_decode_of_stock_data_gives_what_the_stock_reader_gives(
    extra: Path, oracle: Oracle
) -> None:
    path = extra / "external_weights" / "model.ptd"
    stock = oracle.ask("data_file", path=path)
    ours = flat_tensor.decode(path.read_bytes())
    assert ours.issues == ()
    assert {entry.key for entry in ours.entries} == set(stock["named_data"])
    for entry in ours.entries:
        theirs = stock["named_data"][entry.key]
        assert entry.layout is not None
        assert list(entry.layout.sizes) == theirs["tensor_layout"]["sizes"]
        assert list(entry.layout.dim_order) == theirs["tensor_layout"]["dim_order"]
        blob = stock["buffers"][theirs["buffer_index"]]
        assert entry.size == blob["nbytes"]
        if "hex" in blob:
            assert bytes(entry.data).hex() == blob["hex"]


@pytest.mark.interop
@pytest.mark.parametrize("fresh", [False, True], ids=["places kept", "packed anew"])
def test_stock_runtime_runs_a_program_with_data_that_we_wrote(
    fresh: bool, extra: Path, oracle: Oracle, tmp_path: Path
) -> None:
    folder = extra / "external_weights"
    data = flat_tensor.decode((folder / "model.ptd").read_bytes())
    if fresh:
        data = flat_tensor.pack(
            (entry.key, PlacedBlob(entry.data, entry.layout)) for entry in reversed(data.entries)
        )
    ours = tmp_path / "model.ptd"
    ours.write_bytes(flat_tensor.encode(data))
    answer = oracle.ask("run", path=folder / "model.pte", data_path=ours)
    assert "error" not in answer
    assert answer == oracle.ask("run", path=folder / "model.pte", data_path=folder / "model.ptd")
    assert "error" not in oracle.ask("data_file", path=ours)


def test_data_of_release_0_6_is_read_by_its_own_layout(data: Path) -> None:
    path = data / "old" / "data_0_6.ptd"
    read = flat_tensor.decode(path.read_bytes(), file=str(path))
    assert read.old_layout
    assert read.issues == ()
    today = flat_tensor.decode((data / "extra" / "external_weights" / "model.ptd").read_bytes())
    assert len(today.entries) == 4
    assert read.blobs() == today.blobs()
    assert {e.key: e.layout for e in read.entries} == {e.key: e.layout for e in today.entries}
    assert flat_tensor.decode(flat_tensor.encode(read)) == read
