"""The flatbuffer engine: what is written is read back, and broken bytes are refused."""

from __future__ import annotations

import re
import struct
import time
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schema.errors import FormatError
from schema.flatbuf import spec as fb
from schema.flatbuf.extents import extent_columns, extents
from schema.flatbuf.reader import Reader
from schema.flatbuf.spec import SKIP, Blob, String, Union, UnknownMember, Vec, spec
from schema.flatbuf.writer import write_root
from tests.schema.damage import all_kinds
from tests.schema.shared_vtables import share_vtables


@dataclass(frozen=True)
class Leaf:
    number: int
    real: float


@dataclass(frozen=True)
class Other:
    text: str | None


@dataclass(frozen=True)
class Tree:
    flag: bool
    small: int
    wide: int
    single: float
    name: str
    maybe: str | None
    raw: memoryview
    numbers: tuple[int, ...]
    flags: tuple[bool, ...]
    leaves: tuple[Leaf, ...]
    names: tuple[str, ...]
    choice: Leaf | Other | UnknownMember | None
    child: Leaf | None


@dataclass(frozen=True)
class Pair:
    first: Leaf | Other | UnknownMember | None
    second: Leaf | None


TEXT = String()
LEAF = spec("Leaf", Leaf, ("number", fb.I64, -7), ("real", fb.F64))
OTHER = spec("Other", Other, ("text", TEXT, None))
TREE = spec(
    "Tree",
    Tree,
    ("flag", fb.BOOL),
    ("small", fb.I8, -1),
    ("unused", SKIP),
    ("wide", fb.U64),
    ("single", fb.F32),
    ("name", TEXT),
    ("maybe", TEXT, None),
    ("raw", Blob(32)),
    ("numbers", Vec(fb.I32)),
    ("flags", Vec(fb.BOOL)),
    ("leaves", Vec(LEAF)),
    ("names", Vec(TEXT)),
    ("choice", Union("Choice", (None, LEAF, OTHER))),
    ("child", LEAF),
)
leaf = st.builds(
    Leaf, st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=True)
)
other = st.builds(Other, st.none() | st.text())
trees = st.builds(
    Tree,
    flag=st.booleans(),
    small=st.integers(-128, 127),
    wide=st.integers(0, 2**64 - 1),
    single=st.floats(width=32, allow_nan=False),
    name=st.text(),
    maybe=st.none() | st.text(),
    raw=st.binary(max_size=100).map(memoryview),
    numbers=st.lists(st.integers(-(2**31), 2**31 - 1)).map(tuple),
    flags=st.lists(st.booleans()).map(tuple),
    leaves=st.lists(leaf, max_size=5).map(tuple),
    names=st.lists(st.text(), max_size=5).map(tuple),
    choice=st.none() | leaf | other | st.builds(UnknownMember, st.integers(3, 255)),
    child=st.none() | leaf,
)
EXAMPLE = Tree(
    flag=True,
    small=5,
    wide=2**63,
    single=0.5,
    name="name",
    maybe="",
    raw=memoryview(b"0123456789"),
    numbers=(1, -2, 3),
    flags=(True, False),
    leaves=(Leaf(1, 0.5), Leaf(-7, 0.0), Leaf(1, 0.5)),
    names=("a", "b", "a"),
    choice=Other("x"),
    child=Leaf(3, -0.0),
)


def read(data: bytes, base: int = 0) -> Tree:
    return Reader(memoryview(data)).root(TREE, base)


@given(trees)
@settings(max_examples=150, deadline=None)
def test_reader_of_written_tree_gives_equal_tree(tree: Tree) -> None:
    assert read(write_root(TREE, tree, b"TEST")) == tree


@pytest.mark.parametrize("prefixed", [False, True])
def test_writer_puts_identifier_and_size_where_readers_look(prefixed: bool) -> None:
    data = write_root(TREE, EXAMPLE, b"TEST", prefixed=prefixed)
    base = 4 if prefixed else 0
    assert data[base + 4 : base + 8] == b"TEST"
    assert not prefixed or struct.unpack_from("<I", data)[0] == len(data) - 4
    assert read(data, base) == EXAMPLE


def test_writer_aligns_blobs_as_asked() -> None:
    data = write_root(TREE, EXAMPLE)
    assert data.index(b"0123456789") % 32 == 0
    assert len(data) % 32 == 0


def test_writer_keeps_negative_zero_where_zero_is_the_default() -> None:
    tree = read(write_root(TREE, EXAMPLE))
    assert tree.child is not None
    assert str(tree.child.real) == "-0.0"


def test_reader_of_empty_vtable_gives_defaults() -> None:
    data = struct.pack("<IHHi", 8, 4, 4, 4)
    made = read(data)
    assert (made.small, made.numbers, made.choice, made.maybe) == (-1, (), None, None)


def test_reader_of_newer_table_says_that_fields_are_not_shown() -> None:
    reader = Reader(memoryview(write_root(TREE, EXAMPLE)))
    old = spec("Tree", dict, ("flag", fb.BOOL))
    assert reader.root(old) == {"flag": True}
    assert "newer schema" in reader.issues[0].message


def test_reader_of_unknown_union_member_gives_its_tag_and_an_issue() -> None:
    reader = Reader(memoryview(write_root(OTHER_UNION, Holder(UnknownMember(9)))))
    assert reader.root(OTHER_UNION) == Holder(UnknownMember(9))
    assert "member 9" in reader.issues[0].message


@dataclass(frozen=True)
class Holder:
    choice: object


OTHER_UNION = spec("Holder", Holder, ("choice", Union("Choice", (None, LEAF, OTHER))))


def test_reader_of_union_tag_without_value_is_refused() -> None:
    # vtable: tag at 4, value absent; the table holds the tag 1
    data = struct.pack("<IHHHHiB3x", 12, 8, 8, 4, 0, 8, 1)
    with pytest.raises(FormatError, match="a Choice value for tag 1"):
        Reader(memoryview(data)).root(OTHER_UNION)


def test_reader_of_text_that_is_not_utf8_shows_it_escaped() -> None:
    data = bytearray(write_root(TREE, EXAMPLE))
    at = data.index(b"name\0")
    data[at] = 0xFF
    reader = Reader(memoryview(bytes(data)))
    assert reader.root(TREE).name == "\\xffame"
    assert "not UTF-8" in reader.issues[0].message


@pytest.mark.parametrize(
    ("word", "value", "sentence"),
    [
        (0, 0, "an offset of 0"),
        (0, 0xFFFFFFFF, "inside a region"),
        (0, 1 << 20, "inside a region"),
    ],
)
def test_reader_of_bad_root_offset_names_what_it_found(
    word: int, value: int, sentence: str
) -> None:
    data = bytearray(write_root(TREE, EXAMPLE))
    struct.pack_into("<I", data, 4 * word, value)
    with pytest.raises(FormatError, match=sentence):
        read(bytes(data))


def test_reader_of_damaged_tree_names_the_path_of_the_field() -> None:
    data = bytearray(write_root(TREE, EXAMPLE))
    at = bytes(data).index(b"name\0") - 4
    struct.pack_into("<I", data, at, 0x7FFFFFFF)
    with pytest.raises(FormatError) as caught:
        read(bytes(data))
    assert caught.value.field == "Tree.name"
    assert caught.value.offset == at + 4


@dataclass(frozen=True)
class Nest:
    inner: object


NEST = spec("Nest", Nest, ("inner", Vec(LEAF)))
# A table that holds a vector of its own kind, which only a hostile file nests without end.
object.__setattr__(NEST.fields[0], "type", Vec(NEST))


def nested(depth: int, fan: int = 1) -> bytes:
    """Tables in a chain, each entered `fan` times by the one before it."""
    body = bytearray(struct.pack("<I4xHHH2x", 16, 6, 8, 4))  # root at 16, vtable at 8
    for level in range(depth):
        at = 16 + level * (12 + 4 * fan)
        body += struct.pack("<iI", at - 8, 4)  # the vector follows its field
        body += struct.pack("<I", 0 if level == depth - 1 else fan)
        first = at + 12
        body += b"".join(struct.pack("<I", at + 12 + 4 * fan - (first + 4 * i)) for i in range(fan))
    return bytes(body)


WIDE = Leaf(9, 0.0)  # one field of eight bytes behind the pointer to the vtable
NARROW = Other("four bytes there")


@pytest.mark.parametrize("leaves", [(WIDE,), (WIDE, WIDE, Leaf(1, 2.0))])
@pytest.mark.parametrize("choice", [NARROW, WIDE, None])
def test_tables_that_share_a_vtable_of_another_size_are_read_and_noted(
    leaves: tuple[Leaf, ...], choice: Leaf | Other | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = replace(EXAMPLE, leaves=leaves, choice=choice)
    plain = write_root(TREE, tree)
    share_vtables(monkeypatch)
    data = write_root(TREE, tree)
    reader = Reader(memoryview(data))
    assert reader.root(TREE) == tree
    assert len(data) <= len(plain)
    assert all("shares vtables" in issue.message for issue in reader.issues)
    for one in (data, plain):
        found = list(extents(Reader(memoryview(one)), TREE))
        assert all(a.offset + a.nbytes <= b.offset for a, b in pairwise(found))
        assert found[-1].offset + found[-1].nbytes <= len(one)


def test_paths_of_extents_end_where_they_are_asked_to() -> None:
    data = memoryview(write_root(TREE, EXAMPLE))
    whole = list(extents(Reader(data), TREE))
    assert len({one.path for one in whole if one.kind != "vtable"}) > 5
    for level in (r"Tree", r"Tree\.\w+", r"Tree(?:\.\w+(?:\[\d+\])?)?"):
        cut = extent_columns(Reader(data), TREE, levels=re.compile(level))
        assert cut.offset.tolist() == [one.offset for one in whole]
        for one, path in zip(whole, cut.path, strict=True):
            found = re.match(level, one.path)
            assert cut.paths[path] == (found.group() if found else one.path)


def test_small_table_before_a_large_one_shares_its_vtable(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = spec("Pair", Pair, ("first", Union("Choice", (None, LEAF, OTHER))), ("second", LEAF))
    share_vtables(monkeypatch)
    data = write_root(pair, Pair(NARROW, WIDE))
    reader = Reader(memoryview(data))
    assert reader.root(pair) == Pair(NARROW, WIDE)
    assert [issue.message.split(":")[0] for issue in reader.issues] == [
        "Leaf has tables whose fields end after the 8 bytes of their vtable"
    ]


@pytest.mark.parametrize("offset", [1, 3, 5, 40, 65535])
def test_field_outside_the_file_or_before_its_table_is_refused(offset: int) -> None:
    head = struct.pack("<IHHHHi", 12, 6, 12, offset, 0, 8)  # root, vtable of one slot, table
    with pytest.raises(
        FormatError, match=r"Leaf\.number: expected a field in a region of 24 bytes"
    ):
        Reader(memoryview(head + bytes(8))).root(LEAF)
    inside = struct.pack("<IHHHHiq", 12, 6, 8, 4, 0, 8, 77)
    assert Reader(memoryview(inside)).root(LEAF) == Leaf(77, 0.0)


def test_writer_gives_tables_of_two_sizes_two_vtables() -> None:
    pair = spec("Pair", Pair, ("first", Union("Choice", (None, LEAF, OTHER))), ("second", LEAF))
    reader = Reader(memoryview(write_root(pair, Pair(NARROW, WIDE))))
    assert reader.root(pair) == Pair(NARROW, WIDE)
    assert reader.issues == []


def test_reader_of_too_deep_nesting_is_refused() -> None:
    assert Reader(memoryview(nested(20))).root(NEST)
    with pytest.raises(FormatError, match="nested at most"):
        Reader(memoryview(nested(80))).root(NEST)


def test_reader_of_tables_entered_exponentially_often_is_refused_at_once() -> None:
    began = time.process_time()
    with pytest.raises(FormatError, match="more than twice"):
        Reader(memoryview(nested(50, fan=4))).root(NEST)
    assert time.process_time() - began < 1


def test_reader_of_wide_vtable_shared_by_many_tables_is_quick() -> None:
    count = 20_000
    vtable = struct.pack("<HH", 0xFFFE, 4) + bytes(0xFFFE - 4)
    root = 8 + len(vtable) + 2
    body = bytearray(struct.pack("<I4x", root) + vtable + bytes(2))
    body += struct.pack("<iI", len(body) - 8, 0)
    wide = bytes(body)
    assert Reader(memoryview(wide)).root(spec("T", dict)) == {}
    vector = bytearray(struct.pack("<I", count))
    tables = 4 + 4 * count
    vector += b"".join(struct.pack("<I", tables + 4 * i - 4 - 4 * i) for i in range(count))
    start = len(wide)
    vector += b"".join(struct.pack("<i", start + tables + 4 * i - 8) for i in range(count))
    reader = Reader(memoryview(wide + bytes(vector)))
    began = time.process_time()
    leaf_spec = spec("T", dict)
    made = [reader.table(leaf_spec, start + tables + 4 * i) for i in range(count)]
    assert len(made) == count
    assert time.process_time() - began < 2


@pytest.mark.parametrize("seed", range(3))
def test_reader_of_damaged_bytes_only_raises_format_errors(seed: int) -> None:
    outcomes = set()
    for broken in all_kinds(write_root(TREE, EXAMPLE), seed, 200):
        try:
            outcomes.add(type(read(broken)))
        except FormatError as error:
            outcomes.add(type(error))
    assert outcomes == {Tree, FormatError}


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31m", "tab\there", "\ud800", "x" * 100_000])
def test_error_with_a_name_of_a_file_stays_one_short_line(name: str) -> None:
    error = FormatError(name, name, field=name, offset=3)
    text = str(error.inside("outer"))
    assert text.isprintable()
    assert len(text) < 2000
    assert "expected" in text
    assert text.startswith("at byte 0x3 in outer.")
