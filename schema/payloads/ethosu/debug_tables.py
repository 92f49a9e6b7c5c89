"""The debug database that Vela writes beside a command stream: tables of CSV in one XML file.

Source: ethos-u-vela 5.1, ``--enable-debug-db``; a queue entry has the place of the last command of
what was scheduled, the key of a source operator is its place in the TOSA graph
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from schema.payloads.estimates import TensorPlace
from schema.payloads.ethosu.vela_csv import csv_rows

_FILE = "_debug.xml"
# No parser of XML: the file is written line by line, and entities of a hostile one never expand.
_BEGIN = re.compile(rb'<table name="(\w{1,40})">\s{0,100}<!\[CDATA\[')
_END = b"]]>"
_WANTED = frozenset({"perf", "queue", "source", "tensors"})
_LONGEST = 20  # digits of an integer
Row = Mapping[str, str]


class DebugTables:
    """The debug database of a command stream.

    Args:
        files: that Vela left, by name

    Raises: FormatError if a table cannot be read
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        name = next((one for one in sorted(files) if one.endswith(_FILE)), "")
        self._tables: dict[str, Sequence[Row]] = {}
        for title, content in _tables(files[name] if name else b""):
            if title in _WANTED and title not in self._tables:
                self._tables[title] = csv_rows(content, name)
        self._keys = {row["id"]: _int(row.get("ext_key")) for row in self._rows("source")}

    def _rows(self, table: str) -> Sequence[Row]:
        return [row for row in self._tables.get(table, ()) if row.get("id") or table == "queue"]

    def tensors(self) -> tuple[TensorPlace, ...]:
        """Return the tensors in the memories of the system."""
        return tuple(
            TensorPlace(
                row.get("name", ""),
                row.get("memory", ""),
                row.get("usage", ""),
                row.get("data_type", ""),
                row.get("format", ""),
                _int(row.get("start_address")),
                _int(row.get("size")),
                _int(row.get("start_time")),
                _int(row.get("end_time")),
            )
            for row in self._rows("tensors")
        )

    def layer_operators(self) -> tuple[tuple[str, int | None], ...]:
        """Return the tensor of each layer, and the place in the TOSA graph of its operator."""
        return tuple(
            (row.get("name", ""), self._keys.get(row.get("source_id", "")))
            for row in self._rows("perf")
        )

    def command_layers(self, places: Sequence[int]) -> tuple[int | None, ...]:
        """Return the index of the layer of each command, None for one of no layer.

        Args:
            places: of the commands, in bytes from the start of the stream, ascending
        """
        layers = {row["id"]: index for index, row in enumerate(self._rows("perf"))}
        queue = [
            (end, layers.get(row.get("scheduled_id", "")))
            for row in self._rows("queue")
            if (end := _int(row.get("offset"))) is not None
        ]
        queue.sort(key=lambda one: one[0])
        ends = [end for end, _ in queue]
        found: list[int | None] = []
        for place in places:
            index = bisect_left(ends, place)
            found.append(queue[index][1] if index < len(queue) else None)
        return tuple(found)


def _tables(text: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the names and the contents of the tables."""
    at = 0
    while (found := _BEGIN.search(text, at)) is not None:
        end = text.find(_END, found.end())
        if end < 0:
            return
        yield found[1].decode("ascii"), text[found.end() : end].strip()
        at = end


def _int(text: str | None) -> int | None:
    if text is None or len(text) > _LONGEST:
        return None
    try:
        return int(text, 0)
    except ValueError:
        return None
