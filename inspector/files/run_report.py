"""The report that a run leaves beside its traces: what only the one who ran it knows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from inspector.files.digest import sha256_of
from inspector.files.machine import Machine
from inspector.files.run_calls import SequenceCall, StateTensor
from schema.errors import FormatError, Issue, Severity
from schema.etdump import ETDump
from schema.objects.codec import from_json, read_json
from schema.objects.identity_cache import identity_cache

REPORT = "run.json"
_TRACE = ".etdp"
_DIGEST = "sha256"
_LARGEST = 1 << 26  # bytes
_OURS = {"etscope", "files"}  # keys of our reports: another program has other ones


@dataclass(frozen=True, slots=True)
class ReportedDevice:
    """The device that a program ran on.

    Attributes:
        name: as the user calls it
        transport: in words, as in ``ssh pi.local``
        facts: what its system reports: model, cores, governor
    """

    name: str
    transport: str = ""
    facts: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class RunMemory:
    """Resident memory of the process that ran, as increase over the idle worker.

    Units: bytes; None where it was not measured

    Attributes:
        increase: peak of each phase: load, prepare, first_run, steady_run
        separate: peaks are of their phase alone; else the largest so far
        steady_parts: the peak of a steady run by what holds it; the rest is ``other``
        peak_bytes: of all of the process, from its start
    """

    increase: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    separate: bool = False
    steady_parts: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    peak_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ReportedInput:
    """An input of a run; the shape of what is not a tensor is empty."""

    kind: str = ""
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RunReport:
    """The parts of a report that belong to what the traces show.

    Units: ms

    Attributes:
        method: that ran; in a sequence of several, that of the last call
        run_ms: each run without a trace
        load_ms: loading the program; None if unknown, as of some devices
        init_ms: loading the method, likewise
        first_run_ms: the first inference, likewise
        warnings: about the measurement, such as threads without a core of their own
        threads: of torch, None if unknown
        machine: that ran it, None in reports of older versions
        memory: as measured, empty in reports of older versions
        where: description of the runtime
        inputs: of each run, in the order of the program
        sizes: index of each tensor whose sizes are dynamic -> those it had in the runs; empty
            where they differ between runs or calls, or are not known
        calls: of a sequence, in order; empty for runs with the same inputs
        state: tensors that are carried from call to call, in the order of their changes
    """

    method: str
    run_ms: tuple[float, ...] = ()
    warnings: tuple[str, ...] = ()
    clock: str = "ns"
    device: ReportedDevice | None = None
    threads: int | None = None
    machine: Machine | None = None
    memory: RunMemory = RunMemory()
    where: str = ""
    inputs: tuple[ReportedInput, ...] = ()
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    calls: tuple[SequenceCall, ...] = ()
    state: tuple[StateTensor, ...] = ()
    load_ms: float | None = None
    init_ms: float | None = None
    first_run_ms: float | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for a time that is none."""
        once = (self.load_ms, self.init_ms, self.first_run_ms)
        times = (*self.run_ms, *(time for time in once if time is not None))
        if not all(0 <= time < math.inf for time in times):
            raise ValueError("run_ms, load_ms, init_ms, first_run_ms: expected times from 0")

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the methods that ran, in the order of their first runs."""
        return tuple(dict.fromkeys(one.method or self.method for one in self.calls)) or (
            self.method,
        )

    @property
    def only_method(self) -> str:
        """Return the method of all runs, empty for a sequence of several."""
        return self.methods[0] if len(self.methods) == 1 else ""

    def method_of(self, call: int) -> str:
        """Return the method of a call of a sequence, or of all runs; empty if unknown."""
        if not self.calls:
            return self.method
        found = (one.method or self.method for one in self.calls if one.call == call)
        return next(found, "")

    @property
    def other_runtime(self) -> str:
        """Return the runtime, empty for the built-in one."""
        return "" if self.where.startswith("ETScope ") else self.where


def run_report(dump: ETDump) -> RunReport | None:
    """Return the report of the run that wrote a trace, None for traces without one.

    A report that lists another size or content of the trace is that of another run.
    """
    found = _beside(dump)
    return found if isinstance(found, RunReport) else None


def report_issue(dump: ETDump) -> Issue | None:
    """Return why the report beside a trace is not used, None for nothing to report."""
    found = _beside(dump)
    if not isinstance(found, str):
        return None
    path = Path(dump.file).with_name(REPORT)
    return Issue(Severity.WARNING, str(path), f"not used for {Path(dump.file).name}: {found}")


@identity_cache
def _beside(dump: ETDump) -> RunReport | str | None:
    """Return the report beside a trace, or what is wrong with it; None where there is none."""
    path = Path(dump.file)
    if not dump.file or path.name == REPORT:
        return None
    try:
        content = read_json(path.with_name(REPORT), "the report of a run", _LARGEST)
    except OSError:
        return None
    except FormatError as error:
        return str(error).removeprefix(f"{path.with_name(REPORT)}: ")
    if not isinstance(content, Mapping) or not _OURS & set(cast("Mapping[str, Any]", content)):
        return None  # of another program
    report = dict(cast("Mapping[str, Any]", content))
    try:
        files: Sequence[Mapping[str, Any]] = report["files"]
        written = {one["path"]: one for one in files}
        if path.name not in written:
            return None  # it lies in the folder of a run that did not write it
        if other := _other_run(path, written[path.name]):
            return other
        if "traced_run_ms" not in report:  # before these versions all runs were traced ones
            report["run_ms"] = []
        return from_json(report, RunReport, str(path.with_name(REPORT)))
    except (OSError, FormatError) as error:
        return str(error).removeprefix(f"{path.with_name(REPORT)}: ")
    except (KeyError, TypeError, ValueError):
        return "expected a list of files with path and bytes"


def _other_run(path: Path, listed: Mapping[str, Any]) -> str:
    """Return why a report is not of the run that wrote a trace, empty if it is."""
    size = path.stat().st_size
    if listed["bytes"] != size:
        return (
            f"it is of another run, whose trace has {listed['bytes']:,} bytes instead of {size:,}"
        )
    digest = listed.get(_DIGEST)  # older versions wrote none
    if digest is not None and digest != sha256_of(path):
        return "it is of another run, whose trace has other content of the same size"
    return ""


def listed_files(folder: Path) -> list[dict[str, str | int]]:
    """Return the files of a run as its report lists them: path, bytes, and digests of traces.

    Raises: OSError
    """
    found: list[dict[str, str | int]] = []
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        name = path.relative_to(folder).as_posix()
        is_trace = path.suffix == _TRACE
        digest: dict[str, str | int] = {_DIGEST: sha256_of(path)} if is_trace else {}
        found.append({"path": name, "bytes": path.stat().st_size, **digest})
    return found


def ran_method(dump: ETDump, call: int) -> str:
    """Return the method of a block of a trace as the report of the run has it; empty without one.

    Args:
        dump: the trace
        call: number of the block, that of a call in the trace of a sequence
    """
    report = run_report(dump)
    return "" if report is None else report.method_of(call)


def is_sequence(dump: ETDump) -> bool:
    """Return whether the blocks of a trace are the calls of a sequence, as their report has it."""
    report = run_report(dump)
    return report is not None and bool(report.calls)
