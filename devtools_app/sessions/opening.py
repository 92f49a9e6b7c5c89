"""Opens, reloads and watches files: off the GUI thread, cancellable, the newest request wins."""

from __future__ import annotations

import importlib
import logging
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QObject, Signal

from devtools_app.jobs.latest import Cancelled, Latest, Token
from devtools_app.sessions.open_kind import hold_values
from schema.errors import FormatError

if TYPE_CHECKING:
    from inspector.files.session import Session, SessionOptions

_LOG = logging.getLogger(__name__)
_SHOWING = (  # what the window itself needs for a session; imported here, not in the GUI thread
    "devtools_app.state.leftover_variants",
    "devtools_app.viewmodels.data_colours",
    "devtools_app.viewmodels.kept_selection",
    "devtools_app.viewmodels.status",
    "inspector.files.language_model",
    "inspector.files.node_data",
    "inspector.jobs.executing",
    "inspector.recipes.recipe_file",
    "inspector.recipes.session_recipe",
    "inspector.tables.glossary",
)


class Load(Protocol):
    """The function that opens files: ``inspector.files.load.load_session``, or a test double."""

    def __call__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        options: SessionOptions | None = None,
        *,
        cancel: threading.Event | None = None,
        progress: Callable[[str, float], None] | None = None,
    ) -> Session:
        """Return the session of some files."""
        ...


@dataclass(frozen=True, slots=True)
class OpenTarget:
    """One session to be read.

    Attributes:
        paths: to open together
        replaces: id of the session that it replaces, empty for a new one
        pair: also open related files next to a single file
        label: id of the session in a workspace, else empty
        partial: whether unreadable files may be dropped
        keep_view: whether the view in front stays there
        behind: whether the session in front stays there
        several: whether the files may be those of more than one session
        if_values: what is read instead if all files hold values of nodes, else None
    """

    paths: tuple[str, ...]
    replaces: str = ""
    pair: bool = False
    label: str = ""
    partial: bool = False
    keep_view: bool = False
    behind: bool = False
    several: bool = False
    if_values: OpenTarget | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """Result of opening a target.

    Attributes:
        target: the request
        paths: opened files, siblings included
        session: None if no file could be read
        error: one sentence, empty on success
        empty: whether there was no file to read
    """

    target: OpenTarget
    paths: tuple[str, ...]
    session: Session | None
    error: str = ""
    empty: bool = False


def load_later(
    paths: Sequence[str | os.PathLike[str]],
    options: SessionOptions | None = None,
    *,
    cancel: threading.Event | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Session:
    """Open files with the readers, which are imported when they are first needed."""
    from inspector.files.load import load_session
    from inspector.profile.methods import first_method

    for name in _SHOWING:
        importlib.import_module(name)
    session = load_session(paths, options, cancel=cancel, progress=progress)
    first_method(session)  # which methods ran is known then to the thread that shows it
    return session


class Opener(QObject):
    """Reads sessions in a thread.

    Signals:
        loaded(results): tuple of Loaded, in the order of requests
        progressed(what, share): current file and progress, 0 to 1
        started(what): a request was accepted
        ended(): no request is running any longer
    """

    loaded = Signal(object)
    progressed = Signal(str, float)
    started = Signal(str)
    ended = Signal()

    def __init__(self, load: Load = load_later, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._load = load
        self._requested = ""
        self._latest = Latest("opening files", self)
        self._latest.ready.connect(self.loaded)
        self._latest.failed.connect(self._failed)
        self._latest.ended.connect(self.ended)

    @property
    def busy(self) -> bool:
        """Return whether files are being read."""
        return self._latest.busy

    def open(self, targets: tuple[OpenTarget, ...], options: Callable[[], SessionOptions]) -> None:
        """Read some sessions, cancelling a running read.

        Args:
            targets: the sessions
            options: returns how they are read; called in the thread, as it imports the readers
        """
        if not targets:
            return
        if self._latest.busy:
            _LOG.info("%s was cancelled for a newer request", self._requested)
        self._requested = _describe(targets)
        self.started.emit(self._requested)
        self._latest.submit(lambda token: self._run(targets, options, token))

    def cancel(self) -> None:
        """Cancel reading."""
        if self._latest.busy:
            _LOG.info("%s was cancelled", self._requested)
        self._latest.cancel()

    def shut_down(self) -> None:
        """Stop permanently."""
        self._latest.close()

    def _run(
        self, targets: tuple[OpenTarget, ...], options: Callable[[], SessionOptions], token: Token
    ) -> tuple[Loaded, ...]:
        read = options()
        sessions = (one for target in targets for one in _sessions_of(target, token))
        return tuple(self._one(one, read, token) for one in sessions)

    def _one(self, target: OpenTarget, options: SessionOptions, token: Token) -> Loaded:
        from inspector.files.load import ANY_FILE, LoadCancelled, pair

        token.check()
        paths = target.paths
        try:
            if target.pair and len(paths) == 1 and os.path.isfile(paths[0]):
                paths = pair(paths[0])
            session = self._load(
                paths, options, cancel=token, progress=lambda what, share: self._report(what, share)
            )
        except LoadCancelled as stopped:
            raise Cancelled from stopped
        except FormatError as error:
            return Loaded(target, paths, None, str(error), error.expected == ANY_FILE)
        except OSError as error:
            return Loaded(target, paths, None, _os_sentence(error))
        return Loaded(target, paths, session)

    def _report(self, what: str, share: float) -> None:
        self.progressed.emit(f"reading {Path(what).name}", share)

    def _failed(self, error: BaseException) -> None:
        _LOG.error("%s failed", self._requested, exc_info=error)
        target = OpenTarget(())
        sentence = f"{self._requested} failed: {error} (this is a bug; the log has more)"
        self.loaded.emit((Loaded(target, (), None, sentence),))


def _sessions_of(target: OpenTarget, token: Token) -> tuple[OpenTarget, ...]:
    """Return a target for each session of its files."""
    beside = target.if_values
    if beside is not None and hold_values(target.paths, token.check):
        return (beside,)
    if not target.several:
        return (target,)
    from inspector.files.session_groups import split_sessions

    return tuple(replace(target, paths=paths) for paths in split_sessions(target.paths))


def _describe(targets: tuple[OpenTarget, ...]) -> str:
    verb = "reloading" if all(target.replaces for target in targets) else "opening"
    names = [Path(path).name or path for target in targets for path in target.paths]
    shown = ", ".join(names[:3])
    return f"{verb} {shown}" + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _os_sentence(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason
