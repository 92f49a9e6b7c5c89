"""The flattened folder of a Core ML payload.

All files one after the other, then a JSON directory written backwards, so that it can be read from
the last byte. Source: backends/apple/coreml/runtime/inmemoryfs
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from schema.errors import FormatError, Issue, Severity
from schema.payloads.reading import span

Buffer = bytes | bytearray | memoryview
_WINDOW = 2 << 20  # the directory of a model is a few kilobytes
_MAX_DEPTH = 32
_MAX_ENTRIES = 100_000
_WHERE = "Core ML payload"


@dataclass(frozen=True, slots=True)
class File:
    """A file of the folder.

    Attributes:
        path: below the root folder, with ``/``
        offset: first byte in the payload
        data: its bytes
    """

    path: str
    offset: int
    data: memoryview


@dataclass(frozen=True, slots=True)
class FileTree:
    """The folder.

    Attributes:
        files: in the order of the directory
        directory_offset: first byte of the reversed directory
    """

    files: tuple[File, ...]
    directory_offset: int


def read_tree(data: memoryview, issues: list[Issue]) -> FileTree:
    """Return the files of a payload.

    Raises: FormatError if the payload does not end with a directory
    """
    directory, nbytes = _directory(data)
    nodes: object = directory.get("nodes")
    if not isinstance(nodes, list) or not nodes:
        raise FormatError("a directory with nodes", "none", field="nodes")
    entries = cast("list[Any]", nodes)
    if len(entries) > _MAX_ENTRIES:
        raise FormatError(f"at most {_MAX_ENTRIES} directory entries", str(len(entries)))
    files = tuple(_files(entries, data, issues))
    return FileTree(files, len(data) - nbytes)


def _directory(data: memoryview) -> tuple[dict[str, Any], int]:
    # Latin-1 maps each byte to one character, so that the end of the JSON is a byte count.
    raw = bytes(data[-_WINDOW:])[::-1]
    try:
        nbytes = json.JSONDecoder().raw_decode(raw.decode("latin-1"))[1]
        found = json.loads(raw[:nbytes].decode("utf-8", "backslashreplace"))
    except (ValueError, RecursionError):
        found, nbytes = None, 0
    if not isinstance(found, dict):
        raise FormatError("a JSON directory written backwards at the end", "none")
    return cast("dict[str, Any]", found), nbytes


def _files(entries: list[Any], data: memoryview, issues: list[Issue]) -> Iterator[File]:
    seen: set[int] = set()
    paths: set[str] = set()
    stack: list[tuple[int, str]] = [(len(entries) - 1, "")]
    while stack:
        index, path = stack.pop()
        entry: Any = entries[index] if 0 <= index < len(entries) else None
        if index in seen or not isinstance(entry, dict) or path.count("/") > _MAX_DEPTH:
            issues.append(_warn(f"directory entry {index} ({path or 'root'}) cannot be followed"))
            continue
        seen.add(index)
        fields = cast("dict[str, Any]", entry)
        children = _children(fields, path, issues)
        if fields.get("kind") == 0 and not children and path not in paths:
            paths.add(path)
            yield _file(fields, path, data)
        stack.extend(reversed(children))


def _file(fields: dict[str, Any], path: str, data: memoryview) -> File:
    region = fields.get("dataRegion")
    place = cast("dict[str, Any]", region) if isinstance(region, dict) else {}
    offset, size = place.get("offset"), place.get("size")
    if not isinstance(offset, int) or not isinstance(size, int):
        raise FormatError("a data region with offset and size", repr(place)[:60], field=path)
    return File(path or "root", offset, span(data, offset, size, path))


def _children(fields: dict[str, Any], path: str, issues: list[Issue]) -> list[tuple[int, str]]:
    found = fields.get("children")
    if not isinstance(found, dict):
        return []
    built: list[tuple[int, str]] = []
    for name, index in cast("dict[str, Any]", found).items():
        if not isinstance(index, int) or not is_safe(name):
            issues.append(_warn(f"the name {name[:60]!r} in the directory is not that of a file"))
            continue
        built.append((index, f"{path}/{name}" if path else name))
    return built


def is_safe(name: str) -> bool:
    """Return whether a name can be created below a folder without leaving it."""
    return name not in ("", ".", "..") and not any(char in name for char in "/\\:\0")


def _warn(message: str) -> Issue:
    return Issue(Severity.WARNING, _WHERE, message)


def write_tree(files: Mapping[str, Buffer]) -> list[Buffer]:
    """Return a flattened folder, as buffers to write one after the other.

    Args:
        files: by path below the root folder
    """
    entries: list[dict[str, object]] = []
    parts: list[Buffer] = []
    root: dict[str, Any] = {}
    for path, data in files.items():
        *folders, last = path.split("/")
        place = root
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = (sum(len(part) for part in parts), len(data))
        parts.append(data)
    _write_entry("root", root, entries)
    return [*parts, json.dumps({"nodes": entries}).encode()[::-1]]


def _write_entry(
    name: str, found: dict[str, Any] | tuple[int, int], entries: list[dict[str, object]]
) -> int:
    children: dict[str, int] = {}
    region = (0, 0)
    if isinstance(found, tuple):
        region = found
    else:
        children = {key: _write_entry(key, one, entries) for key, one in found.items()}
    entries.append(
        {
            "name": name,
            "kind": int(not isinstance(found, tuple)),
            "dataRegion": {"offset": region[0], "size": region[1]},
            "children": children,
        }
    )
    return len(entries) - 1
