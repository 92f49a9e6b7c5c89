"""Tables declared by dataclasses: annotations are types, the order gives slots, defaults stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest

from schema.flatbuf import spec as fb
from schema.flatbuf.declare import (
    ALWAYS,
    NOT_STORED,
    UnionName,
    f32,
    i8,
    i32,
    named,
    substituted,
    table_of,
    u16,
)
from schema.flatbuf.reader import Reader
from schema.flatbuf.spec import Blob, String, Union, UnknownMember, Vec, columns, tables
from schema.flatbuf.writer import write_root

EMPTY = memoryview(b"")


@dataclass(frozen=True, slots=True)
class Left:
    x: i32 = 7


@named("TheRight")
@dataclass(frozen=True, slots=True)
class Right:
    children: tuple[Root, ...] = ()


@dataclass(frozen=True, slots=True)
class Root:
    label: Annotated[str, NOT_STORED] = "none"
    size: Annotated[u16, ALWAYS] = 0
    ratio: f32 | None = None
    name: str | None = None
    flags: tuple[bool, ...] = ()
    names: tuple[str, ...] | None = None
    data: Annotated[memoryview, Blob(16)] = EMPTY
    either: Annotated[Left | Right | UnknownMember | None, UnionName("Either")] = None
    left: Left | None = None
    last: i8 = -3


ROOT = table_of(Root)


def test_annotations_are_field_types_in_slot_order() -> None:
    left, right = table_of(Left), table_of(Right)
    found = [(one.name, one.type, one.default, one.slot, one.always) for one in ROOT.fields]
    assert found == [
        ("size", fb.U16, 0, 0, True),
        ("ratio", fb.F32, None, 1, False),
        ("name", String(), None, 2, False),
        ("flags", Vec(fb.BOOL), (), 3, False),
        ("names", Vec(String()), None, 4, False),
        ("data", Blob(16), memoryview(b""), 5, False),
        ("either", Union("Either", (None, left, right)), None, 6, False),
        ("left", left, None, 8, False),
        ("last", fb.I8, -3, 9, False),
    ]
    assert (ROOT.name, right.name, ROOT.slots) == ("Root", "TheRight", 10)
    assert right.field("children").type == Vec(ROOT)
    with pytest.raises(KeyError, match="Left has no field 'y'"):
        left.field("y")


def test_declared_tables_are_read_as_they_were_written() -> None:
    inner = Root(name="inner", names=(), either=Left(1))
    value = Root("none", 3, 0.5, "", (True, False), None, memoryview(b"abc"), Right((inner,)))
    assert Reader(memoryview(write_root(ROOT, value))).root(ROOT) == value
    assert Reader(memoryview(write_root(ROOT, Root()))).root(ROOT) == Root()


def test_a_table_put_in_the_place_of_another_is_used_at_any_depth() -> None:
    @dataclass(frozen=True, slots=True)
    class Wide(Left):
        x: Annotated[int, fb.I64] = 9

    old = substituted(ROOT, {table_of(Left): table_of(Wide, "Left", Left)})
    inside = old.field("either").type.members[2].field("children").type.element
    assert inside is old
    assert old.field("left").type.field("x").type == fb.I64
    data = write_root(old, Root(left=Left(1 << 40)))
    assert Reader(memoryview(data)).root(old).left == Left(1 << 40)
    assert ROOT.field("left").type.field("x").type == fb.I32


def test_an_annotation_that_is_no_field_type_is_refused_by_name() -> None:
    @dataclass(frozen=True)
    class Wrong:
        number: int

    with pytest.raises(TypeError, match=r"field 'number': no field type .*int"):
        _ = table_of(Wrong).fields
    with pytest.raises(TypeError, match="int is not a dataclass"):
        _ = table_of(int).fields


def test_rows_of_text_are_columns() -> None:
    assert columns("axis:i32 pad:[i16] step:i32=1 on:bool=1 scale:f32=2 n:u32? v:[u32]?") == [
        ("axis", fb.I32), ("pad", Vec(fb.I16)), ("step", fb.I32, 1), ("on", fb.BOOL, True),
        ("scale", fb.F32, 2.0), ("n", fb.U32, None), ("v", Vec(fb.U32), ()),
    ]  # fmt: skip
    found = tables({"Inner": "x:i32=4", "Outer": "one:Inner many:[Inner] raw:bytes text:str"})
    outer = found["Outer"]
    assert [one.default for one in outer.fields] == [None, (), memoryview(b""), ""]
    assert outer.field("many").type.element is found["Inner"]
    with pytest.raises(KeyError):
        tables({"Outer": "one:Missing"})
