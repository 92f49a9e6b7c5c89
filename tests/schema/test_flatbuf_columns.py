"""Columns of many tables: the same numbers as one by one, damage marked row by row."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schema.errors import FormatError
from schema.flatbuf import spec as fb
from schema.flatbuf import strings
from schema.flatbuf.columns import Columns, Region, Rows, columns, extents, follow, items
from schema.flatbuf.spec import SKIP, String, Vec, spec
from schema.flatbuf.writer import write_root


@dataclass(frozen=True)
class Row:
    small: int
    wide: int
    text: str | None
    child: Row | None
    numbers: tuple[int, ...]


LEAF = spec(
    "Row", Row, ("small", fb.I16, 3), ("wide", fb.I64, -1), ("text", String(), None),
    ("child", SKIP), ("numbers", Vec(fb.I32)),
)  # fmt: skip
ROW = spec(
    "Row", Row, ("small", fb.I16, 3), ("wide", fb.I64, -1), ("text", String(), None),
    ("child", LEAF), ("numbers", Vec(fb.I32)),
)  # fmt: skip


@dataclass(frozen=True)
class Root:
    rows: tuple[Row, ...]


ROOT = spec("Root", Root, ("rows", Vec(ROW)))
_SMALL, _WIDE, _TEXT, _CHILD, _NUMBERS = ROW.fields
SMALL = st.integers(-(2**15), 2**15 - 1)
WIDE = st.integers(-(2**63), 2**63 - 1)
NUMBERS = st.lists(st.integers(-5, 5), max_size=3).map(tuple)
TEXTS = st.none() | st.sampled_from(["", "a", "b" * 8, "b" * 9, "c" * 300]) | st.text(max_size=20)
CHILDREN = st.none() | st.builds(Row, SMALL, WIDE, TEXTS, st.none(), NUMBERS)
ROWS = st.lists(st.builds(Row, SMALL, WIDE, TEXTS, CHILDREN, NUMBERS), max_size=12)


def opened(raw: bytes) -> tuple[Region, Rows, Columns]:
    """The rows of a root table as columns."""
    region = Region(memoryview(raw))
    one, top = np.zeros(1, dtype=np.int64), Rows(1)
    at, _ = follow(region, top, one, one)
    root, _ = columns(region, top, at, one)
    starts, counts = extents(region, top, root.offsets(ROOT.field("rows")), one, 4)
    slots = items(region, starts, counts, 4)
    rows, numbers = Rows(len(slots)), np.arange(len(slots))
    target, good = follow(region, rows, slots, numbers)
    made, _ = columns(region, rows, target[good], numbers[good])
    return region, rows, made


@pytest.mark.slow
@given(ROWS)
@settings(max_examples=150, deadline=None)
def test_columns_give_what_was_written(expected: list[Row]) -> None:
    region, rows, made = opened(write_root(ROOT, Root(tuple(expected))))
    assert made.scalar(_SMALL).tolist() == [row.small for row in expected]
    assert made.scalar(_WIDE).tolist() == [row.wide for row in expected]
    ids, found = strings.intern(region, rows, made.offsets(_TEXT), made.owners)
    assert [None if i < 0 else found[i].decode() for i in ids] == [row.text for row in expected]
    assert len(set(found)) == len(found)
    starts, counts = extents(region, rows, made.offsets(_NUMBERS), made.owners, 4)
    flat = region.numbers(items(region, starts, counts, 4), "<i4").tolist()
    assert flat == [number for row in expected for number in row.numbers]
    children, parents = made.children(_CHILD)
    inner = [index for index, row in enumerate(expected) if row.child is not None]
    assert parents.tolist() == children.owners.tolist() == inner
    assert not rows.bad.any()


@given(st.lists(st.binary(max_size=40) | st.sampled_from([b"x" * 257, b"x" * 600]), max_size=30))
@settings(max_examples=150, deadline=None)
def test_intern_numbers_texts_by_first_use(raw: list[bytes]) -> None:
    region, at = packed(raw)
    ids, found = strings.intern(region, Rows(len(raw)), at, np.arange(len(raw)))
    assert [found[i] for i in ids] == raw
    assert list(found) == list(dict.fromkeys(raw))


@given(st.lists(st.binary(max_size=20), max_size=20))
@settings(max_examples=60, deadline=None)
def test_intern_stays_exact_when_every_text_mixes_to_the_same_number(raw: list[bytes]) -> None:
    region, at = packed(raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strings, "_mixed", lambda _r, _s, counts, _l: np.zeros(len(counts), "u8"))
        ids, found = strings.intern(region, Rows(len(raw)), at, np.arange(len(raw)))
    assert [found[i] for i in ids] == raw
    assert len(set(found)) == len(found)


def packed(raw: list[bytes]) -> tuple[Region, np.ndarray]:
    body, at = bytearray(8), []
    for item in raw:
        at.append(len(body))
        body += struct.pack("<I", len(item)) + item
    return Region(memoryview(bytes(body))), np.array(at, dtype=np.int64)


def test_intern_of_one_long_text_used_often_reads_it_once() -> None:
    region, _ = packed([b"y" * 100_000])
    at = np.full(200_000, 8, dtype=np.int64)
    ids, found = strings.intern(region, Rows(len(at)), at, np.arange(len(at)))
    assert found == (b"y" * 100_000,)
    assert not ids.any()


def test_intern_of_overlapping_texts_larger_than_the_file_is_refused() -> None:
    words = np.full(4000, 8000, dtype="<u4")
    at = np.arange(8, 7000, 4, dtype=np.int64)
    region = Region(memoryview(words.tobytes()))
    with pytest.raises(FormatError, match="strings that fit a region"):
        strings.intern(region, Rows(len(at)), at, np.arange(len(at)))


@pytest.mark.parametrize("width", ["<u2", "<u4", "<u8", "u1", "<f8"])
def test_numbers_at_any_byte_are_those_of_struct(width: str) -> None:
    raw = bytes(range(100))
    at = np.array([0, 1, 3, 50, 100 - np.dtype(width).itemsize])
    found = Region(memoryview(raw)).numbers(at, width)
    expected = [np.frombuffer(raw, width, 1, int(place))[0] for place in at]
    np.testing.assert_array_equal(found, expected)


def test_damage_marks_its_row_and_says_where() -> None:
    rows = [Row(i, i, f"text{i}", Row(9, 9, None, None, ()), ()) for i in range(5)]
    raw = bytearray(write_root(ROOT, Root(tuple(rows))))
    at = bytes(raw).index(b"text3\0") - 4
    struct.pack_into("<I", raw, at, 0x7FFFFFFF)
    region, marks, made = opened(bytes(raw))
    strings.intern(region, marks, made.offsets(_TEXT), made.owners)
    assert marks.bad.tolist() == [False, False, False, True, False]
    assert marks.reason(3) == (at, "a vector that ends outside the file")
    with pytest.raises(KeyError):
        marks.reason(2)


@pytest.mark.parametrize("soffset", [0x7FFFFFFF, -0x80000000, 1 << 20])
def test_table_with_vtable_outside_is_left_out(soffset: int) -> None:
    rows = [Row(i, i, None, None, ()) for i in range(3)]
    raw = bytearray(write_root(ROOT, Root(tuple(rows))))
    _, _, made = opened(bytes(raw))
    at = int(made.positions[1])
    struct.pack_into("<i", raw, at, soffset)
    _, marks, made = opened(bytes(raw))
    assert marks.bad.tolist() == [False, True, False]
    assert made.owners.tolist() == [0, 2]
    assert made.scalar(_SMALL).tolist() == [0, 2]


def test_field_outside_its_table_marks_the_row_and_counts_as_absent() -> None:
    raw = bytearray(write_root(ROOT, Root((Row(7, 8, None, None, (1,)),))))
    _, _, made = opened(bytes(raw))
    struct.pack_into("<H", raw, int(made.vtables[0]) + 4, int(made.table_bytes[0]) - 1)
    _, marks, made = opened(bytes(raw))
    assert made.scalar(_SMALL).tolist() == [3]
    assert marks.bad.tolist() == [True]


def test_tables_entered_more_often_than_the_file_is_long_are_refused() -> None:
    raw = write_root(ROOT, Root((Row(7, 8, "x", None, (1,)),)))
    region, marks, made = opened(raw)
    at = np.repeat(made.positions, 10_000)
    with pytest.raises(FormatError, match="tables that fit a region"):
        columns(region, marks, at, np.zeros(len(at), dtype=np.int64))
