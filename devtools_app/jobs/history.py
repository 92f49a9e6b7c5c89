"""The jobs of this window and of others: recorded as they run, kept in a folder."""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer, Signal

from devtools_app.jobs.follower import JobFollower, JobProgress
from devtools_app.jobs.latest import Latest

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.jobs.history import EntryReader, JobEntry, LoggedLine
    from inspector.jobs.messages import Message, Outcome

_LOG = logging.getLogger(__name__)
_DROPPED = "ended by a newer job of its kind, or with the window"
_HIDDEN = ("preview", "suggest")  # they follow every edit
_SETTLE_MS = 250  # a window that begins a job may begin several
_KEEP_MS = 3000  # what was logged before is there after a crash of the window


class JobHistory(QObject):
    """Records jobs; with a folder, those of other windows are known as well, once read.

    Signals:
        changed(): a job began, logged something or ended; or those of other windows were read
        logged(entry, lines): lines for the log of a job
        cleaned(): files of jobs were deleted
        began(entry): a job that the user started in this window
        ended(entry): a job of this window

    Attributes:
        folder: with a file for each job; None keeps them in memory only
    """

    changed = Signal()
    logged = Signal(object, object)
    cleaned = Signal()
    began = Signal(object)
    ended = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.folder: Path | None = None
        self._entries: dict[str, JobEntry] = {}
        self._lines: dict[str, deque[LoggedLine]] = {}
        self._followed: dict[int, str] = {}  # by the job: a follower may begin the next at once
        self._cancels: dict[str, Callable[[], object]] = {}
        self._started = 0
        self._reader: EntryReader | None = None
        self._reading = Latest("history of jobs", self)
        self._reading.ready.connect(self._merge)
        self._watcher = QFileSystemWatcher(self)
        self._soon = QTimer(self, singleShot=True, interval=_SETTLE_MS)
        self._watcher.directoryChanged.connect(lambda _folder: self._soon.start())
        self._soon.timeout.connect(self._read_again)
        self._keep = QTimer(self, singleShot=True, interval=_KEEP_MS)
        self._keep.timeout.connect(self._keep_logs)

    @property
    def entries(self) -> tuple[JobEntry, ...]:
        """Return the jobs, newest first; the logs of running ones are in ``log_of``."""
        found = sorted(self._entries.items(), reverse=True)
        return tuple(entry for _, entry in found)

    def find(self, key: str) -> JobEntry | None:
        """Return a job by its id, with its log so far; None if unknown."""
        found = self._entries.get(key)
        return None if found is None else replace(found, log=self.log_of(key))

    def log_of(self, key: str) -> tuple[LoggedLine, ...]:
        """Return the log of a job so far."""
        if key in self._lines:
            return tuple(self._lines[key])
        found = self._entries.get(key)
        return found.log if found is not None else ()

    @property
    def running(self) -> int:
        """Return how many jobs of this window run."""
        return sum(self._entries[key].ended is None for key in self._lines)

    def may_cancel(self, key: str) -> bool:
        """Return whether a job runs in this window."""
        return key in self._cancels

    def cancel(self, key: str) -> None:
        """Cancel a job that runs in this window."""
        if key in self._cancels:
            self._cancels[key]()

    def read(self) -> None:
        """Read the jobs of other windows in a thread, from now on whenever they change."""
        if self._reader is not None or self.folder is None:
            return
        from inspector.jobs.history import EntryReader

        self._reader = EntryReader(self.folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)  # what is not there cannot be watched
        except OSError as error:
            _LOG.warning("the jobs of other windows are not followed: %s", error)
        else:
            self._watcher.addPath(str(self.folder))
        self._read_again()

    def _read_again(self) -> None:
        if (reader := self._reader) is not None:
            self._reading.submit(lambda _token: reader.read())

    def close(self) -> None:
        """Stop reading."""
        self._soon.stop()
        self._keep.stop()
        self._reader = None
        self._reading.close()

    # ---- one job
    def begin(
        self,
        kind: str,
        subject: str,
        request: object,
        target: str = "",
        cancel: Callable[[], object] | None = None,
        *,
        asked: bool = True,
    ) -> str:
        """Record the start of a job; return its id.

        Args:
            kind: name in the table of jobs, or that of sweeps
            subject: its subject, in a few words
            request: dataclass or JSON
            target: folder or file it writes
            cancel: ends it
            asked: whether the user started it, who then waits for its end
        """
        from inspector.jobs.history import KEPT_LINES, JobEntry, new_id, request_content

        now = time.time()
        self._started += 1
        place = os.path.abspath(target) if target else ""
        key = new_id(now, self._started)
        entry = JobEntry(key, kind, subject, now, os.getpid(), place, request_content(request))
        self._entries[key] = entry
        self._lines[key] = deque(maxlen=KEPT_LINES)
        if cancel is not None:
            self._cancels[key] = cancel
        self._write(entry)
        self.note(key, [(logging.INFO, "started", "")])
        if asked:
            self.began.emit(entry)
        return key

    def note(self, key: str, lines: Iterable[tuple[int, str, str]]) -> None:
        """Add lines to the log of a job: level, text and origin of each."""
        from inspector.jobs.history import LoggedLine

        now = time.time()
        self._add(key, [LoggedLine(now, *line) for line in lines])

    def end(self, key: str, outcome: Outcome) -> None:
        """Record the end of a job."""
        from inspector.jobs.history import end_line

        now, entry = time.time(), self._entries[key]
        if entry.ended is not None:
            return
        entry = replace(
            entry,
            seconds=now - entry.started,
            ended=outcome.ended,
            sentence=outcome.sentence,
            file=outcome.file,
            line=outcome.line,
            details=outcome.details,
        )
        self._entries[key] = entry
        self._cancels.pop(key, None)
        self._add(key, [end_line(entry, now)])
        self._entries[key] = entry = replace(entry, log=tuple(self._lines[key]))
        self._write(entry)
        self.ended.emit(entry)

    # ---- jobs that are followed
    def watch(self, follower: JobFollower, *, asked: bool = True) -> None:
        """Record the jobs of a follower, those of the user or of a view on its own."""
        follower.began.connect(lambda progress: self._began(follower, progress, asked=asked))
        follower.received.connect(lambda messages: self._received(follower.current, messages))
        follower.ended.connect(lambda progress: self._ended(progress, progress.outcome))
        follower.dropped.connect(self._dropped)

    def _began(self, follower: JobFollower, progress: JobProgress, *, asked: bool) -> None:
        from inspector.jobs.history import subject_of
        from inspector.jobs.table import kind_of

        job = progress.job
        kind = kind_of(job).name
        if kind not in _HIDDEN:
            subject = subject_of(job)
            key = self.begin(kind, subject, job, progress.target, follower.cancel, asked=asked)
            self._followed[id(job)] = key

    def _received(self, progress: JobProgress | None, messages: Iterable[Message]) -> None:
        from inspector.jobs.history import line_of

        key = self._followed.get(id(progress.job)) if progress is not None else None
        if key is not None:
            now = time.time()
            found = (line_of(message, now) for message in messages)
            self._add(key, [line for line in found if line is not None])

    def _ended(self, progress: JobProgress, outcome: Outcome) -> None:
        key = self._followed.pop(id(progress.job), None)
        if key is not None:
            self.end(key, outcome)

    def _dropped(self, progress: JobProgress) -> None:
        from inspector.jobs.messages import Ended, Outcome

        self._ended(progress, Outcome(Ended.CANCELLED, _DROPPED))

    # ---- keeping
    def _add(self, key: str, lines: list[LoggedLine]) -> None:
        if lines:
            self._lines[key].extend(lines)
            self.logged.emit(self._entries[key], lines)
            if not self._keep.isActive():
                self._keep.start()
        self.changed.emit()

    def _keep_logs(self) -> None:
        """Write what running jobs have logged so far."""
        for key, lines in self._lines.items():
            entry = self._entries[key]
            if entry.ended is None and len(entry.log) < len(lines):
                self._entries[key] = entry = replace(entry, log=tuple(lines))
                self._write(entry)

    def _write(self, entry: JobEntry) -> None:
        from inspector.jobs.history import write_entry

        if self.folder is None:
            return
        try:
            write_entry(self.folder, entry)
        except OSError as error:
            _LOG.warning("the history of jobs is not kept: %s", error)
            self.folder = None  # one sentence is enough

    def _merge(self, found: Iterable[JobEntry]) -> None:
        own = {key: one for key, one in self._entries.items() if key in self._lines}
        entries = {**{one.id: one for one in found}, **own}
        if entries != self._entries:
            self._entries = entries
            self.changed.emit()
