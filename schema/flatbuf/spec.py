"""Field tables: what a flatbuffer table holds, slot by slot, and the dataclass it becomes.

One specification drives reading, writing, walking (structure view, size accounting) and
field-aware fuzzing, so that a format is described once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number stored inline.

    Attributes:
        name: as written in .fbs files, for example ``i32``
        code: struct format character
        nbytes: size, equal to the alignment
    """

    name: str
    code: str
    nbytes: int


BOOL = Scalar("bool", "?", 1)
I8, U8 = Scalar("i8", "b", 1), Scalar("u8", "B", 1)
I16, U16 = Scalar("i16", "h", 2), Scalar("u16", "H", 2)
I32, U32 = Scalar("i32", "i", 4), Scalar("u32", "I", 4)
I64, U64 = Scalar("i64", "q", 8), Scalar("u64", "Q", 8)
F32, F64 = Scalar("f32", "f", 4), Scalar("f64", "d", 8)


@dataclass(frozen=True, slots=True)
class Text:
    """A UTF-8 string."""

    name: str = "str"


@dataclass(frozen=True, slots=True)
class Blob:
    """A vector of bytes, kept as a memoryview; align is forced when it is written."""

    align: int = 1
    name: str = "[u8]"


@dataclass(frozen=True, slots=True)
class Vec:
    """A vector of numbers, strings or tables."""

    element: Scalar | Text | Spec[Any]

    @property
    def name(self) -> str:
        """Return the type as written in .fbs files."""
        return f"[{self.element.name}]"


@dataclass(frozen=True, slots=True)
class Union:
    """A tagged table: two slots, the tag and the offset. Member 0 is NONE.

    A tagger finds the tag of a value where several members share one dataclass.
    """

    name: str
    members: tuple[Spec[Any] | None, ...]
    tagger: Callable[[Any], int] | None = None

    def tag_of(self, value: object) -> int:
        """Return the tag of a member value, by its class unless a tagger was given.

        Raises: TypeError if no member is made of this class
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


FieldType = Any  # Scalar | Text | Blob | Vec | Union | Spec; a recursive alias defeats pyright


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a table.

    Attributes:
        name: as in the .fbs file; also the dataclass attribute
        type: Scalar, Text, Blob, Vec, Union or Spec
        default: value when the field is absent; None marks an optional field
        slot: vtable index
        keep: False for a slot that is occupied but not represented in the dataclass
    """

    name: str
    type: FieldType
    default: Any
    slot: int
    keep: bool = True


@dataclass(frozen=True, slots=True)
class _Skip:
    """A slot that is occupied but not represented."""


SKIP = _Skip()


def _natural_default(kind: FieldType) -> Any:  # noqa: ANN401 - any field value
    if isinstance(kind, Scalar):
        return {"?": False, "f": 0.0, "d": 0.0}.get(kind.code, 0)
    if isinstance(kind, Text):
        return ""
    if isinstance(kind, Vec):
        return ()
    if isinstance(kind, Blob):
        return memoryview(b"")
    return None


@dataclass(frozen=True, eq=False, slots=True)
class Spec(Generic[T]):
    """A table: its name, the dataclass made of it, and its fields in slot order.

    Equality is identity, so a spec can key caches.
    """

    name: str
    make: Callable[..., T]
    fields: tuple[Field, ...] = field(repr=False)
    slots: int
    always: frozenset[str] = field(default=frozenset())


def spec(
    name: str,
    make: Callable[..., T],
    *columns: Sequence[Any],
    always: Sequence[str] = (),
) -> Spec[T]:
    """Declare a table.

    Args:
        name: table name of the .fbs file
        make: dataclass called with one keyword a kept field
        columns: ``(name, type)`` or ``(name, type, default)`` in slot order; a Union takes two
            slots; a type of SKIP occupies one slot and is not represented
        always: scalar fields written even when they equal the default
    """
    fields: list[Field] = []
    slot = 0
    for column in columns:
        kind = column[1]
        if kind is not SKIP:
            default = column[2] if len(column) > 2 else _natural_default(kind)
            fields.append(Field(column[0], kind, default, slot))
        slot += 2 if isinstance(kind, Union) else 1
    return Spec(name, make, tuple(fields), slot, frozenset(always))
