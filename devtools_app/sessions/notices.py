"""Messages and questions about files that were opened, found beside others, or lost."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from devtools_app.sessions.opening import Loaded
from devtools_app.state.relocation import missing_paths
from devtools_app.state.requests import ChooseTicks, LocateFiles, Notice, OpenAlone, Reload
from schema.errors import Issue

LOCATE = ("Locate folder…", LocateFiles())
_NAMED = 3  # files
_UNITS = ("ns", "us", "ms", "cycles")
_ASSUMED = (
    "The trace does not name the unit of its ticks; ns is assumed. What did its runtime count?"
)


def unit_question(session: str) -> Notice:
    """Return the question for the unit of the ticks in the trace of a session."""
    offers = tuple((unit, ChooseTicks(session, unit)) for unit in _UNITS)
    return Notice(_ASSUMED, offers=offers, session=session, until_read=True)


def opened_beside(result: Loaded) -> Notice | None:
    """Return the message about files that were opened beside the requested one, or None."""
    beside = [path for path in result.paths if path not in result.target.paths]
    if not beside:
        return None
    names = ", ".join(Path(path).name for path in beside)
    chosen = result.target.paths[0]
    text = f"Opened together with {names}, found beside {Path(chosen).name}."
    return Notice(text, offers=(("Only this file", OpenAlone(chosen)),))


def files_not_found(lost: Sequence[str], failed: Sequence[Loaded]) -> Notice:
    """Return the question for the folder of the files of a workspace that were not found."""
    names = ", ".join(Path(path).name for path in lost[:_NAMED])
    more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
    text = (
        f"Files of the workspace were not found: {names}{more}. All that are below the folder you"
        " locate are opened; sessions without their files stay in the workspace."
    )
    others = [one.error for one in failed if not missing_paths(one.target.paths)]
    return Notice("\n".join((text, *others)), "warning", "\n".join(lost), (LOCATE,))


def awaited_folders(failed: Sequence[Loaded]) -> tuple[str, ...]:
    """Return the folders that files may come into; empty unless all that failed are empty ones."""
    if any(one.target.replaces or not one.empty for one in failed):
        return ()
    paths = [path for one in failed for path in one.target.paths]
    usable = all(os.path.isdir(path) and os.access(path, os.R_OK) for path in paths)
    return tuple(paths) if usable else ()


def nothing_yet(folders: Sequence[str]) -> Notice:
    """Return the message that folders are watched from which nothing could be opened."""
    names = ", ".join(Path(one).name for one in folders[:_NAMED])
    return Notice(f"Nothing to open in {names} yet: what comes into it opens by itself.")


def files_lost(session: str, lost: Sequence[Issue], offer: tuple[str, Reload] | None) -> Notice:
    """Return the message for files that could not be reloaded."""
    issue = lost[0]
    more = f" The same holds for {len(lost) - 1} more." if len(lost) > 1 else ""
    details = "\n".join(f"{one.where}: {one.message}" for one in lost)
    text = f"{Path(issue.where).name}: {issue.message}.{more}"
    offers = () if offer is None else (offer,)
    return Notice(text, "warning", details, offers, session=session, until_read=True)
