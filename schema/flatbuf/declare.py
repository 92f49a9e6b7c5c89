"""Flatbuffer tables declared once, as frozen dataclasses whose annotations are field types.

A table of a .fbs file is written as

    @dataclass(frozen=True, slots=True)
    class Tensor:
        datatype: i8
        dims: tuple[u32, ...]
        storage_type: u8 = 255
        quant: PerTensor | PerChannel | UnknownMember | None = None

and ``table_of(Tensor)`` is the `Spec` that reader, writer, walker and fuzz tests use. The fields
get slots in order; an absent field has the default of the dataclass, or 0, "" or () without one.

- a table, ``str`` and ``bool`` represent themselves, ``memoryview`` a vector of bytes,
  ``tuple[X, ...]`` for any other vector, ``i32`` and the like for scalars;
- ``X | None`` is X without a default;
- several tables, or one with `UnknownMember`, are a union: tags in their order, from 1;
- a last annotation, as in ``Annotated[memoryview, Blob(16)]``, names a field type outright.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Annotated, Any, TypeAlias, TypeVar, cast

from schema.flatbuf import spec as fb
from schema.flatbuf.spec import Blob, FieldType, Layout, Scalar, Spec, String, Union, Vec, laid_out

T = TypeVar("T")

i8: TypeAlias = Annotated[int, fb.I8]
u8: TypeAlias = Annotated[int, fb.U8]
i16: TypeAlias = Annotated[int, fb.I16]
u16: TypeAlias = Annotated[int, fb.U16]
i32: TypeAlias = Annotated[int, fb.I32]
u32: TypeAlias = Annotated[int, fb.U32]
i64: TypeAlias = Annotated[int, fb.I64]
u64: TypeAlias = Annotated[int, fb.U64]
f32: TypeAlias = Annotated[float, fb.F32]
f64: TypeAlias = Annotated[float, fb.F64]

_FIELD_TYPES = (Scalar, String, Blob, Vec, Union, Spec)
_BUILTIN: Mapping[object, FieldType] = {bool: fb.BOOL, str: String(), memoryview: Blob()}


@dataclass(frozen=True, slots=True)
class UnionName:
    """Annotation that sets the name of a union in the .fbs file."""

    name: str


class _Mark:
    """An annotation without a value."""


ALWAYS = _Mark()  # a scalar that is written even when it equals the default
NOT_STORED = _Mark()  # an attribute of the dataclass that is no field of the table

_names: dict[type[Any], str] = {}


def named(name: str) -> Callable[[type[T]], type[T]]:
    """Return a class decorator that sets the table's name in the .fbs file."""

    def decorate(table: type[T]) -> type[T]:
        _names[table] = name
        return table

    return decorate


@cache
def table_of(
    table: type[T], name: str | None = None, make: Callable[..., T] | None = None
) -> Spec[T]:
    """Return the table that a dataclass declares.

    Args:
        table: the dataclass
        name: name in the .fbs file if several tables share the dataclass
        make: called with one keyword per field instead of the dataclass
    """
    return Spec(name or _names.get(table, table.__name__), make or table, lambda: _layout(table))


def _layout(table: type[Any]) -> Layout:
    if not is_dataclass(table):
        raise TypeError(f"{table.__name__} is not a dataclass")
    hints = typing.get_type_hints(table, _names_of(table), include_extras=True)
    return laid_out(_rows(fields(table), hints))


def _names_of(table: type[Any]) -> dict[str, Any] | None:
    """Return the globals of the module of a dataclass where sys.modules no longer has it."""
    if table.__module__ in sys.modules:
        return None
    init: Any = table.__init__
    return init.__globals__


def _rows(
    attributes: tuple[Field[Any], ...], hints: Mapping[str, Any]
) -> Iterator[tuple[str, FieldType, Any, bool]]:
    for attribute in attributes:
        hint = hints[attribute.name]
        marks: tuple[object, ...] = getattr(hint, "__metadata__", ())
        if NOT_STORED in marks:
            continue
        kind, optional = _field_type(hint, attribute.name)
        default = attribute.default
        if default is MISSING:
            default = None if optional else fb.natural_default(kind)
        yield attribute.name, kind, default, ALWAYS in marks


def _field_type(hint: Any, name: str) -> tuple[FieldType, bool]:  # noqa: ANN401 - any annotation
    """Return the type of a field, and whether it may be None."""
    marks: tuple[object, ...] = getattr(hint, "__metadata__", ())
    for mark in reversed(marks):
        if isinstance(mark, _FIELD_TYPES):
            return cast(FieldType, mark), False
    if marks:
        name = next((mark.name for mark in marks if isinstance(mark, UnionName)), name)
        hint = hint.__origin__
    if hint in _BUILTIN:
        return _BUILTIN[hint], False
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple and inner[1:] == (...,):
        return Vec(_field_type(inner[0], name)[0]), False
    if origin in (typing.Union, types.UnionType):
        return _choice(inner, name), True
    if is_dataclass(hint):
        return table_of(cast("type[Any]", hint)), True
    raise TypeError(f"field {name!r}: no field type for the annotation {hint!r}")


def _choice(members: tuple[Any, ...], name: str) -> FieldType:
    some = [member for member in members if member not in (types.NoneType, fb.UnknownMember)]
    if len(some) == 1 and fb.UnknownMember not in members:
        return _field_type(some[0], name)[0]
    return Union(name, (None, *(table_of(member) for member in some)))


def substituted(table: Spec[T], changes: Mapping[Any, Any]) -> Spec[T]:
    """Return a table in which nested tables or unions are replaced, as in another release.

    Args:
        table: the root
        changes: replacement by table or union
    """
    done: dict[Any, Any] = dict(changes)

    def other(kind: FieldType) -> FieldType:
        if kind in done:
            return done[kind]
        if isinstance(kind, Vec):
            return Vec(other(kind.element))
        if isinstance(kind, Union):
            return replace(kind, members=tuple(map(other, kind.members)))
        if isinstance(kind, Spec):
            old = cast("Spec[Any]", kind)
            done[kind] = Spec(old.name, old.make, lambda: _changed(old, other))
            return done[kind]
        return kind

    return other(table)


def _changed(table: Spec[Any], other: Callable[[FieldType], FieldType]) -> Layout:
    return tuple(replace(field, type=other(field.type)) for field in table.fields), table.slots
