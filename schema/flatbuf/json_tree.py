"""Converts tables to JSON in the form of flatc, and back, by the field tables of the reader.

A union is preceded by its member's name (``val_type``), bytes are lists of integers, and a value
of an enumeration is written as its name. An absent field has its default.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from schema.errors import FormatError
from schema.flatbuf.spec import Blob, Field, Scalar, Spec, String, Union, UnknownMember, Vec

T = TypeVar("T")
# By table and field, as in ("Tensor", "scalar_type"): names by value.
Enums = Mapping[tuple[str, str], Mapping[int, str]]
_NO_VALUES: Mapping[int, str] = {}


def tree_of(table: Spec[Any], value: Any, enums: Enums) -> dict[str, Any]:  # noqa: ANN401
    """Return a table as a JSON object; absent optional fields are omitted."""
    found: dict[str, Any] = {}
    for field in table.fields:
        item: Any = getattr(value, field.name)
        if item is None:
            continue
        if isinstance(field.type, Union):
            if isinstance(item, UnknownMember):
                found[f"{field.name}_type"] = item.tag
                continue
            member = field.type.members[field.type.tag_of(item)]
            assert member is not None
            found[f"{field.name}_type"] = member.name
            found[field.name] = tree_of(member, item, enums)
        elif isinstance(field.type, Scalar):
            found[field.name] = enums.get((table.name, field.name), _NO_VALUES).get(item, item)
        else:
            found[field.name] = _tree(field.type, item, enums)
    return found


def _tree(kind: Any, item: Any, enums: Enums) -> Any:  # noqa: ANN401 - any field
    if isinstance(kind, Spec):
        return tree_of(cast("Spec[Any]", kind), item, enums)
    if isinstance(kind, Vec):
        if isinstance(kind.element, Spec):
            return [tree_of(kind.element, one, enums) for one in item]
        return list(item)
    return list(bytes(item)) if isinstance(kind, Blob) else item


def value_of(table: Spec[T], tree: object, enums: Enums) -> T:
    """Return the table that a JSON object describes.

    Raises: FormatError naming the field that is invalid or unknown
    """
    if not isinstance(tree, dict):
        raise FormatError("an object", f"{tree!r}"[:60])
    row = cast("dict[str, Any]", tree)
    known = {field.name for field in table.fields}
    known |= {f"{field.name}_type" for field in table.fields if isinstance(field.type, Union)}
    for name in row:
        if name not in known:
            raise FormatError(f"a field of {table.name}", f"{name!r}", field=str(name))
    return table.make(**{field.name: _field(table, field, row, enums) for field in table.fields})


def _field(table: Spec[Any], field: Field, row: Mapping[str, Any], enums: Enums) -> Any:  # noqa: ANN401
    item = row.get(field.name)
    try:
        if isinstance(field.type, Union):
            return _member(field.type, row.get(f"{field.name}_type", "NONE"), item, enums)
        if item is None:
            return field.default
        if isinstance(field.type, Scalar) and isinstance(item, str):
            return _named(enums.get((table.name, field.name), _NO_VALUES), item)
        return _value(field.type, item, enums)
    except FormatError as error:
        raise error.inside(field.name) from None


def _named(names: Mapping[int, str], name: str) -> int:
    for number, known in names.items():
        if known == name:
            return number
    raise FormatError(f"one of {', '.join(names.values())}, or an integer", f"{name!r}")


def _member(kind: Union, name: object, item: object, enums: Enums) -> Any:  # noqa: ANN401
    if name in ("NONE", 0):
        return None
    for tag, member in enumerate(kind.members):
        if member is not None and name in (member.name, tag):
            return value_of(member, item, enums)
    if isinstance(name, int) and 0 <= name <= 255:
        return UnknownMember(name)
    raise FormatError(f"a member of {kind.name}", f"{name!r}"[:60])


def _value(kind: Any, item: Any, enums: Enums) -> Any:  # noqa: ANN401 - any field
    if isinstance(kind, Spec):
        return value_of(cast("Spec[Any]", kind), item, enums)
    if isinstance(kind, Scalar):
        return _number(kind, item)
    if isinstance(kind, String):
        if not isinstance(item, str):
            raise FormatError("a string", f"{item!r}"[:60])
        return item
    if not isinstance(item, list):
        raise FormatError("a list", f"{item!r}"[:60])
    items = cast("list[Any]", item)
    if isinstance(kind, Blob):
        byte = Scalar("u8", "B", 1)
        return memoryview(bytes(_number(byte, one) for one in items))
    built: list[Any] = []
    for index, one in enumerate(items):
        try:
            built.append(_value(cast(Vec, kind).element, one, enums))
        except FormatError as error:
            raise error.inside(f"[{index}]") from None
    return tuple(built)


def _number(kind: Scalar, item: Any) -> Any:  # noqa: ANN401 - any number
    if kind.code == "?" and isinstance(item, (bool, int)):
        return bool(item)
    real = kind.code in "fd"
    if not isinstance(item, (int, float) if real else int):
        raise FormatError(f"a number of type {kind.name}", f"{item!r}"[:60])
    try:
        return struct.unpack(f"<{kind.code}", struct.pack(f"<{kind.code}", item))[0]
    except (struct.error, OverflowError):
        raise FormatError(f"a number of type {kind.name}", f"{item!r}"[:60]) from None
