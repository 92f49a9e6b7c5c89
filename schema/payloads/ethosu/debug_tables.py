"""The debug database that Vela writes beside a command stream: tables of CSV in one XML file.

Source: ethos-u-vela 5.1, ``--enable-debug-db``; a queue entry has the place of the last command of
what was scheduled, the key of a source operator is its place in the TOSA graph
"""

from __future__ import annotations

import csv
import io
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from schema.payloads.estimates import TensorPlace

_FILE = "_debug.xml"
# No parser of XML: the file is written line by line, and entities of a hostile one never expand.
_TABLE = re.compile(
    rb'<table name="(\w{1,40})">\s*<!\[CDATA\[\s*(.*?)\s*\]\]>\s*</table>', re.DOTALL
)
_WANTED = frozenset({"perf", "queue", "source", "tensors"})
_MOST_ROWS = 1_000_000
Row = Mapping[str, str]


class DebugTables:
    """The debug database of a command stream.

    Args:
        files: that Vela left, by name
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        name = next((one for one in sorted(files) if one.endswith(_FILE)), "")
        self._tables: dict[str, list[Row]] = {}
        for found in _TABLE.finditer(files[name] if name else b""):
            title = found[1].decode("ascii")
            if title in _WANTED:
                self._tables.setdefault(title, _rows(found[2]))
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
            places: of the commands, in bytes from the begin of the stream, ascending
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


def _rows(text: bytes) -> list[Row]:
    reader = csv.DictReader(io.StringIO(text.decode("utf-8", "replace")))
    rows: list[Row] = []
    for row in reader:
        if len(rows) >= _MOST_ROWS:
            break
        rows.append({key: value for key, value in row.items() if key and isinstance(value, str)})
    return rows


def _int(text: str | None) -> int | None:
    try:
        return int(text or "", 0)
    except ValueError:
        return None
