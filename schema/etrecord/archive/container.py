"""Zip archives as lazily read members over one buffer.

Stored members are views into the buffer and cost nothing; deflated ones are unpacked on demand
in bounded steps against the budget of the archive.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

from schema.errors import FormatError, Issue, Severity
from schema.etrecord.archive.zip_index import (
    LOCAL_MAGIC,
    STORED,
    Member,
    read_directory,
    settle,
    walk_local_headers,
)
from schema.etrecord.budget import Budget

_STEP = 1 << 16  # packed bytes between two charges, so that a zip bomb stops at the budget
_SHOWN_PROBLEMS = 20


@dataclass(frozen=True)
class Archive:
    """The members of a zip archive.

    Attributes:
        data: the complete archive
        members: in directory order, unreadable ones included
        issues: issues of the archive and its members
        budget: limits of the cost of unpacking
    """

    data: memoryview
    members: tuple[Member, ...]
    issues: tuple[Issue, ...]
    budget: Budget
    _by_name: dict[str, Member] = field(default_factory=dict[str, Member], repr=False)
    _charged: set[str] = field(default_factory=set[str], repr=False)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the readable members, in directory order."""
        return tuple(self._by_name)

    def get(self, name: str) -> Member | None:
        """Return the readable member of this name."""
        return self._by_name.get(name)

    def read(self, name: str) -> memoryview:
        """Return the content of a member; a view into the archive when it is stored.

        Raises: FormatError if the member is missing, unreadable or does not unpack
        """
        member = self._by_name.get(name)
        if member is None:
            raise FormatError("a readable member", "no member of this name", field=name)
        if member.method == STORED:
            return self.data[member.offset : member.end]
        return self._inflate(member)

    def sound_names(self) -> list[str]:
        """Return the names of the members whose bytes can be had; packed ones are unpacked."""
        sound: list[str] = []
        for name in self._by_name:
            try:
                self.read(name)
            except FormatError:
                continue
            sound.append(name)
        return sound

    def checksum_matches(self, name: str) -> bool:
        """Return whether the content has the checksum of its directory entry."""
        member = self._by_name[name]
        return zlib.crc32(self.read(name)) == member.crc

    def _inflate(self, member: Member) -> memoryview:
        if member.name not in self._charged:
            self.budget.inflate(member.size, member.name)
            self._charged.add(member.name)
        try:
            content = _unpack(self.data[member.offset : member.end], member.size)
        except zlib.error as error:
            raise FormatError("deflate data", str(error), field=member.name) from None
        if len(content) != member.size or zlib.crc32(content) != member.crc:
            raise FormatError(
                f"{member.size} bytes with checksum {member.crc:#010x}",
                f"{len(content)} bytes with {zlib.crc32(content):#010x}",
                field=member.name,
            )
        return memoryview(content).toreadonly()


def _unpack(packed: memoryview, size: int) -> bytearray:
    """Return the unpacked bytes, stopping as soon as they are more than announced."""
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    content = bytearray()
    for at in range(0, len(packed), _STEP):
        rest: bytes | memoryview = packed[at : at + _STEP]
        while rest and not unpacker.eof:
            content += unpacker.decompress(rest, size + 1 - len(content))
            if len(content) > size:
                return content
            rest = unpacker.unconsumed_tail
    return content


def open_archive(data: memoryview, budget: Budget | None = None) -> Archive:
    """Read the directory of a zip archive.

    Raises: FormatError if it has neither a directory nor local headers
    """
    issues: list[Issue] = []
    try:
        found = read_directory(data)
    except FormatError as error:
        found = list(walk_local_headers(data))
        if not found:
            raise
        text = f"{error}; {len(found)} members recovered from their local headers"
        issues.append(Issue(Severity.ERROR, "zip directory", text))
    members = settle(found)
    bad = [member for member in members if member.problem]
    issues += [_unreadable(member) for member in bad[:_SHOWN_PROBLEMS]]
    if len(bad) > _SHOWN_PROBLEMS:
        text = f"{len(bad) - _SHOWN_PROBLEMS} more members cannot be read"
        issues.append(Issue(Severity.ERROR, "zip directory", text))
    by_name = {member.name: member for member in members if not member.problem}
    budget = budget or Budget(len(data))
    return Archive(data, tuple(members), tuple(issues), budget, by_name)


def starts_like_zip(head: bytes) -> bool:
    """Return whether these first bytes are those of a zip archive with members."""
    return head[:4] == LOCAL_MAGIC


def _unreadable(member: Member) -> Issue:
    return Issue(Severity.ERROR, member.name, f"the member is not read: {member.problem}")
