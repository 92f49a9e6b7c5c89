"""Limits on the memory that reading one record may take, however it is compressed."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from schema.errors import FormatError

_MIB = 1 << 20


class Budget:
    """Charges the cost of decoding against limits that grow with the file.

    A record has one budget for all its lazily decoded parts, since they are all kept. Including the
    process they stay below four times the file plus 200 MB; a graph costs about eight times
    its JSON while it is decoded; stored weights, most of a record, cost nothing.

    Attributes:
        inflate_left: bytes that deflated members may still unpack to
        tree_left: bytes that unpacked members, parsed JSON and pickles may still cost
    """

    def __init__(self, file_bytes: int) -> None:
        self.inflate_left = file_bytes + 48 * _MIB
        self.tree_left = 4 * file_bytes + 120 * _MIB

    def inflate(self, nbytes: int, field: str) -> None:
        """Charge the unpacked size of a deflated member."""
        if nbytes > self.inflate_left:
            raise _too_much(f"at most {self.inflate_left} more unpacked bytes", nbytes, field)
        self.tree(nbytes, field)
        self.inflate_left -= nbytes

    def tree(self, nbytes: int, field: str) -> None:
        """Charge the estimated memory of a parsed tree."""
        if nbytes > self.tree_left:
            raise _too_much(f"a structure of at most {self.tree_left} more bytes", nbytes, field)
        self.tree_left -= nbytes

    @contextmanager
    def decoding(self) -> Generator[None, None, None]:
        """Refund a third of the bytes charged in the block: the parsed JSON is freed.

        For 17 MB of JSON the parsed form needs 148 MB at most, its graph 98 MB.
        """
        before = self.tree_left
        yield
        self.tree_left += max(before - self.tree_left, 0) // 3


def _too_much(expected: str, nbytes: int, field: str) -> FormatError:
    return FormatError(f"{expected} for a file of this size", f"{nbytes} bytes", field=field)
