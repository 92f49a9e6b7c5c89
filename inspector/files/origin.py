"""Where the times of a session come from: a device, and the unit of its ticks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from inspector.files.run_report import run_report
from inspector.files.session import LoadedFile, Session, SessionOptions
from inspector.files.user_folder import user_folder
from inspector.units import TICK_UNITS
from schema.errors import FormatError
from schema.etdump import ETDump
from schema.etdump.clock import marked_clock
from schema.objects.atomic_file import write_atomically
from schema.objects.codec import read_json
from schema.objects.identity_cache import identity_cache

HERE = "this machine"
_STORE = "clocks.json"
_LARGEST, _MOST = 1 << 20, 2_000  # bytes, traces


@identity_cache
def device_name(session: Session) -> str:
    """Return the name of the device that the runs of a session were made on, empty for none."""
    names = {one.device.name for one in map(run_report, session.dumps) if one and one.device}
    return ", ".join(sorted(names))


def named_after_device(session: Session) -> Session:
    """Return a session with the device in its name, if its runs were made on one."""
    name = device_name(session)
    return replace(session, name=f"{session.name} on {name}") if name else session


def with_known_unit(files: Sequence[LoadedFile], options: SessionOptions) -> SessionOptions:
    """Return options with the unit of the ticks where all traces have a known one.

    It is known from the report of the run, from the trace, or from an earlier choice of the user.
    A unit that was chosen for the session stays.
    """
    traces = [file for file in files if isinstance(file.artifact, ETDump)]
    if not options.time_scale_assumed or not traces:
        return options
    stored = _stored()
    units = {_unit(file, stored) for file in traces}
    if len(units) != 1 or units <= {"", "ns of a report"}:  # what is assumed is what is known
        return options
    return replace(options, source_time_scale=units.pop(), time_scale_assumed=False)


def remember_unit(files: Sequence[LoadedFile], unit: str) -> None:
    """Store the unit of the ticks of traces, by their content.

    Raises: OSError
    """
    known = _stored()
    traces = [file for file in files if isinstance(file.artifact, ETDump)]
    new = {_digest(file): unit for file in traces}
    kept = {name: one for name, one in known.items() if name not in new}
    content = dict([*kept.items(), *new.items()][-_MOST:])
    path = user_folder() / _STORE
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=1) + "\n"
    write_atomically(path, lambda stream: stream.write(text.encode()))


def _unit(file: LoadedFile, stored: Mapping[str, str]) -> str:
    found = stored.get(_digest(file), "") if stored else ""
    known = stated_clock(cast("ETDump", file.artifact))
    if found or known not in TICK_UNITS:
        return found
    return "ns of a report" if known == "ns" else known


def stated_clock(dump: ETDump) -> str:
    """Return the unit of the ticks as the report of the run or the trace has it, empty for none."""
    report = run_report(dump)
    return marked_clock(dump) if report is None else report.clock


def _digest(file: LoadedFile) -> str:
    return hashlib.sha256(file.data).hexdigest()


def _stored() -> dict[str, str]:
    """Return the units by digest; a damaged file counts as empty."""
    try:
        content: object = read_json(user_folder() / _STORE, "units of traces", _LARGEST)
    except (OSError, FormatError):
        return {}
    if not isinstance(content, dict):
        return {}
    pairs = cast("dict[str, object]", content).items()
    return {name: str(unit) for name, unit in pairs if unit in TICK_UNITS}
