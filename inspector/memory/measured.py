"""Resident memory that a run took, phase by phase, from its report."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.files.run_report import RunMemory, run_report
from inspector.files.session import Session

INCREASE = "increase over the idle worker"
STEADY = "steady_run"
PHASES = {"load": "load", "prepare": "prepare", "first_run": "first run", STEADY: "steady run"}
PARTS = {
    "program_file": "program file",
    "planned_buffers": "planned buffers",
    "delegates": "delegates",
    "other": "other",
}
# two runs of one small program differ by up to 2 MiB: libraries are loaded piece by piece
_LIBRARIES, _ALIKE = 4 << 20, 0.1
_SO_FAR = "the largest so far: the system cannot reset a peak"
_UNSEEN = "not known apart: packed weights and workspace are in other"


@dataclass(frozen=True, slots=True)
class MeasuredMemory:
    """The peak of a phase, or a part of that of a steady run.

    Units: bytes, as increase over the idle worker

    Attributes:
        phase: in words
        part: of the phase, empty for all of it
        nbytes: None where unknown
        note: why it is unknown or what it includes, may be empty
    """

    phase: str
    part: str
    nbytes: int | None
    note: str = ""


def run_memory(session: Session, method: str) -> RunMemory | None:
    """Return the memory of the run of a method, None where none was measured."""
    reports = (run_report(dump) for dump in session.timed_dumps)
    found = [one.memory for one in reports if one is not None and one.method == method]
    known = (one for one in found if any(value is not None for value in one.increase.values()))
    return next(known, None)


def measured_memory(session: Session, method: str) -> tuple[MeasuredMemory, ...]:
    """Return the phases of the run of a method, the last with its parts; empty without a run."""
    found = run_memory(session, method)
    if found is None:
        return ()
    note = "" if found.separate else _SO_FAR
    phases = [
        MeasuredMemory(words, "", found.increase.get(name), note) for name, words in PHASES.items()
    ]
    return (*phases, *(_part(found, name) for name in PARTS if found.steady_parts))


def _part(found: RunMemory, name: str) -> MeasuredMemory:
    value = found.steady_parts.get(name)
    note = _UNSEEN if value is None and name == "delegates" else ""
    return MeasuredMemory(PHASES[STEADY], PARTS[name], value, note)


def resident_alike(old: float, difference: float) -> bool:
    """Return whether such a difference of resident memory is also seen of one program."""
    return abs(difference) <= max(_LIBRARIES, _ALIKE * old)
