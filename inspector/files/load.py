"""Opens files and folders as one session: mapped, recognised by content, decoded, paired."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from inspector.files.mapped import map_file, rest
from inspector.files.node_data import KIND as NODE_DATA
from inspector.files.node_data import LARGEST, could_be_node_data, decode_node_data
from inspector.files.origin import named_after_device, with_known_unit
from inspector.files.run_calls import GENERATION
from inspector.files.run_report import REPORT
from inspector.files.session import EXPORTED, LoadedFile, Session, SessionOptions
from inspector.files.trace_buffers import BUFFER_SUFFIX
from inspector.files.written_folders import POINT, POINTS, WrittenFolder, runs_below
from schema import etdump
from schema.errors import FormatError, Issue, Severity
from schema.etdump.debug_buffer import DebugBuffer, tensor_extents
from schema.files import formats
from schema.files.vendor_models import is_vendor_model, vendor_program

ANY_FILE = "at least one ExecuTorch file"  # that a folder is expected to have
# Small files are read: a mapped file that is rewritten in place kills the process (SIGBUS).
MAP_FROM_BYTES = 32 << 20
# Tensors saved beside a model are archives; no runtime writes one as its debug buffer.
_ARCHIVES = (b"PK\x03\x04", b"PK\x05\x06")
_PROGRAM = "pte"
PROGRAMS = ("pte", "bpte", "etrecord")  # what a session is of
_TRACES = (".etdp", ".etdump")
_VALUES = (".json", ".csv", ".tsv")  # names of files that may hold values of nodes
# traces and their debug buffers as `etscope run` names them; older versions wrote run.debug
_BUFFERS = {"values.debug": "values.etdp", "run.debug": "run.etdp"}
_MOST_FOLDERS, _NAMED = 100, 3  # looked into where a folder has no files itself, and named
_POINT_BYTES = 1 << 16  # more than what is written about a point of a sweep
_ALIGNMENT = 64  # of tensors in a debug buffer: as much may follow the last
Progress = Callable[[str, float], None]


class LoadCancelled(Exception):  # noqa: N818 - not an error
    """Raised when the caller's cancel token was set."""


def load_session(
    paths: Sequence[str | os.PathLike[str]],
    options: SessionOptions | None = None,
    *,
    strict: bool = False,
    cancel: threading.Event | None = None,
    progress: Progress | None = None,
) -> Session:
    """Open files and folders together.

    Args:
        paths: files, or folders of which every recognised file is taken
        options: how to read what the files leave open
        strict: raise for a file that cannot be read, instead of keeping the others
        cancel: checked between files
        progress: called with the file at hand and the share done, 0 to 1

    Raises: FormatError, OSError in strict mode or if nothing at all could be read; LoadCancelled
    """
    names = expand(paths)
    if not names:
        where = ", ".join(map(str, paths))
        raise FormatError(ANY_FILE, _found_below(paths), file=where)
    files: list[LoadedFile] = []
    errors: dict[str, FormatError | OSError] = {}
    for index, path in enumerate(names):
        if cancel is not None and cancel.is_set():
            raise LoadCancelled
        if progress is not None:
            progress(path, index / len(names))
        try:
            files.append(load_file(path))
        except (FormatError, OSError) as error:
            errors[path] = error
            nothing = memoryview(b"")
            files.append(LoadedFile(path, "unknown", _size(path), nothing, None, str(error)))
    if all(file.kind in (NODE_DATA, "unknown") for file in files):
        for at, file in enumerate(files):
            if file.kind == NODE_DATA:  # of which nodes, no other file shows
                errors[file.path] = error = formats.unrecognised(file.data, file.path)
                files[at] = replace(file, kind="unknown", artifact=None, error=str(error))
    files = _debug_buffers(files)
    failed = _failed(files)
    if failed and (strict or len(failed) == len(files)):
        raise errors[failed[0].path]
    issues = (
        *(Issue(Severity.ERROR, file.path, file.error) for file in failed),
        *_unused_folders(paths),
    )
    options = with_known_unit(files, options or SessionOptions())
    return named_after_device(Session(session_name(names), tuple(files), options, issues))


def _unused_folders(paths: Iterable[str | os.PathLike[str]]) -> list[Issue]:
    """Return an issue for each folder without a file that can be opened."""
    folders = [one for one in map(Path, paths) if one.is_dir() and not expand([one])]
    return [Issue(Severity.WARNING, str(one), _why_unused(one)) for one in folders]


def _why_unused(folder: Path) -> str:
    if (folder / GENERATION).is_file():
        return f"No ExecuTorch file is in this folder; Open calls… in Calls opens its {GENERATION}"
    if (folder / REPORT).is_file():
        return f"The run in this folder has no trace: nothing of its {REPORT} is shown"
    return f"ExecuTorch files in this folder: {_found_below([folder])}"


def _found_below(paths: Iterable[str | os.PathLike[str]]) -> str:
    """Return "none", and a lone debug buffer or the folders of a folder that have files to open."""
    alone = (one for path in paths for one in sorted(Path(path).iterdir()) if one.is_file())
    if buffer := next(filter(_may_be_buffer, islice(alone, _MOST_FOLDERS)), None):
        return f"none beside {buffer.name}, whose values need the ETDump that names them"
    inner = (Path(one.path) for path in paths for one in os.scandir(path) if one.is_dir())
    found = [f"'{one}'" for one in sorted(islice(inner, _MOST_FOLDERS)) if _has_files(one)]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f"none, but some in {', '.join(found[:_NAMED])}{more}" if found else "none"


def _may_be_buffer(path: Path) -> bool:
    return path.suffix == BUFFER_SUFFIX or sniff_file(path) == formats.DEBUG_BUFFER


def _has_files(folder: Path) -> bool:
    try:
        return bool(siblings(folder))
    except OSError:  # one that may not be read
        return False


def _failed(files: Iterable[LoadedFile]) -> list[LoadedFile]:
    return [file for file in files if file.error]


def expand(paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return the files meant by these paths: a folder stands for its recognised files.

    Where none of them is a trace, the newest run that lies in a folder of one program is included;
    of a run that lies there, the folder around it.
    """
    names: list[str] = []
    runs: list[str] = []
    for path in paths:
        if not Path(path).is_dir() or is_vendor_model(path):
            names.append(os.fspath(path))
            continue
        found = siblings(Path(path))
        names += found
        runs += _newest_run(Path(path), found)
    if runs and not any(_is_trace(name) for name in names):
        names += runs
    if len(paths) == 1 and Path(paths[0]).is_dir():
        names = _around_run(Path(paths[0]), names) + names
    return list(dict.fromkeys(names))


def _newest_run(folder: Path, names: Sequence[str]) -> list[str]:
    """Return the files of the last run that `etscope run` or the window wrote into a folder."""
    runs = _runs(folder, names)
    return siblings(max(runs, key=lambda one: (one.written, one.path)).path) if runs else []


def _runs(folder: Path, names: Sequence[str]) -> tuple[WrittenFolder, ...]:
    """Return the runs of the one program of a folder with these files."""
    programs = [name for name in names if sniff_file(Path(name)) in ("pte", "bpte")]
    if len(programs) > 1 or not names:
        return ()
    return runs_below(folder, Path((programs or names)[0]).stem)


def _around_run(folder: Path, names: Sequence[str]) -> list[str]:
    """Return the files of the program in whose folder a run lies."""
    if any(sniff_file(Path(name)) in PROGRAMS for name in names):
        return []
    home = Path(os.path.abspath(folder))
    try:
        found = siblings(home.parent)
    except OSError:  # one that may not be read
        return []
    is_run = any(run.path == home for run in _runs(home.parent, found))
    return found if is_run and not any(_is_trace(name) for name in found) else []


def _is_trace(name: str) -> bool:
    return _is_named_trace(name) or sniff_file(Path(name)) == "etdump"


def siblings(folder: Path) -> list[str]:
    """Return the files of a folder that are or may be ExecuTorch files, programs first.

    Exported programs (.pt2), from which programs are compiled, are those of a folder of nothing
    else.
    """
    found: list[tuple[int, str]] = []
    exported: list[str] = []
    unknown: list[str] = []
    empty: list[str] = []
    kinds = [entry.kind for entry in formats.FORMATS]
    for path in sorted(folder.iterdir()):
        if not path.is_file() and not is_vendor_model(path):
            continue
        if _is_named_trace(path) and not _size(str(path)):
            empty.append(str(path))
        kind = sniff_file(path)
        if kind in kinds:
            found.append((kinds.index(kind), str(path)))
        elif kind == EXPORTED:
            exported.append(str(path))
        elif kind == formats.DEBUG_BUFFER or (not kind and (_is_buffer(path) or _is_blank(path))):
            unknown.append(str(path))
    dumps = [name for kind, name in found if kind == kinds.index("etdump")]
    if len(dumps) == 1 and not unknown:
        unknown += _filled_buffers(dumps[0], folder)
    return [name for _, name in sorted(found)] + (unknown if dumps else []) + empty or exported


def _filled_buffers(dump: str, folder: Path) -> list[str]:
    """Return the one file of a folder that ends where the last logged tensor of its trace does.

    A buffer that is exactly filled has no zeros at its end to be known by.
    """
    try:
        _, ends = tensor_extents(etdump.decode(open_bytes(dump), file=dump))
    except (OSError, FormatError):
        return []
    last = int(ends.max()) if len(ends) else 0
    if not last:
        return []
    fits = [
        str(path)
        for path in sorted(folder.iterdir())
        if path.is_file() and last <= _size(str(path)) < last + _ALIGNMENT and not sniff_file(path)
    ]
    return fits if len(fits) == 1 else []


def _is_buffer(path: Path) -> bool:
    """Return whether a file is the debug buffer of a trace beside it by its name, cut short too."""
    return path.name in _BUFFERS and path.with_name(_BUFFERS[path.name]).is_file()


def _is_blank(path: Path) -> bool:
    """Return whether a file is all zeros, as a debug buffer without its tensors is."""
    try:
        data = open_bytes(str(path))
    except (OSError, FormatError):
        return False
    step = 1 << 20
    return not any(any(data[at : at + step]) for at in range(0, len(data), step))


def sniff_file(path: Path) -> str:
    """Return the kind of a file by its content; empty when nothing matches or it is unreadable."""
    if is_vendor_model(path):
        return _PROGRAM
    try:
        data = open_bytes(str(path))
    except (OSError, FormatError):
        return ""
    entry = formats.recognise(data)
    if entry is not None:
        return entry.kind
    return formats.DEBUG_BUFFER if formats.looks_like_debug_buffer(data) else ""


def stem_of(path: str) -> str:
    """Return what the names of files of one program have in common, up to the first dot."""
    return Path(path).name.split(".")[0]


def pair(path: str) -> tuple[str, ...]:
    """Return the file and related files next to it, of the same run or model.

    A folder with one program is a session; in a folder with several, files of one stem belong, as
    do those of a file of no known kind. Another trace is of another run, unless it is the
    one with the values of this run. An exported program belongs to none.
    """
    chosen = Path(path)
    kind = sniff_file(chosen)
    others = [one for one in siblings(chosen.parent) if sniff_file(Path(one)) != EXPORTED]
    if not kind and _size(path) and not _is_blank(chosen):
        others = [one for one in others if stem_of(one) == stem_of(path)]
    if kind == "etdump":
        dumps = {name for name in others if sniff_file(Path(name)) == "etdump"}
        others = [one for one in others if one not in dumps or _one_run(chosen, Path(one))]
    programs = [name for name in others if sniff_file(Path(name)) == "pte"]
    if len(programs) <= 1:
        return (path, *(name for name in others if Path(name) != chosen))
    same = [name for name in others if stem_of(name) == stem_of(path)]
    return (path, *(name for name in same if Path(name) != chosen))


def _one_run(one: Path, other: Path) -> bool:
    return {one.name, other.name} <= set(_BUFFERS.values())


def open_bytes(path: str) -> memoryview:
    """Return the bytes of a file, mapped when it is large.

    Raises: OSError; FormatError for an empty file and one that is not regular: opening a pipe
        would wait for its writer
    """
    if is_vendor_model(path):
        return vendor_program(path)
    if not stat.S_ISREG(Path(path).stat().st_mode) and not Path(path).is_dir():
        raise FormatError("an ExecuTorch file", "a pipe or device", file=path)
    with Path(path).open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size == 0:
            raise _empty(path)
        if size < MAP_FROM_BYTES:
            return memoryview(stream.read())
        return map_file(stream, path)


def _empty(path: str) -> FormatError:
    if not _is_named_trace(path):
        return FormatError("an ExecuTorch file", "an empty file", file=path, offset=0)
    found = (
        "an empty file; the runner writes one when event tracing was off. Build it with"
        " EXECUTORCH_BUILD_DEVTOOLS=ON and EXECUTORCH_ENABLE_EVENT_TRACER=ON, and write the"
        " ETDump after the run"
    )
    return FormatError("an ETDump", found, file=path, offset=0)


def _is_named_trace(path: str | os.PathLike[str]) -> bool:
    return Path(path).suffix in _TRACES


def logged_nothing(path: str) -> bool:
    """Return whether a file is the debug buffer of a run that logged no values.

    Other runtimes leave an empty file, `etscope run` writes none.
    """
    file = Path(path)
    if file.suffix != BUFFER_SUFFIX:
        return False
    if not file.exists():
        return _is_buffer(file)
    return file.is_file() and not file.stat().st_size


def load_file(path: str) -> LoadedFile:
    """Open one file by its content.

    Raises: FormatError if no format matches or it cannot be read; OSError
    """
    if logged_nothing(path):
        nothing = memoryview(b"")
        return LoadedFile(path, formats.DEBUG_BUFFER, 0, nothing, DebugBuffer(nothing, path))
    data = open_bytes(path)
    entry = formats.recognise(data)
    if entry is None:
        if formats.looks_like_debug_buffer(data):
            artifact = DebugBuffer(data, path)
            return LoadedFile(path, formats.DEBUG_BUFFER, len(data), data, artifact)
        return _node_data(path, data)
    artifact = entry.decode(data, file=path)
    rest(data)
    size = len(data)
    if isinstance(artifact, etdump.ETDump) and etdump.is_json(bytes(data[: formats.HEAD_BYTES])):
        data = memoryview(etdump.encode(artifact))  # what bytes are looked at in
    return LoadedFile(path, entry.kind, size, data, artifact)


def _node_data(path: str, data: memoryview) -> LoadedFile:
    """Open a file with values of nodes.

    Raises: FormatError for other content
    """
    named = path.lower().endswith(_VALUES) and len(data) <= LARGEST
    if not named and not could_be_node_data(data):
        raise formats.unrecognised(data, path)
    try:
        return LoadedFile(path, NODE_DATA, len(data), data, decode_node_data(data, path))
    except FormatError as error:
        other = formats.unrecognised(data, path)
        if named and len(data):
            other.found += f"; read as values of nodes: {error.found}"
        raise other from error


def _debug_buffers(files: list[LoadedFile]) -> list[LoadedFile]:
    """Treat one unrecognised file next to an ETDump as its debug buffer."""
    kinds = [file.kind for file in files]
    if "etdump" not in kinds or formats.DEBUG_BUFFER in kinds or kinds.count("unknown") != 1:
        return files
    index = kinds.index("unknown")
    try:
        data = open_bytes(files[index].path)
    except (OSError, FormatError):
        return files
    if formats.recognise(data) is not None or bytes(data[:4]) in _ARCHIVES:
        return files
    artifact = DebugBuffer(data, files[index].path)
    name = formats.DEBUG_BUFFER
    files[index] = LoadedFile(files[index].path, name, len(data), data, artifact)
    return files


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def session_name(paths: Sequence[str]) -> str:
    """Return a short name: the folder of a standard file name, else the file's stem."""
    first = Path(paths[0])
    if first.stem in ("model", "run", "values") and first.resolve().parent.name:
        folder = first.resolve().parent
        return _point_name(folder) or folder.name
    return first.stem


def _point_name(folder: Path) -> str:
    """Return the label of a sweep point instead of its folder name; empty for other folders."""
    if folder.parent.name != POINTS:
        return ""
    try:
        with open(folder / POINT, encoding="utf-8") as stream:
            number = int(json.loads(stream.read(_POINT_BYTES))["number"])
    except (OSError, ArithmeticError, ValueError, KeyError, TypeError, RecursionError):
        return ""
    return f"{folder.parent.parent.name} point {number}"
