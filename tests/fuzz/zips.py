"""Damage of records: members renamed, doubled, blown up or changed inside, and their directory."""

from __future__ import annotations

import functools
import io
import json
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

from tests.fuzz.mutate import damage_offset, flip_bits, insert_bytes, truncate, zero_run

Members = list[tuple[str, bytes]]
_NAMES = (
    "", "/", "../../etc/passwd", "/etc/passwd", "a\\b", "C:/x", "x" * 60_000, "\u202e.json",
    "a\nb", "edge_dialect_exported_program", "exported_program.json", "debug_handle_map",
    "delegate_map", "etrecord_version", "ETRECORD_V0", "graph_state_dict", "forward",
)  # fmt: skip
_JUNK = (None, 1, -1, 2**70, 1.5, 1e999, "x", "", [], {}, [1], {"as_int": 1}, True, "\ud800")
_LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
# (offset, bytes) of the numbers of a local header, a directory entry and the end record
_NUMBERS = {
    _LOCAL: ((4, 2), (6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2)),
    _CENTRAL: ((8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (30, 2), (32, 2), (42, 4)),
    _END: ((4, 2), (6, 2), (8, 2), (10, 2), (12, 4), (16, 4), (20, 2)),
}
_WILD = (0, 1, 4, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF)
BOMB_BYTES = (6 << 20, 40 << 20, 64 << 20)  # the last is more than a record may unpack to


def unpacked(data: bytes) -> Members:
    """Return the members of an archive, nothing of one that is damaged already."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return [(info.filename, archive.read(info)) for info in archive.infolist()]
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        OSError,
        ValueError,
        EOFError,
        RuntimeError,
    ):
        return []


def packed(members: Members, *, deflated: bool = False) -> bytes:
    """Return an archive whose checksums and directory are right, names may occur twice."""
    out, directory = bytearray(), bytearray()
    for name, content in members:
        raw = name.encode("utf-8", "surrogatepass")[:0xFFFF]
        body = _deflate(content) if deflated else content
        facts = (8 if deflated else 0, 0, 33, zlib.crc32(content), len(body), len(content))
        directory += struct.pack(
            "<4s6H3I5H2I", _CENTRAL, 20, 20, 0x800, *facts, len(raw), 0, 0, 0, 0, 0, len(out)
        )
        directory += raw
        out += struct.pack("<4s5H3I2H", _LOCAL, 20, 0x800, *facts, len(raw), 0) + raw + body
    end = struct.pack(
        "<4s4H2IH", _END, 0, 0, len(members), len(members), len(directory), len(out), 0
    )
    return bytes(out + directory + end)


def _deflate(content: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


def rename_members(members: Members, rng: random.Random) -> bytes:
    """Give members other names: those of other members, paths, nothing."""
    for _ in range(rng.randint(1, 3)):
        index = rng.randrange(len(members))
        name = rng.choice((*_NAMES, rng.choice(members)[0]))
        members[index] = (name, members[index][1])
    return packed(members)


def double_members(members: Members, rng: random.Random) -> bytes:
    """Store members twice, the same or with the content of another, or leave some out."""
    for _ in range(rng.randint(1, 3)):
        name, content = rng.choice(members)
        members.insert(rng.randrange(len(members) + 1), (name, content))
        if rng.random() < 0.5:
            members.append((name, rng.choice(members)[1]))
        if rng.random() < 0.3 and len(members) > 1:
            del members[rng.randrange(len(members))]
    return packed(members, deflated=rng.random() < 0.5)


@functools.lru_cache(maxsize=16)
def _packed_bomb(unit: bytes, nbytes: int) -> bytes:
    return packed([("x", unit * (nbytes // len(unit)))], deflated=True)


def blow_up(members: Members, rng: random.Random) -> bytes:
    """Replace a member by one that unpacks to megabytes, or by deeply nested text."""
    index = rng.randrange(len(members))
    name = members[index][0]
    if rng.random() < 0.3:
        depth = rng.choice((500, 5_000, 1_000_000))
        members[index] = (name, rng.choice((b"[", b'{"a":')) * depth)
        return packed(members, deflated=True)
    unit = rng.choice((b"\0", b"[", b'{"a":', b"PK\x03\x04", b'"a" '))
    bomb = _packed_bomb(unit, rng.choice(BOMB_BYTES))
    return _spliced(packed(members[:index] + members[index + 1 :]), name, bomb)


def _spliced(archive: bytes, name: str, one: bytes) -> bytes:
    """Return an archive with the single member of another added under a name."""
    raw = name.encode()[:0xFFFF]
    count, size, start = struct.unpack_from("<HII", archive, len(archive) - 12)
    fields: list[Any] = list(struct.unpack_from("<4s5H3I2H", one))
    body = one[31 : 31 + fields[7]]
    fields[9] = len(raw)
    entry = (_CENTRAL, 20, *fields[1:10], 0, 0, 0, 0, 0, start)
    local = struct.pack("<4s5H3I2H", *fields) + raw + body
    directory = archive[start : start + size]
    directory += struct.pack("<4s6H3I5H2I", *entry) + raw
    end = (_END, 0, 0, count + 1, count + 1, len(directory), start + len(local), 0)
    return archive[:start] + local + directory + struct.pack("<4s4H2IH", *end)


def change_json(members: Members, rng: random.Random) -> bytes:
    """Change, drop and swap values inside the members that are JSON."""
    rate = rng.choice((0.0005, 0.003, 0.02))
    for index, (name, content) in enumerate(members):
        if content[:1] in b"{[" and rng.random() < 0.7:
            try:
                tree = _changed(json.loads(content), rng, rate if len(content) > 2_000 else 0.2)
                members[index] = (name, json.dumps(tree).encode())
            except (ValueError, RecursionError):
                continue
    return packed(members)


def _changed(tree: Any, rng: random.Random, rate: float) -> Any:
    if rng.random() < rate:
        return rng.choice(_JUNK)
    if isinstance(tree, dict):
        kept = {key: value for key, value in tree.items() if rng.random() > rate / 2}
        return {key: _changed(value, rng, rate) for key, value in kept.items()}
    if isinstance(tree, list):
        return [_changed(item, rng, rate) for item in tree if rng.random() > rate / 2]
    if isinstance(tree, str) and tree[:1] == "{" and rng.random() < 0.5:
        try:
            return json.dumps(_changed(json.loads(tree), rng, rate))
        except ValueError:
            return tree
    return tree


def change_content(members: Members, rng: random.Random) -> bytes:
    """Damage the content of members, archives inside included, and keep the checksums right."""
    for _ in range(rng.randint(1, 2)):
        index = rng.randrange(len(members))
        name, content = members[index]
        inner = unpacked(content) if content[:4] == _LOCAL else []
        if inner and rng.random() < 0.7:
            members[index] = (name, rng.choice(_CHANGES)(inner, rng))
        elif content:
            raw = bytearray(content)
            rng.choice((flip_bits, truncate, zero_run, insert_bytes, damage_offset))(raw, rng)
            members[index] = (name, bytes(raw))
    return packed(members)


def change_directory(members: Members, rng: random.Random) -> bytes:
    """Change numbers of headers, directory entries and the end record; checksums among them."""
    data = bytearray(packed(members, deflated=rng.random() < 0.3))
    for _ in range(rng.choice((1, 2, 5))):
        magic = rng.choice(tuple(_NUMBERS))
        places = _positions(bytes(data), magic)
        at, width = rng.choice(_NUMBERS[magic])
        start = rng.choice(places) + at if places else 0
        old = int.from_bytes(data[start : start + width], "little")
        new = rng.choice((*_WILD, old + 1, old - 1, old * 2, rng.randrange(len(data))))
        data[start : start + width] = (new & ((1 << 8 * width) - 1)).to_bytes(width, "little")
    return bytes(data)


def _positions(data: bytes, magic: bytes) -> list[int]:
    found, at = [], data.find(magic)
    while at >= 0 and len(found) < 2_000:
        found.append(at)
        at = data.find(magic, at + 4)
    return found


_CHANGES: tuple[Callable[[Members, random.Random], bytes], ...] = (
    rename_members,
    double_members,
    blow_up,
    change_json,
    change_content,
    change_directory,
)


def damage_archive(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """Return the name of what was done to an archive and the damaged bytes."""
    members = unpacked(data)
    if not members:
        return "damage_archive", data
    change = rng.choice(_CHANGES)
    made = change(members, rng)
    again = unpacked(made) if rng.random() < 0.2 else []
    if again and change is not blow_up:
        second = rng.choice(_CHANGES)
        return f"{change.__name__}+{second.__name__}", second(again, rng)
    return change.__name__, made
