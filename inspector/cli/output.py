"""Writes answers: envelope, formats, and atomic writes."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import math
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from inspector.cli.answer import FAILED, USAGE, Answer, CommandError, Lazy
from inspector.cli.text import render
from inspector.render.values import separated_rows
from schema.errors import Issue
from schema.objects.atomic_file import write_atomically
from schema.version import __version__

_NESTED = 4  # objects down to here have a line a member
_LONGEST_NAME, _LONGEST_SUFFIX = 100, 16  # characters; file systems allow 255 bytes


def envelope(
    verb: str,
    inputs: Sequence[str],
    issues: Sequence[Issue],
    data: Mapping[str, Any] | None,
    error: str = "",
) -> dict[str, Any]:
    """Return the one JSON object every verb answers with."""
    found: dict[str, Any] = {
        "etscope": __version__,
        "verb": verb,
        "inputs": list(inputs),
        "issues": [
            {"severity": issue.severity.value, "where": issue.where, "message": issue.message}
            for issue in issues
        ],
        "data": data if data is not None else {},
    }
    if error:
        found["error"] = error
    return found


def to_json(value: object) -> str:
    """Return strict JSON: no NaN, no infinity, numpy scalars as numbers."""
    return "".join(json_pieces(value))


def json_pieces(value: object, depth: int = 0) -> Iterator[str]:
    """Yield strict JSON, a line for each member of the outer objects and each element of lists.

    A list is read one element at a time, so that a million rows need not exist at once.
    """
    pad = "  " * (depth + 1)
    members: Mapping[object, object] = {}
    if isinstance(value, Mapping):
        members = cast("Mapping[object, object]", value)
    if members and depth < _NESTED:
        for number, (key, item) in enumerate(members.items()):
            yield f"{',' if number else '{'}\n{pad}{_compact(str(key))}: "
            yield from json_pieces(item, depth + 1)
        yield f"\n{pad[2:]}}}"
    elif isinstance(value, (list, tuple, Lazy)) and depth < _NESTED:
        empty = True
        for item in cast("Iterable[object]", value):
            yield f"{'[' if empty else ','}\n{pad}{_compact(item)}"
            empty = False
        yield "[]" if empty else f"\n{pad[2:]}]"
    else:
        yield _compact(cast(object, value))


def _compact(value: object) -> str:
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False)
    # JSON allows these as they are; a terminal would obey them.
    return _CONTROLS.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def plain(value: object) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value as JSON types; non-finite values become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (str, int, bool, type(None))):
        return value
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return {str(key): plain(item) for key, item in items}
    if type(value).__module__.partition(".")[0] == "numpy":  # not loaded just to ask for a type
        return plain(cast(Any, value).tolist())
    if isinstance(value, (list, tuple, set, frozenset, Lazy)):
        return [plain(item) for item in cast("Iterable[object]", value)]
    return str(value)


@dataclass(frozen=True, slots=True)
class Heading:
    """Members of the envelope besides the data.

    Attributes:
        verb: name
        inputs: opened files
        issues: found in them
        error: sentence about unreadable files; else empty
    """

    verb: str
    inputs: tuple[str, ...]
    issues: tuple[Issue, ...] = ()
    error: str = ""


def emit(heading: Heading, answer: Answer, options: Namespace) -> None:
    """Write a result in the selected format, to the selected file or to standard output.

    Raises: CommandError if the output exists without --force or cannot be written
    """
    if options.output:
        refuse_inputs(Path(options.output), heading.inputs)
        pieces = _formatted(heading, answer, options.format, io.StringIO())
        write_text(Path(options.output), pieces, force=options.force)
        return
    try:
        for piece in _formatted(heading, answer, options.format, sys.stdout):
            sys.stdout.write(piece)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"the output cannot be written: {error.strerror}", FAILED) from error


def _formatted(heading: Heading, answer: Answer, form: str, stream: TextIO) -> Iterable[str]:
    if form == "json":
        found = envelope(heading.verb, heading.inputs, heading.issues, answer.data, heading.error)
        return itertools.chain(json_pieces(found), "\n")
    if form in ("tsv", "csv"):
        if not answer.tables:
            return ()
        return separated_rows(answer.tables[0].selected, "\t" if form == "tsv" else ",")
    if answer.document is not None:
        return answer.document
    return (render(answer, heading.issues, stream),)


def refuse_inputs(path: Path, inputs: Sequence[str]) -> None:
    """Raise CommandError if an output is one of the files being read, forced or not."""
    for name in inputs:
        with contextlib.suppress(OSError):
            if path.exists() and path.samefile(name):
                raise CommandError(f"{path} is one of the files being read", USAGE)


def write_text(path: Path, pieces: Iterable[str], *, force: bool) -> None:
    """Write a file atomically."""

    def write(stream: BinaryIO) -> None:
        for piece in pieces:
            stream.write(piece.encode("utf-8", "replace"))

    write_file(path, write, force=force)


def write_bytes(path: Path, data: bytes, *, force: bool) -> None:
    """Write a file atomically."""
    write_file(path, lambda stream: stream.write(data), force=force)


def write_file(path: Path, write: Callable[[BinaryIO], object], *, force: bool) -> None:
    """Write a file atomically through a callback.

    Raises: CommandError if it exists without force, or for a disk error
    """
    refuse_existing(path, force=force)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, write)
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandError(f"{path} cannot be written: {reason}", FAILED) from error


def refuse_existing(path: Path, *, force: bool) -> None:
    """Raise CommandError if a file is there and may not be replaced."""
    if path.is_dir():
        raise CommandError(f"{path} is a folder, not a file", USAGE)
    if not force and (path.exists() or path.is_symlink()):
        raise CommandError(f"{path} exists; --force replaces it", USAGE)


def write_folder(
    folder: Path, files: Sequence[tuple[Path, Callable[[BinaryIO], object]]], *, force: bool
) -> None:
    """Write files below a folder; nothing is written if one of them must not be.

    Args:
        folder: created if missing; a non-empty one requires force
        files: path below the folder, and the function that writes it
        force: replace existing files; others in the folder are kept

    Raises: CommandError if files exist without force, or for a disk error
    """
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"{folder} is a file, not a folder", USAGE)
    if not force and folder.exists() and any(folder.iterdir()):
        raise CommandError(f"{folder} exists and is not empty; --force writes into it", USAGE)
    for path, _ in files:
        refuse_existing(folder / path, force=force)
    for path, write in files:
        _refuse_leaving(folder, folder / path)
        write_file(folder / path, write, force=force)


def _refuse_leaving(folder: Path, path: Path) -> None:
    """Raise CommandError if a link below the folder leads out of it."""
    if not path.parent.resolve().is_relative_to(folder.resolve()):
        raise CommandError(f"{path.parent} is a link to a place outside of {folder}", USAGE)


_CONTROLS = re.compile("[\\x7f-\\x9f\\u2028-\\u202e\\u2066-\\u2069]")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)  # of Windows


def safe_path(parts: Sequence[str]) -> Path:
    """Return a relative path for names from a file; it never leads out of its folder."""
    return Path(*(safe_name(part) for part in parts))


def safe_name(name: str) -> str:
    """Return a file name for text from a file: no separators, no dots in front, not too long."""
    kept = "".join(char if char.isalnum() or char in "._-" else "_" for char in name)
    kept = kept.strip(".") or "_"
    if len(kept) > _LONGEST_NAME:
        stem, dot, suffix = kept.rpartition(".")
        tail = f"{dot}{suffix}" if stem and len(suffix) < _LONGEST_SUFFIX else ""
        kept = kept[: _LONGEST_NAME - len(tail)] + tail
    return f"_{kept}" if _RESERVED.match(kept) else kept
