"""The directory of a zip archive, read without trusting it.

Every member is checked on its own: one with a bad name, position or method keeps its row and gets
a ``problem``, so that the others can still be read. Sizes and positions come from the central
directory; a truncated archive falls back to walking the local headers.

Source: APPNOTE.TXT 4.3 (records), 4.5.3 (zip64 extra field).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

from schema.errors import FormatError

STORED, DEFLATED = 0, 8  # methods of the zip format, APPNOTE 4.4.5
LOCAL = struct.Struct("<4s5H3I2H")
CENTRAL = struct.Struct("<4s6H3I5H2I")
END = struct.Struct("<4s4H2IH")
END64 = struct.Struct("<4sQ2H2I4Q")
LOCATOR64 = struct.Struct("<4sIQI")
LOCAL_MAGIC, CENTRAL_MAGIC = b"PK\x03\x04", b"PK\x01\x02"
END_MAGIC, END64_MAGIC, LOCATOR64_MAGIC = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
_ENCRYPTED, _DESCRIPTOR, _UTF8 = 0x1, 0x8, 0x800  # general purpose flags, APPNOTE 4.4.4
_MAX_COMMENT = 0xFFFF  # the end record may be followed by a comment of 16-bit length
_MAX_MEMBERS = 100_000  # a 70B model saves about 1,500 storages


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a zip archive.

    Attributes:
        name: path inside the archive
        size: bytes of the content
        packed: size of the content in the archive
        method: 0 stored, 8 deflated
        crc: checksum of the content
        header: position of the local header
        offset: position of the (packed) content
        stamp: DOS date and time
        problem: why the content cannot be read; empty if it can
    """

    name: str
    size: int
    packed: int
    method: int
    crc: int
    header: int
    offset: int
    stamp: int
    problem: str = ""

    @property
    def compressed(self) -> bool:
        """Return whether the content is packed."""
        return self.method != STORED

    @property
    def end(self) -> int:
        """Return the position after the (packed) content."""
        return self.offset + self.packed


def read_directory(data: memoryview) -> list[Member]:
    """Return the members in directory order.

    Raises: FormatError if the central directory is missing or incomplete
    """
    start, stop, count, shift = _locate(data)
    members: list[Member] = []
    at = start
    while at < stop and len(members) < count:
        if len(members) >= _MAX_MEMBERS:
            raise FormatError(f"at most {_MAX_MEMBERS} members", f"{count}", offset=at)
        member, at = _central_entry(data, at, stop, shift)
        members.append(member)
    if len(members) < count:
        raise FormatError(f"{count} directory entries", f"{len(members)}", offset=at)
    return members


def walk_local_headers(data: memoryview) -> Iterator[Member]:
    """Yield members by their local headers from the start, until one has no size or no header."""
    at = 0
    for _ in range(_MAX_MEMBERS):
        if at + LOCAL.size > len(data):
            return
        magic, _, flags, method, time, date, crc, packed, size, name_len, extra_len = (
            LOCAL.unpack_from(data, at)
        )
        offset = at + LOCAL.size + name_len + extra_len
        if magic != LOCAL_MAGIC or flags & _DESCRIPTOR or offset + packed > len(data):
            return
        raw = bytes(data[at + LOCAL.size : at + LOCAL.size + name_len])
        name, problem = _name(raw, flags)
        problem = problem or _method_problem(flags, method, size, packed)
        yield Member(name, size, packed, method, crc, at, offset, date << 16 | time, problem)
        at = offset + packed


def settle(members: list[Member]) -> list[Member]:
    """Return the members with overlaps and shadowed names marked.

    The last of several members of one name wins, as in every zip reader.
    """
    order = sorted(range(len(members)), key=lambda index: members[index].header)
    result = list(members)
    taken, owner = 0, ""
    for index in order:
        member = result[index]
        if member.problem:
            continue
        if member.header < taken:
            result[index] = replace(member, problem=f"its bytes overlap those of {owner!r}")
        else:
            taken, owner = member.end, member.name
    last = {member.name: index for index, member in enumerate(result) if not member.problem}
    for index, member in enumerate(result):
        if not member.problem and last[member.name] != index:
            result[index] = replace(member, problem="a later member has the same name")
    return result


def _locate(data: memoryview) -> tuple[int, int, int, int]:
    """Return start and end of the central directory, its entries and the shift of positions."""
    tail_at = max(0, len(data) - END.size - _MAX_COMMENT)
    found = bytes(data[tail_at:]).rfind(END_MAGIC)
    if found < 0 or tail_at + found + END.size > len(data):
        raise FormatError("a zip end record", "no record in the last 64 KiB")
    end_at = tail_at + found
    _, _, _, _, count, size, offset, _ = END.unpack_from(data, end_at)
    locator_at = end_at - LOCATOR64.size
    if locator_at >= 0 and bytes(data[locator_at : locator_at + 4]) == LOCATOR64_MAGIC:
        end_at = _end64_at(data, locator_at)
        *_, count, size, offset = END64.unpack_from(data, end_at)
    start = end_at - size
    if start < 0 or start < offset:
        raise FormatError(
            f"a central directory of {size} bytes at byte {offset}",
            f"its end record at byte {end_at}",
            offset=end_at,
        )
    if start > offset and bytes(data[:4]) == LOCAL_MAGIC:
        # The end record of an archive stored inside this one, while that of the outer archive is
        # missing.
        raise FormatError(f"a directory at byte {start}", f"one for byte {offset}", offset=end_at)
    return start, end_at, count, start - offset


def _end64_at(data: memoryview, locator_at: int) -> int:
    _, _, at, _ = LOCATOR64.unpack_from(data, locator_at)
    for place in (at, locator_at - END64.size):
        fits = 0 <= place <= locator_at - END64.size
        if fits and bytes(data[place : place + 4]) == END64_MAGIC:
            return place
    raise FormatError("a zip64 end record", f"no record at byte {at}", offset=locator_at)


def _central_entry(data: memoryview, at: int, stop: int, shift: int) -> tuple[Member, int]:
    if at + CENTRAL.size > stop:
        raise FormatError("a directory entry of 46 bytes", f"{stop - at} bytes", offset=at)
    fields = CENTRAL.unpack_from(data, at)
    magic, _, _, flags, method, time, date, crc, packed, size = fields[:10]
    name_len, extra_len, comment_len, _, _, _, header = fields[10:]
    name_at = at + CENTRAL.size
    extra_at = name_at + name_len
    after = extra_at + extra_len + comment_len
    if magic != CENTRAL_MAGIC or after > stop:
        raise FormatError("a directory entry", f"bytes {bytes(data[at : at + 4])!r}", offset=at)
    extra = bytes(data[extra_at : extra_at + extra_len])
    raw = bytes(data[name_at:extra_at])
    size, packed, header = _widen(extra, size, packed, header)
    header += shift
    name, problem = _name(raw, flags)
    offset, trouble = _content_offset(data, header, packed, raw)
    problem = problem or _method_problem(flags, method, size, packed) or trouble
    stamp = date << 16 | time
    return Member(name, size, packed, method, crc, header, offset, stamp, problem), after


def _widen(extra: bytes, size: int, packed: int, header: int) -> tuple[int, int, int]:
    """Return the sizes and the position, from the zip64 extra field if they are saturated."""
    values = [size, packed, header]
    at = 0
    while at + 4 <= len(extra):
        tag, length = struct.unpack_from("<HH", extra, at)
        if tag == 1:
            body = extra[at + 4 : at + 4 + length]
            wide = list(struct.unpack(f"<{len(body) // 8}Q", body[: len(body) // 8 * 8]))
            values = [wide.pop(0) if v == 0xFFFFFFFF and wide else v for v in values]
        at += 4 + length
    return values[0], values[1], values[2]


def _content_offset(data: memoryview, header: int, packed: int, raw: bytes) -> tuple[int, str]:
    """Return where the content starts, and the problem of the local header."""
    if header < 0 or header + LOCAL.size > len(data):
        return 0, f"its header at byte {header} lies outside the file"
    fields = LOCAL.unpack_from(data, header)
    name_at = header + LOCAL.size
    offset = name_at + fields[9] + fields[10]
    same_name = fields[9] == len(raw) and bytes(data[name_at : name_at + len(raw)]) == raw
    if fields[0] != LOCAL_MAGIC or not same_name:
        return 0, f"no header of this name at byte {header}"
    if offset + packed > len(data):
        return 0, f"its {packed} bytes at byte {offset} run past the end of the file"
    return offset, ""


def _method_problem(flags: int, method: int, size: int, packed: int) -> str:
    if flags & _ENCRYPTED:
        return "it is encrypted"
    if method not in (STORED, DEFLATED):
        return f"its compression method {method} is neither stored nor deflate"
    if method == STORED and size != packed:
        return f"it is stored, but {size} bytes have a packed size of {packed}"
    return ""


def _name(raw: bytes, flags: int) -> tuple[str, str]:
    """Return the decoded name, and its problem."""
    try:
        name = raw.decode("utf-8" if flags & _UTF8 else "cp437")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "backslashreplace"), "its name cannot be decoded"
    parts = name.split("/")
    unsafe = name.startswith("/") or "\\" in name or ".." in parts or ":" in parts[0]
    if unsafe or not name or not name.isprintable():
        return name, "its name is not a plain relative path"
    return name, ""
