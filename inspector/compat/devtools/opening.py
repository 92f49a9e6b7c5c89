"""Opens the arguments of the Inspector as a session of artifacts."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias, cast

from inspector.compat.devtools.etrecord import ETRecord, opened, parse_etrecord
from inspector.compat.devtools.time_scale import TimeScale
from inspector.files.load import load_file, open_bytes
from inspector.files.session import LoadedFile, Session, SessionOptions
from schema import etdump, etrecord
from schema.bundled import BundledFile
from schema.errors import FormatError
from schema.program import ProgramFile

Path_: TypeAlias = str | os.PathLike[str]
_ALIASES = {"buffer_path": "debug_buffer_path", "etrecord_path": "etrecord"}


def with_aliases(named: Mapping[str, object], aliases: Mapping[str, object]) -> dict[str, object]:
    """Return arguments with those given under another name of the documentation put in.

    Raises: TypeError for an undocumented name, or for one argument under two names
    """
    arguments = dict(named)
    for alias, value in aliases.items():
        name = _ALIASES.get(alias)
        if name is None:
            raise TypeError(f"Inspector has no argument {alias!r}")
        if arguments[name] is not None and value is not None:
            raise TypeError(f"{alias} and {name} are the same argument; give one of them")
        arguments[name] = arguments[name] if value is None else value
    return arguments


def open_trace(path: Path_ | None, data: bytes | None) -> LoadedFile:
    """Return the trace.

    Raises: ValueError unless exactly one of the two is given; FormatError, OSError
    """
    if (path is None) == (data is None):
        raise ValueError("Expecting exactly one of etdump_path or etdump_data to be specified.")
    label = "etdump_data" if path is None else os.fspath(path)
    view = memoryview(data or b"") if path is None else open_bytes(label)
    return LoadedFile(label, "etdump", len(view), view, etdump.decode(view, file=label))


def open_record(given: object) -> ETRecord | None:
    """Return a record given as a path, as an ETRecord of ours or of the stock tool.

    Raises: TypeError for anything else; FormatError, OSError
    """
    if given is None or isinstance(given, ETRecord):
        return given
    if isinstance(given, (str, os.PathLike)):
        return parse_etrecord(cast("Path_", given))
    if isinstance(given, etrecord.RecordFile):
        return opened(given)
    save = getattr(given, "save", None)
    if type(given).__name__ != "ETRecord" or not callable(save):
        raise TypeError("Unsupported ETRecord type")
    written = io.BytesIO()
    save(written)
    return opened(etrecord.decode(written.getvalue(), file="ETRecord object"))


def open_program(given: object) -> LoadedFile | None:
    """Return a program given as a path to a ``.pte`` or ``.bpte``, or decoded.

    Raises: TypeError for anything else; FormatError, OSError
    """
    if given is None:
        return None
    if isinstance(given, (ProgramFile, BundledFile)):
        return LoadedFile(given.file, "pte", 0, memoryview(b""), given)
    if not isinstance(given, (str, os.PathLike)):
        raise TypeError(f"program is a path or a decoded program, not {type(given).__name__}")
    file = load_file(os.fspath(cast("Path_", given)))
    if not isinstance(file.artifact, (ProgramFile, BundledFile)):
        raise FormatError("a program", file.kind, file=str(Path(file.path)))
    return file


def session_of(
    trace: LoadedFile, record: ETRecord | None, program: LoadedFile | None, source: TimeScale
) -> Session:
    """Return the artifacts as one session."""
    files = [trace] if program is None else [program, trace]
    if record is not None:
        artifact = record.artifact
        files.append(LoadedFile(artifact.file, "etrecord", 0, memoryview(b""), artifact))
    options = SessionOptions(source_time_scale=source.value, time_scale_assumed=False)
    return Session(Path(trace.path).stem, tuple(files), options)
