"""The history of jobs: state, start, duration, output and error of each."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from inspector.files.workspace_file import is_workspace, workspace_sessions
from inspector.files.written_folders import written_by_job
from inspector.jobs.history import (
    INTERRUPTED,
    RUNNING,
    JobEntry,
    about,
    history_folder,
    read_entries,
)
from inspector.jobs.messages import Ended
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import AUTOMATIC, Units
from inspector.tables.table import Table
from inspector.units import NS_PER_S, Quantity

_TONES: Mapping[str, str] = {
    RUNNING: "busy",
    INTERRUPTED: "off",
    Ended.FINISHED.value: "good",
    Ended.CANCELLED.value: "off",
    Ended.TIMED_OUT.value: "warn",
    Ended.NOT_STARTED.value: "warn",
}
_FIELDS = (
    RowField("state", tone=lambda value: _TONES.get(str(value), "bad")),
    RowField("job"),
    RowField("of", mono=True),
    RowField("started"),
    RowField("time", Quantity.TIME, missing=""),
    RowField("size", Quantity.SIZE, missing=""),
    RowField("output", mono=True, width=20),
    RowField("error", width=60),
)


def job_table(
    entries: Sequence[JobEntry],
    units: Units = AUTOMATIC,
    *,
    now: float | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Table:
    """Return one row per job.

    Args:
        entries: to show
        units: of times and sizes
        now: in seconds since the epoch; without it running jobs have no time, and those of today
            a date
        sizes: bytes of what is in a target; None to look at the disk
    """
    if sizes is None:
        sizes = {one.target: size for one in entries if (size := output_size(one.target))}
    rows = [_row(one, now, sizes) for one in entries]
    return row_table(_FIELDS, rows, "jobs", keys=[one.id for one in entries], units=units)


def _row(one: JobEntry, now: float | None, sizes: Mapping[str, int]) -> tuple[object, ...]:
    running = one.state == RUNNING
    seconds = one.seconds if not running or now is None else now - one.started
    return (
        one.state,
        one.kind,
        one.subject,
        _moment(one.started, now),
        None if seconds is None else seconds * NS_PER_S,
        None if running else sizes.get(one.target),
        str(Path(*Path(one.target).parts[-2:])) if one.target else None,
        one.sentence.removeprefix(f"{one.file}:{one.line}: ") or _lost(one.state) or None,
    )


def _lost(state: str) -> str:
    return "its window ended before it" if state == INTERRUPTED else ""


def _moment(at: float, now: float | None) -> str:
    """Return when something was; of today only the time of day."""
    found = time.localtime(at)
    today = now is not None and time.localtime(now)[:3] == found[:3]
    return time.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S", found)


def output_size(target: str) -> int:
    """Return the bytes of what a job wrote into a folder, or of a file; 0 if it is gone."""
    place = Path(target)
    with suppress(OSError):
        if not target or not place.is_dir():
            return place.stat().st_size if target else 0
        found = written_by_job(place)
        return found.size if found is not None else 0
    return 0


def jobs(place: Path, units: Units) -> Table:
    """Return the jobs of the history about a program, a folder or a workspace.

    Args:
        place: a file or folder that jobs read or wrote, a workspace, or the folder of a history
        units: of times and sizes

    Raises: FormatError, OSError for a workspace that cannot be read
    """
    place.stat()
    own = read_entries(place) if place.is_dir() else ()
    if own:
        return job_table(own, units)
    places = [place]
    if is_workspace(str(place)):
        sessions = workspace_sessions(place)
        places += [Path(path) for _, paths in sessions for path in paths]
    return job_table(about(read_entries(history_folder()), places), units)
