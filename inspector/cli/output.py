"""Writes answers: envelope, formats, and files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np

from inspector.cli.answer import FAILED, USAGE, Answer, CommandError
from inspector.cli.text import render, separated
from schema.errors import Issue
from schema.version import __version__


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
    """Return strict JSON: no NaN, no infinity, numpy numbers as numbers."""
    return json.dumps(plain(value), indent=1, ensure_ascii=False, allow_nan=False)


def plain(value: object) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value as JSON types; a number that is not finite becomes null."""
    if isinstance(value, np.generic):
        value = cast(object, value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (str, int, bool, type(None))):
        return value
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return {str(key): plain(item) for key, item in items}
    if isinstance(value, np.ndarray):
        return plain(cast("list[object]", value.tolist()))
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in cast("Sequence[object]", value)]
    return str(value)


@dataclass(frozen=True, slots=True)
class Heading:
    """What every answer says beside its data.

    Attributes:
        verb: what was asked
        inputs: files that were opened
        issues: odd things in them
        error: files that could not be read, as a sentence; empty when all could
    """

    verb: str
    inputs: tuple[str, ...]
    issues: tuple[Issue, ...] = ()
    error: str = ""


def emit(heading: Heading, answer: Answer, options: Namespace) -> None:
    """Write an answer in the format asked for, to the file asked for or to standard output.

    Raises: CommandError if the output exists without --force or cannot be written
    """
    if options.output:
        refuse_inputs(Path(options.output), heading.inputs)
        text = _formatted(heading, answer, options.format, io.StringIO())
        write_text(Path(options.output), text, force=options.force)
        return
    try:
        sys.stdout.write(_formatted(heading, answer, options.format, sys.stdout))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"the output cannot be written: {error.strerror}", FAILED) from error


def _formatted(heading: Heading, answer: Answer, form: str, stream: TextIO) -> str:
    if form == "json":
        found = envelope(heading.verb, heading.inputs, heading.issues, answer.data, heading.error)
        return to_json(found) + "\n"
    if form in ("tsv", "csv"):
        if not answer.tables:
            return ""
        return separated(answer.tables[0], "\t" if form == "tsv" else ",")
    if answer.document is not None:
        return answer.document
    return render(answer, heading.issues, stream)


def refuse_inputs(path: Path, inputs: Sequence[str]) -> None:
    """Raise CommandError if an output is one of the files being read, forced or not."""
    for name in inputs:
        with contextlib.suppress(OSError):
            if path.exists() and path.samefile(name):
                raise CommandError(f"{path} is one of the files being read", USAGE)


def write_text(path: Path, text: str, *, force: bool) -> None:
    """Write a file whole or not at all."""
    write_bytes(path, text.encode("utf-8", "replace"), force=force)


def write_bytes(path: Path, data: bytes, *, force: bool) -> None:
    """Write a file whole or not at all.

    Raises: CommandError if it exists without force, or the disk refuses
    """
    if path.is_dir():
        raise CommandError(f"{path} is a folder, not a file", USAGE)
    if path.exists() and not force:
        raise CommandError(f"{path} exists; --force replaces it", USAGE)
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        _share(Path(temporary))
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise CommandError(f"{path} cannot be written: {error.strerror}", FAILED) from error


def _share(path: Path) -> None:
    # mkstemp makes files only their owner reads; an output is like any file the user makes.
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def safe_name(name: str) -> str:
    """Return a file name for text from a file: no separators, no dots in front, not too long."""
    kept = "".join(char if char.isalnum() or char in "._-" else "_" for char in name)
    return kept.lstrip(".")[:120] or "_"
