"""Resident memory that a run took, phase by phase, from its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inspector.files.run_report import RunMemory, RunReport, run_report
from inspector.files.session import Session

INCREASE, WHOLE = "increase over the idle worker", "all of the process"
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
_ON_DEVICE = "load and first run"
_UNSEEN = "not known apart: packed weights and workspace are in other"


@dataclass(frozen=True, slots=True)
class MeasuredMemory:
    """The peak of a phase, or a part of that of a steady run.

    Units: bytes, as increase over the idle worker; on devices all of the process

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


def measured_memory(session: Session, method: str) -> tuple[MeasuredMemory, ...]:
    """Return the phases of the run of a method, the last with its parts; empty without a run.

    Of a run on a device there is one phase, of all of the process.
    """
    reports = [one for dump in session.timed_dumps if (one := run_report(dump)) is not None]
    own = [one for one in reports if one.only_method == method]
    increases = (one for one in own if any(map(_is_known, one.memory.increase.values())))
    if (report := next(increases, None)) is not None:
        return _phases(report)
    peaks = ((one, one.memory.peak_bytes) for one in own if one.device is not None)
    return tuple(
        MeasuredMemory(_ON_DEVICE, "", peak, f"{WHOLE} of the runner: {one.where}")
        for one, peak in peaks
        if peak is not None
    )[:1]


def measured_as(rows: Sequence[MeasuredMemory]) -> str:
    """Return what the bytes of measured memory are."""
    return WHOLE if any(one.phase == _ON_DEVICE for one in rows) else INCREASE


def _is_known(value: int | None) -> bool:
    return value is not None


def _phases(report: RunReport) -> tuple[MeasuredMemory, ...]:
    found, runtime = report.memory, report.other_runtime
    process = f"process of {runtime}" if runtime else ""
    note = "; ".join(filter(None, (process, "" if found.separate else _SO_FAR)))
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
