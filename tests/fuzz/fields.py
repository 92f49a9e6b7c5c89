"""Damage that knows what it hits: one field of one table, a table layout, a header, a payload."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from schema import bundled, etdump, flat_tensor, program
from schema.errors import FormatError
from schema.flatbuf.reader import Reader
from schema.flatbuf.spec import Scalar, Spec, Union, Vec
from schema.program import ProgramFile
from schema.program.model import PROGRAM
from tests.fuzz.mutate import damage_offset, flip_bits, overwrite_word, repeat_slice, zero_run

_IN_PLACE = (damage_offset, flip_bits, overwrite_word, repeat_slice, zero_run)
_WIDE = (0, 1, -1, 2, 64, 1 << 20)
_DEPTH = 40
Root = tuple[Reader, "Spec[Any]", int]


@dataclass(frozen=True, slots=True)
class Word:
    """A number in a file.

    Attributes:
        at: its first byte
        nbytes: 1, 2, 4 or 8
        kind: number, offset, count, table (its distance to its layout) or layout
    """

    at: int
    nbytes: int
    kind: str


def damage_fields(data: bytearray, rng: random.Random) -> None:
    """Change one to four fields that are found by following the tables of the file."""
    base = _bundled_program(data) if rng.random() < 0.5 else 0
    view = memoryview(bytes(data))[base:]
    for _ in range(rng.randint(1, 4)):
        with suppress(FormatError):
            word = _pick(_root(view), rng)
            change_word(data, Word(base + word.at, word.nbytes, word.kind), rng)


def damage_header(data: bytearray, rng: random.Random) -> None:
    """Change sizes and positions of the header behind the identifier."""
    for _ in range(rng.randint(1, 2)):
        at = 8 + 4 * rng.randrange(10)
        if at + 8 <= len(data):
            change_word(data, Word(at, rng.choice((4, 8)), "count"), rng)


def damage_payload(data: bytearray, rng: random.Random) -> None:
    """Damage the bytes of a delegate, and nothing around them."""
    places = list(_payloads(data))
    if not places:
        return damage_fields(data, rng)
    start, end = rng.choice(places)
    inside = data[start:end]
    for change in rng.sample(_IN_PLACE, rng.randint(1, 2)):
        change(inside, rng)
    data[start:end] = inside[: end - start].ljust(end - start, b"\0")
    return None


CHANGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    damage_fields,
    damage_fields,
    damage_header,
    damage_payload,
)


def change_word(data: bytearray, word: Word, rng: random.Random) -> None:
    """Write another number of the same width, near the old one or far from it."""
    if word.at < 0 or word.at + word.nbytes > len(data):
        return
    mask = (1 << 8 * word.nbytes) - 1
    old = int.from_bytes(data[word.at : word.at + word.nbytes], "little")
    half = (mask + 1) // 2
    near = (old + 1, old - 1, old * 2, old ^ (1 << rng.randrange(8 * word.nbytes)))
    far = (*_WIDE, half, half - 1, mask - 3, len(data), rng.randrange(len(data)))
    new = rng.choice(near if rng.random() < 0.4 else far) & mask
    data[word.at : word.at + word.nbytes] = new.to_bytes(word.nbytes, "little")


def _root(view: memoryview) -> Root:
    """Return a reader, the specification of the root and where its offset is."""
    head = bytes(view[:64])
    for form in (flat_tensor, bundled, etdump):
        if form.sniff(head):
            return form.root_table(view)
    return Reader(view), PROGRAM, 0


def _pick(root: Root, rng: random.Random) -> Word:
    """Return a field found by walking from the root, at each table one way at random."""
    reader, spec, base = root
    at, found = reader.follow(base), Word(base, 4, "offset")
    kind: Any = spec
    for _ in range(_DEPTH):
        if isinstance(kind, Spec):
            step = _in_table(reader, cast("Spec[Any]", kind), at, rng)
        elif isinstance(kind, Vec):
            step = _in_vector(reader, kind, at, rng)
        else:
            return Word(at, 4, "count")  # a text or a blob
        found, kind = step
        if isinstance(kind, Scalar) or found.kind != "offset" or rng.random() < 0.1:
            return found
        at = reader.follow(found.at)
    return found


def _in_table(reader: Reader, spec: Spec[Any], at: int, rng: random.Random) -> tuple[Word, Any]:
    entries, _ = reader.slots(at)
    fields = [item for item in spec.fields if item.slot < len(entries) and entries[item.slot]]
    if not fields or rng.random() < 0.08:
        layout = at - struct.unpack_from("<i", reader.buffer, at)[0]
        entry = Word(layout + 2 * rng.randrange(len(entries) + 2), 2, "layout")
        return rng.choice((Word(at, 4, "table"), entry)), None
    chosen = rng.choice(fields)
    where = at + entries[chosen.slot]
    kind = chosen.type
    if isinstance(kind, Union):
        tag = reader.buffer[where]
        member = kind.members[tag] if tag < len(kind.members) else None
        behind = entries[chosen.slot + 1] if chosen.slot + 1 < len(entries) else 0
        if member is None or not behind or rng.random() < 0.15:
            return Word(where, 1, "number"), None
        return Word(at + behind, 4, "offset"), member
    if isinstance(kind, Scalar):
        return Word(where, kind.nbytes, "number"), kind
    return Word(where, 4, "offset"), kind


def _in_vector(reader: Reader, kind: Vec, at: int, rng: random.Random) -> tuple[Word, Any]:
    count, element = reader.u32(at), kind.element
    if not count or rng.random() < 0.1:
        return Word(at, 4, "count"), None
    width = element.nbytes if isinstance(element, Scalar) else 4
    where = at + 4 + width * rng.randrange(count)
    reader.check(where, width)
    return Word(where, width, "number" if isinstance(element, Scalar) else "offset"), element


def _bundled_program(data: bytearray) -> int:
    """Return where the program inside a bundled program begins, 0 in any other file."""
    if not bundled.sniff(bytes(data[:64])):
        return 0
    with suppress(FormatError):
        return bundled.decode(memoryview(bytes(data))).program_offset
    return 0


def _payloads(data: bytearray) -> Iterator[tuple[int, int]]:
    """Yield start and end of every payload that is stored in a program."""
    if not program.sniff(bytes(data[:64])):
        return
    view = memoryview(bytes(data))
    with suppress(FormatError):
        found: ProgramFile = program.decode(view)
        for plan in found.plans:
            for delegate in plan.delegates:
                payload = bytes(found.delegate_data(delegate))
                start = bytes(view).find(payload) if payload else -1
                if start >= 0:
                    yield start, start + len(payload)
