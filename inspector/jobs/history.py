"""The history of jobs: what was started, how it ended and what it logged; one file for each."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import psutil

from inspector.files.user_folder import user_folder
from inspector.jobs.messages import (
    Ended,
    Log,
    Message,
    Outcome,
    StageProgress,
    Tried,
    Warned,
)
from inspector.units import format_elapsed
from schema.errors import FormatError
from schema.objects.atomic_file import write_atomically
from schema.objects.codec import read_versioned, to_json
from schema.objects.plural import plural
from schema.version import __version__

_LOG = logging.getLogger(__name__)
FOLDER = "jobs"  # beside the preferences
RUNNING, INTERRUPTED = "running", "interrupted"
KEPT_JOBS, KEPT_LINES = 200, 400
SWEEP = "sweep"  # of several programs, by workers of the kinds of the table of jobs
_FORMAT = 1
_NAMES = "[0-9]*-[0-9]*-*.json"  # other files in the folder are not ours
_LONGEST = 4_000  # characters of a line: a graph in an exception has many
_LARGEST = 8 << 20  # bytes of a file, more than any of ours has
_SETTINGS = "ETSCOPE_SETTINGS"
_CLOCK = 2.0  # seconds by which the times of processes are off


@dataclass(frozen=True, slots=True)
class LoggedLine:
    """A line of the log of a job.

    Attributes:
        at: when, in seconds since the epoch
        level: of Python's logging
        text: the message
        origin: a stage, a logger, or empty for what the code of the user printed
    """

    at: float
    level: int
    text: str
    origin: str = ""


@dataclass(frozen=True, slots=True)
class JobEntry:
    """A job that was started.

    Attributes:
        id: unique, in the order of the starts
        kind: name in the table of jobs, or ``SWEEP``
        subject: its subject, in a few words
        started: in seconds since the epoch
        process: id of the process that started it
        target: absolute path of the folder or file it writes, empty for none
        request: the job as JSON
        seconds: duration, None while it runs
        ended: how, None while it runs
        sentence: why it failed, else empty
        file: of the user, that the failure names
        line: its line, 0 if unknown
        details: such as a traceback
        log: newest lines
        etscope: version that started it
    """

    id: str
    kind: str
    subject: str
    started: float
    process: int = 0
    target: str = ""
    request: Mapping[str, Any] = field(default_factory=dict[str, Any])
    seconds: float | None = None
    ended: Ended | None = None
    sentence: str = ""
    file: str = ""
    line: int = 0
    details: str = ""
    log: tuple[LoggedLine, ...] = ()
    etscope: str = __version__

    @property
    def state(self) -> str:
        """Return how it ended, or whether it still runs."""
        if self.ended is not None:
            return self.ended.value
        return RUNNING if _ran_at(self.process, self.started) else INTERRUPTED

    @property
    def outcome(self) -> Outcome | None:
        """Return how it ended as a running job reports it, None while it runs."""
        if self.ended is None:
            return None
        place = self.file, self.line
        return Outcome(self.ended, self.sentence, "failed", *place, self.details)


def _ran_at(process: int, moment: float) -> bool:
    """Return whether a process runs that did so at a moment: a later one may have its number."""
    try:
        return psutil.Process(process).create_time() < moment + _CLOCK
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:  # of another user
        return True


def history_folder() -> Path:
    """Return where the window keeps the history: beside its preferences."""
    named = os.environ.get(_SETTINGS)
    return Path(named).with_name(FOLDER) if named else user_folder() / FOLDER


def new_id(started: float, number: int) -> str:
    """Return the id of a job: those of later starts sort behind it.

    Args:
        started: in seconds since the epoch
        number: of the jobs that this process started
    """
    moment = time.strftime("%Y%m%d-%H%M%S", time.gmtime(started))
    return f"{moment}-{number:04}-{os.getpid()}"


def subject_of(request: object) -> str:
    """Return the subject of a job: the last parts of the paths of its programs or source."""
    source = getattr(request, "compile", request)
    own = getattr(source, "source", None) or getattr(source, "program", None)
    if own is None:
        several = getattr(request, "variants", ()) or getattr(request, "programs", ())
        found = [one.program for one in several] or list(getattr(request, "files", ())[:1])
        return " | ".join(map(_short, found))
    return _short(str(own))


def _short(path: str) -> str:
    return str(Path(*Path(path).parts[-2:])) if path else ""


def line_of(message: Message, at: float) -> LoggedLine | None:
    """Return the line of the log for a message, None for one that is only progress."""
    if isinstance(message, Log):
        return LoggedLine(at, message.level, message.text[:_LONGEST], message.logger)
    if isinstance(message, Warned):
        place = f"{message.file}:{message.line}: " if message.file else ""
        return LoggedLine(at, logging.WARNING, f"{place}{message.text}"[:_LONGEST], "warning")
    if isinstance(message, StageProgress) and message.seconds is not None:
        of = f" of {message.method}" if message.method else ""
        nodes = "" if message.nodes is None else f", {plural(message.nodes, 'node')}"
        text = f"{message.stage}{of}: {format_elapsed(message.seconds, 2)}{nodes}"
        return LoggedLine(at, logging.INFO, text, "stage")
    if isinstance(message, Tried):
        word = "holds" if message.trial.holds else "does not hold"
        took = format_elapsed(message.trial.seconds, 1)
        text = f"{plural(message.trial.count, 'node')} out: {word} ({took})"
        return LoggedLine(at, logging.INFO, text, "trial")
    return None


def end_line(entry: JobEntry, at: float) -> LoggedLine:
    """Return the last line of the log of a job."""
    words = f"{entry.state} after {format_elapsed(entry.seconds or 0.0, 1)}"
    if entry.ended is Ended.FINISHED:
        where = f": {entry.target}" if entry.target else ""
        return LoggedLine(at, logging.INFO, f"{words}{where}")
    level = logging.WARNING if entry.ended is Ended.CANCELLED else logging.ERROR
    why = f": {entry.sentence}" if entry.sentence else ""
    return LoggedLine(at, level, f"{words}{why}"[:_LONGEST])


@dataclass(frozen=True, slots=True)
class _EntryFile:
    """An entry as stored in its file."""

    etscope_job: int
    entry: JobEntry


def write_entry(folder: Path, entry: JobEntry) -> None:
    """Write an entry, and remove the oldest ones beyond the limit.

    Raises: OSError
    """
    folder.mkdir(parents=True, exist_ok=True)
    content = to_json(_EntryFile(_FORMAT, entry))
    data = json.dumps(content, ensure_ascii=False, indent=1).encode("utf-8", "replace")
    write_atomically(folder / f"{entry.id}.json", lambda stream: stream.write(data))
    for old in sorted(folder.glob(_NAMES))[:-KEPT_JOBS]:
        old.unlink(missing_ok=True)


class EntryReader:
    """Reads the entries in a folder, again only those whose files have changed since."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[Path, tuple[tuple[int, ...], JobEntry | None]] = {}

    def read(self) -> tuple[JobEntry, ...]:
        """Return the entries, newest first; damaged files are left out and logged once."""
        known, self._known = self._known, {}
        for path in sorted(self._folder.glob(_NAMES), reverse=True):
            try:
                found = path.stat()
            except OSError:  # removed by another window meanwhile
                continue
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            before = known.get(path)
            if before is None or before[0] != stamp:
                before = stamp, _read_entry(path)
            self._known[path] = before
        return tuple(entry for _, entry in self._known.values() if entry is not None)


def _read_entry(path: Path) -> JobEntry | None:
    try:
        file = read_versioned(path, _EntryFile, "a job", ("etscope_job", _FORMAT), _LARGEST)
    except (FormatError, OSError, RecursionError) as error:
        _LOG.warning("a job of the history is not shown: %s", error)
        return None
    return file.entry


def read_entries(folder: Path) -> tuple[JobEntry, ...]:
    """Return the entries in a folder, newest first; damaged files are left out and logged."""
    return EntryReader(folder).read()


def about(entries: Iterable[JobEntry], places: Iterable[Path]) -> tuple[JobEntry, ...]:
    """Return the jobs that read or wrote one of some files, or something in one of some folders."""
    wanted = [os.path.abspath(place) for place in places]
    return tuple(one for one in entries if any(_touches(one, place) for place in wanted))


def reading(entries: Iterable[JobEntry], files: Collection[str]) -> tuple[JobEntry, ...]:
    """Return the jobs whose requests name one of some files, by their absolute paths."""
    return tuple(one for one in entries if any(path in files for path in _strings(one.request)))


def _touches(entry: JobEntry, place: str) -> bool:
    if entry.target and place.startswith(entry.target + os.sep):  # it wrote the file
        return True
    found = (path for path in (entry.target, *_strings(entry.request)) if os.path.isabs(path))
    return any(path == place or path.startswith(place + os.sep) for path in found)


def _strings(content: object) -> Iterable[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, Mapping):
        for value in cast("Mapping[str, object]", content).values():
            yield from _strings(value)
    elif isinstance(content, (list, tuple)):
        for value in cast("Sequence[object]", content):
            yield from _strings(value)


def request_content(request: object) -> dict[str, Any]:
    """Return a job as stored in its file."""
    return json.loads(json.dumps(to_json(request)))


def request_of(entry: JobEntry) -> Any:  # noqa: ANN401 - each kind has its own
    """Return the job that was requested.

    Raises: ContentError if another version wrote it, KeyError for an unknown kind
    """
    from inspector.jobs.table import kind_named

    return kind_named(entry.kind).read(dict(entry.request))
