"""Tables of flatbuffers: field types, and the fields of a table by slot.

One `Spec` drives reading, writing, walking (structure view, size accounting) and field-aware
fuzzing. `schema.flatbuf.declare` derives it from the dataclass that a table is read into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar stored inline.

    Attributes:
        name: as written in .fbs files, for example ``i32``
        code: struct format character
        nbytes: size, equal to the alignment
    """

    name: str
    code: str
    nbytes: int

    @property
    def dtype(self) -> str:
        """Return the numpy dtype of stored values; a bool is the byte that is stored."""
        kind = "f" if self.code in "fd" else "i" if self.code.islower() else "u"
        return f"<{kind}{self.nbytes}"


BOOL = Scalar("bool", "?", 1)
I8, U8 = Scalar("i8", "b", 1), Scalar("u8", "B", 1)
I16, U16 = Scalar("i16", "h", 2), Scalar("u16", "H", 2)
I32, U32 = Scalar("i32", "i", 4), Scalar("u32", "I", 4)
I64, U64 = Scalar("i64", "q", 8), Scalar("u64", "Q", 8)
F32, F64 = Scalar("f32", "f", 4), Scalar("f64", "d", 8)


@dataclass(frozen=True, slots=True)
class String:
    """A UTF-8 string."""

    name: str = "str"


@dataclass(frozen=True, slots=True)
class Blob:
    """A vector of bytes, read as a memoryview; align is applied on writing."""

    align: int = 1
    name: str = "[u8]"


@dataclass(frozen=True, slots=True)
class Vec:
    """A vector of scalars, strings or tables."""

    element: Scalar | String | Spec[Any]

    @property
    def name(self) -> str:
        """Return the type as written in .fbs files."""
        return f"[{self.element.name}]"


@dataclass(frozen=True, slots=True)
class Union:
    """A tagged table: two slots, the tag and the offset. Member 0 is NONE.

    A tagger returns the tag of a value if several members share one dataclass.
    """

    name: str
    members: tuple[Spec[Any] | None, ...]
    tagger: Callable[[Any], int] | None = None

    def tag_of(self, value: object) -> int:
        """Return the tag of a member value, by its class unless a tagger was given.

        Raises: TypeError if no member has this class
        """
        if self.tagger is not None:
            return self.tagger(value)
        for tag, member in enumerate(self.members):
            if member is not None and member.make is type(value):
                return tag
        raise TypeError(f"{type(value).__name__} is not a member of {self.name}")


@dataclass(frozen=True, slots=True)
class UnknownMember:
    """A union member of a newer schema than ours: only its tag is known."""

    tag: int


FieldType = Any  # Scalar | String | Blob | Vec | Union | Spec; a recursive alias defeats pyright


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a table.

    Attributes:
        name: as in the .fbs file; also the dataclass attribute
        type: Scalar, String, Blob, Vec, Union or Spec
        default: value if the field is absent; None marks an optional field
        slot: vtable index
        always: whether a scalar is written even if it equals the default
    """

    name: str
    type: FieldType
    default: Any
    slot: int
    always: bool = False


Layout = tuple[tuple[Field, ...], int]  # the fields and the number of slots


class Spec(Generic[T]):
    """A table: its name, its constructor, and the fields in slot order.

    Equality is identity, so a spec can key caches. The fields are resolved on first
    access, so that tables may refer to tables declared later.
    """

    def __init__(self, name: str, make: Callable[..., T], layout: Callable[[], Layout]) -> None:
        self.name = name
        self.make = make
        self._layout = layout

    @cached_property
    def _resolved(self) -> Layout:
        return self._layout()

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """Return the fields that are represented, in slot order."""
        return self._resolved[0]

    @cached_property
    def slots(self) -> int:
        """Return the number of slots, including those without a field."""
        return self._resolved[1]

    def field(self, name: str) -> Field:
        """Return the field of a name.

        Raises: KeyError if the table has no such field
        """
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(f"{self.name} has no field {name!r}")


@dataclass(frozen=True, slots=True)
class _Skip:
    """A slot that is occupied but not represented."""


SKIP = _Skip()


def natural_default(kind: FieldType) -> Any:  # noqa: ANN401 - any field value
    """Return the value of an absent field whose table declares no default."""
    if isinstance(kind, Scalar):
        return {"?": False, "f": 0.0, "d": 0.0}.get(kind.code, 0)
    if isinstance(kind, String):
        return ""
    if isinstance(kind, Vec):
        return ()
    if isinstance(kind, Blob):
        return memoryview(b"")
    return None


def laid_out(fields: Iterable[tuple[str, FieldType, Any, bool]]) -> Layout:
    """Return fields with their slots, given name, type, default and `Field.always` in order.

    A Union occupies two slots; a type of SKIP occupies one and is skipped.
    """
    found: list[Field] = []
    slot = 0
    for name, kind, default, always in fields:
        if kind is not SKIP:
            found.append(Field(name, kind, default, slot, always))
        slot += 2 if isinstance(kind, Union) else 1
    return tuple(found), slot


def spec(name: str, make: Callable[..., T], *columns: Sequence[Any]) -> Spec[T]:
    """Declare a table without a dataclass; see `schema.flatbuf.declare` for the others.

    Args:
        name: table name of the .fbs file
        make: called with one keyword per field
        columns: ``(name, type)`` or ``(name, type, default)`` in slot order; a type of SKIP
            occupies one slot and is not represented
    """
    rows = [
        (row[0], row[1], row[2] if len(row) > 2 else natural_default(row[1]), False)
        for row in columns
    ]
    return Spec(name, make, lambda: laid_out(rows))


NAMED_TYPES: Mapping[str, FieldType] = MappingProxyType(
    {item.name: item for item in (BOOL, I8, U8, I16, U16, I32, U32, I64, U64, F32, F64)}
    | {"str": String(), "bytes": Blob(), "bytes8": Blob(8)}
)


def columns(row: str, types: Mapping[str, FieldType] = NAMED_TYPES) -> list[tuple[Any, ...]]:
    """Return the columns for `spec` from one line, as in ``axis:i32 pad:[i32] step:i32=1 n:u32?``.

    A question mark makes a field optional: None, or () for a vector, if it is absent.

    Args:
        row: fields as ``name:type``, separated by blanks
        types: field types by the names used in the row
    """
    return [_column(item, types) for item in row.split()]


def _column(item: str, types: Mapping[str, FieldType]) -> tuple[Any, ...]:
    name, _, written = item.partition(":")
    written, _, default = written.partition("=")
    plain = written.removesuffix("?")
    kind = Vec(types[plain[1:-1]]) if plain.startswith("[") else types[plain]
    if plain != written:
        return (name, kind, () if isinstance(kind, Vec) else None)
    return (name, kind, type(natural_default(kind))(int(default))) if default else (name, kind)


def tables(rows: Mapping[str, str]) -> Mapping[str, Spec[dict[str, Any]]]:
    """Return tables that are read as dicts, by name.

    Args:
        rows: the fields of each table in the notation of `columns`; tables above can be used by
            name
    """
    types = dict(NAMED_TYPES)
    found: dict[str, Spec[dict[str, Any]]] = {}
    for name, row in rows.items():
        types[name] = found[name] = spec(name, dict[str, Any], *columns(row, types))
    return MappingProxyType(found)
