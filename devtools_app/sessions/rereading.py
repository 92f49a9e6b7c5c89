"""A session whose files are reloaded, keeping the shown state.

A file may be missing, incomplete or damaged when it is read again. Then the previous session is
kept, with an issue, until the files can be read or the user drops them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from schema.errors import Issue, Severity

if TYPE_CHECKING:
    from devtools_app.sessions.opening import Loaded
    from devtools_app.state.state import OpenSession
    from inspector.files.session import LoadedFile, Session

_KEPT = "what is shown was read before"
_TORN = "parts not read before are unknown"


class Patience:
    """Waits for files that are half written: they are read again before anything is reported."""

    _WAITS = (700, 1500, 3000)  # ms

    def __init__(self) -> None:
        self._tries: dict[str, int] = {}

    def begin(self, ids: Iterable[str]) -> None:
        """Start over: files of these sessions have changed by themselves."""
        self._tries.update(dict.fromkeys(ids, 0))

    def done(self, session: str) -> None:
        """Forget a session whose files were read."""
        self._tries.pop(session, None)

    def next_wait(self, session: str) -> int:
        """Return the ms until files that could not be read are tried again, 0 for no more."""
        tried = self._tries.get(session, len(self._WAITS))
        self._tries[session] = tried + 1
        return self._WAITS[tried] if tried < len(self._WAITS) else 0


def lost_files(one: OpenSession, result: Loaded) -> tuple[Issue, ...]:
    """Return an issue for each file that could be read before and now cannot, or only partly.

    Files that were not requested again are not
    lost.
    """
    from inspector.files.mapped import is_rewritten

    asked = set(result.target.paths)
    every = asked.issuperset(one.paths)
    now = {} if result.session is None else {file.path: file for file in result.session.files}
    found: list[Issue] = []
    for before in one.session.files:
        if before.error or not (every or before.path in asked):
            continue
        reason = _loss(before, now.get(before.path), result.error)
        if reason:
            state = _TORN if is_rewritten(before.data) else _KEPT
            found.append(Issue(Severity.ERROR, before.path, f"{reason}; {state}"))
    return tuple(found)


def rewritten_files(session: Session) -> tuple[Issue, ...]:
    """Return an issue for each large file that was written to while it is open.

    Large files are mapped, not copied: parts not read yet may be new bytes, or zeros if
    the file has shrunk.
    """
    from inspector.files.mapped import is_rewritten

    torn = [file.path for file in session.files if is_rewritten(file.data)]
    return tuple(
        Issue(Severity.ERROR, path, f"it was written to while it is open; {_TORN}") for path in torn
    )


def _loss(before: LoadedFile, now: LoadedFile | None, error: str) -> str:
    """Return why a file has changed, empty if it has not."""
    if not os.path.exists(before.path):
        return "it no longer exists"
    if now is None or now.error:
        about = (now.error if now is not None else error).removeprefix(before.path)
        about = about.removeprefix(": ") or "its format is unknown"
        return f"it can no longer be read ({about})"
    if now.kind != before.kind:
        return f"it holds something else now ({_word(now.kind)} instead of {_word(before.kind)})"
    errors = _errors(now)
    if errors and not _errors(before):
        return f"it can no longer be read completely ({errors[0].message})"
    return ""


def _errors(file: LoadedFile) -> list[Issue]:
    issues: tuple[Issue, ...] = getattr(file.artifact, "issues", ())
    return [issue for issue in issues if issue.severity is Severity.ERROR]


def _word(kind: str) -> str:
    return kind.replace("_", " ")


def kept_session(session: Session, issues: Iterable[Issue]) -> Session:
    """Return an unchanged session with these issues instead of those of an earlier attempt."""
    others = (issue for issue in session.issues if not issue.message.endswith((_KEPT, _TORN)))
    return replace(session, issues=(*issues, *others))
