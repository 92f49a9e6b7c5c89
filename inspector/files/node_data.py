"""Values of nodes from JSON and CSV files, for colouring a graph.

Read are: objects of node -> number, lists of objects with a node and its values, Model Explorer's
node data (``{graph: {"results": {node: {"value": number}}}}``), and tables with a column of nodes
and one or more columns of numbers, separated by commas, semicolons or tabs.

Source: the node data format in Model Explorer's documentation of custom node data.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from schema.errors import FormatError, Issue, Severity

KIND = "node_data"
LARGEST = 64 << 20  # bytes; larger files hold something else
_HEAD = 4096  # bytes that tell text from other content
_MOST_SETS = 50  # columns of a table, or graphs of a file
_EXPECTED = "values of nodes as JSON or CSV"
_NODE_KEYS = ("node", "name", "id", "node_id", "node_name", "tensor")
_SEPARATORS = ",;\t"


@dataclass(frozen=True, slots=True, eq=False)
class NodeData:
    """Values by name of the node.

    Attributes:
        title: of the values
        values: number by name, as the file spells it
        by_id: whether names may be positions, as in Model Explorer's graphs
    """

    title: str
    values: Mapping[str, float]
    by_id: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class NodeDataFile:
    """A file with one or more sets of values.

    Attributes:
        sets: each with its title
        issues: what was left out
    """

    sets: tuple[NodeData, ...]
    issues: tuple[Issue, ...] = ()


def could_be_node_data(data: memoryview) -> bool:
    """Return whether bytes are text that may be JSON or a table."""
    head = bytes(data[:_HEAD])
    if len(data) > LARGEST or b"\0" in head:
        return False
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    first = text.split(b"\n", 1)[0]
    return text[:1] in (b"{", b"[") or any(mark.encode() in first for mark in _SEPARATORS)


def decode_node_data(data: memoryview, file: str = "") -> NodeDataFile:
    """Return the values of a file.

    Raises: FormatError for other content
    """
    try:
        text = bytes(data).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(_EXPECTED, "bytes that are not UTF-8", file=file) from error
    title = Path(file).stem or "values"
    issues: list[Issue] = []
    if text.lstrip()[:1] in ("{", "["):
        sets = _of_json(_json(text, file), title, issues, file)
    else:
        sets = _of_table(text, title, issues, file)
    kept = tuple(one for one in sets if one.values)
    if not kept:
        raise FormatError(_EXPECTED, "no number that belongs to a node", file=file)
    return NodeDataFile(kept[:_MOST_SETS], tuple(issues))


def begins_like_node_data(path: str) -> bool:
    """Return whether the first bytes of a file may begin values of nodes; no more is read."""
    try:
        if not Path(path).is_file() or Path(path).stat().st_size > LARGEST:
            return False
        with open(path, "rb") as stream:
            return could_be_node_data(memoryview(stream.read(_HEAD)))
    except OSError:
        return False


def is_node_data(path: str) -> bool:
    """Return whether a file has values of nodes; one that begins like them is read whole."""
    if not begins_like_node_data(path):
        return False
    try:
        decode_node_data(memoryview(Path(path).read_bytes()), path)
    except (OSError, FormatError):
        return False
    return True


# -- JSON


def _json(text: str, file: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        found = f"text that is not JSON ({error})"
        raise FormatError(_EXPECTED, found, file=file) from error


def _of_json(content: object, title: str, issues: list[Issue], file: str) -> list[NodeData]:
    if isinstance(content, list):
        return _of_rows(cast("list[object]", content), title, issues, file)
    tree = cast("dict[str, Any]", content)
    graphs = tree.get("graphsData", tree)
    if _has_results(graphs):
        return [_explored(title, cast("dict[str, Any]", graphs), issues, file)]
    if isinstance(graphs, dict):
        known = cast("dict[str, Any]", graphs)
        found = {name: each for name, each in known.items() if _has_results(each)}
        if found and len(found) == len(known):
            several = len(found) > 1
            return [
                _explored(f"{title} · {name}" if several else title, each, issues, file)
                for name, each in found.items()
            ]
    if any(_is_structure(each) for each in tree.values()):
        raise FormatError(_EXPECTED, "an object of something else than numbers", file=file)
    return [NodeData(title, _numbers(tree.items(), issues, file))]


def _has_results(content: object) -> bool:
    if not isinstance(content, dict):
        return False
    return isinstance(cast("dict[str, object]", content).get("results"), dict)


def _is_structure(content: object) -> bool:
    """Return whether JSON is neither a value nor an object with one."""
    if isinstance(content, dict):
        return "value" not in cast("dict[str, object]", content)
    return isinstance(content, list)


def _explored(title: str, graph: Mapping[str, Any], issues: list[Issue], file: str) -> NodeData:
    results = cast("dict[str, object]", graph["results"])
    return NodeData(title, _numbers(results.items(), issues, file), by_id=True)


def _of_rows(rows: list[object], title: str, issues: list[Issue], file: str) -> list[NodeData]:
    tables = [cast("dict[str, object]", row) for row in rows if isinstance(row, dict)]
    if len(tables) < len(rows) or not tables:
        raise FormatError(_EXPECTED, "a list of something else than objects", file=file)
    name = next((key for key in _NODE_KEYS if key in tables[0]), "")
    if not name:
        known = ", ".join(map(str, tables[0]))
        raise FormatError(f"objects with one of {', '.join(_NODE_KEYS)}", known, file=file)
    columns = [key for key in tables[0] if key != name and _number(tables[0][key]) is not None]
    return [
        NodeData(
            column if len(columns) > 1 else title,
            _numbers(((str(row.get(name)), row.get(column)) for row in tables), issues, file),
        )
        for column in columns[:_MOST_SETS]
    ]


# -- tables


def _of_table(text: str, title: str, issues: list[Issue], file: str) -> list[NodeData]:
    first = text.lstrip("\r\n").split("\n", 1)[0]
    separator = max(_SEPARATORS, key=first.count)
    try:
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=separator) if any(row)]
    except csv.Error as error:
        raise FormatError(_EXPECTED, f"a table that ends in {error}", file=file) from error
    if not rows or len(rows[0]) < 2:
        raise FormatError(_EXPECTED, "a table with one column", file=file)
    head = [cell.strip() for cell in rows[0]]
    headed = all(_number(cell) is None for cell in head)
    body = rows[1:] if headed else rows
    names = [cell.casefold() for cell in head] if headed else []
    at = next((names.index(key) for key in _NODE_KEYS if key in names), 0)
    columns = [
        column
        for column in range(len(head))
        if column != at and any(_number(_cell(row, column)) is not None for row in body)
    ]
    return [
        NodeData(
            head[column] if headed and len(columns) > 1 else title,
            _numbers(((_cell(row, at), _cell(row, column)) for row in body), issues, file),
        )
        for column in columns[:_MOST_SETS]
    ]


def _cell(row: list[str], column: int) -> str:
    return row[column].strip() if column < len(row) else ""


# -- values


def _numbers(
    pairs: Iterable[tuple[str, object]], issues: list[Issue], file: str
) -> dict[str, float]:
    """Return the finite numbers by name; others are an issue, missing ones are not."""
    found: dict[str, float] = {}
    others: list[str] = []
    for name, given in pairs:
        value = _number(given)
        if value is not None:
            found[name] = value
        elif not _missing(given):
            others.append(name)
    if others:
        more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
        issues.append(Issue(Severity.WARNING, file, f"not a finite number: {others[0]}{more}"))
    return found


def _missing(given: object) -> bool:
    if isinstance(given, dict):
        return cast("dict[str, object]", given).get("value") is None
    return given is None or given == ""


def _number(given: object) -> float | None:
    if isinstance(given, dict):
        given = cast("dict[str, object]", given).get("value")
    if isinstance(given, bool) or not isinstance(given, (int, float, str)):
        return None
    try:
        value = float(given)
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None
