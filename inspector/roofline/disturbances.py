"""Disturbances of measurements on a machine, read from the files of its system."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from inspector.files.machine import cpu_quota
from inspector.units import format_bytes, format_share
from schema.objects.plural import plural

_BUSY, _LOADED = 0.25, 1.0  # load a core
_LITTLE_MEMORY, _SCARCE = 0.1, 0.03  # available share
_STOLEN = 0.01  # share of the time since the start of the system


class Effect(str, Enum):
    """How much times are changed; the words are those of the noise of runs."""

    SEVERE = "severe"
    MODERATE = "moderate"
    SLIGHT = "slight"
    FINE = "fine"
    UNKNOWN = "unknown"


_ORDER = (
    Effect.SEVERE,
    Effect.MODERATE,
    Effect.SLIGHT,
    Effect.UNKNOWN,
    Effect.FINE,
)


@dataclass(frozen=True, slots=True)
class Disturbance:
    """One fact about a machine.

    Attributes:
        what: the subject
        severity: of its effect on times
        text: the fact
        remedy: what helps, empty where nothing does or is needed
    """

    what: str
    severity: Effect
    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class SystemFiles:
    """The files in which a system describes itself.

    Attributes:
        root: parent of ``proc`` and ``sys``
        cores: that the process may use
        threads: that will be measured with
    """

    root: Path
    cores: int
    threads: int

    def read(self, name: str) -> str | None:
        """Return the content of a file, None if it cannot be read."""
        try:
            return (self.root / name).read_text("utf-8", "replace").strip()
        except OSError:
            return None

    def read_all(self, pattern: str) -> dict[str, str]:
        """Return the contents of the files of a pattern."""
        found = {str(path): self.read(str(path)) for path in sorted(self.root.glob(pattern))}
        return {path: text for path, text in found.items() if text is not None}


def disturbances(system: SystemFiles) -> tuple[Disturbance, ...]:
    """Return all facts, the most severe first."""
    found = [check(system) for check in _CHECKS]
    return tuple(sorted(found, key=lambda one: _ORDER.index(one.severity)))


def _unknown(what: str, source: str) -> Disturbance:
    return Disturbance(what, Effect.UNKNOWN, f"{source} cannot be read here")


def _load(system: SystemFiles) -> Disturbance:
    what, text = "load", system.read("proc/loadavg")
    try:
        load = float((text or "").split()[0])
    except (IndexError, ValueError):
        return _unknown(what, "/proc/loadavg")
    words = f"load average {load:.2f} on {plural(system.cores, 'core')} in the last minute"
    each = load / system.cores
    if each < _BUSY:
        return Disturbance(what, Effect.FINE, words)
    severity = Effect.SEVERE if each >= _LOADED else Effect.MODERATE
    return Disturbance(what, severity, words, "end other programs, or wait until they are done")


def _threads(system: SystemFiles) -> Disturbance:
    words = f"{plural(system.threads, 'thread')} on {plural(system.cores, 'usable core')}"
    if system.threads > system.cores:
        advice = f"use --threads {system.cores} or fewer"
        return Disturbance("threads", Effect.SEVERE, words, advice)
    if system.threads == system.cores > 1:
        advice = "leave a core to the rest of the system"
        return Disturbance("threads", Effect.SLIGHT, words, advice)
    return Disturbance("threads", Effect.FINE, words)


def _quota(system: SystemFiles) -> Disturbance:
    quota = cpu_quota(system.root / "sys/fs/cgroup")
    if quota is None:
        return Disturbance("cgroup", Effect.FINE, "the control group sets no limit of CPU time")
    words = f"the control group may use {quota:g} cores on average, then it has to wait"
    severity = Effect.SEVERE if quota < system.threads else Effect.SLIGHT
    return Disturbance("cgroup", severity, words, "raise the limit, or measure with fewer threads")


def _governor(system: SystemFiles) -> Disturbance:
    found = set(system.read_all("sys/devices/system/cpu/cpu*/cpufreq/scaling_governor").values())
    if not found:
        return _unknown("governor", "scaling_governor of cpufreq")
    words = f"governor of the processor: {', '.join(sorted(found))}"
    if found == {"performance"}:
        return Disturbance("governor", Effect.FINE, words)
    severity = Effect.SEVERE if "powersave" in found else Effect.MODERATE
    return Disturbance("governor", severity, words, "cpupower frequency-set -g performance")


def _boost(system: SystemFiles) -> Disturbance:
    off = system.read("sys/devices/system/cpu/intel_pstate/no_turbo")
    on = system.read("sys/devices/system/cpu/cpufreq/boost")
    if off is None and on is None:
        return _unknown("boost", "no_turbo and boost of cpufreq")
    if off == "1" or (off is None and on == "0"):
        return Disturbance("boost", Effect.FINE, "the processor does not boost its clock")
    words = "the processor boosts its clock while it is cool: first runs may be faster"
    return Disturbance("boost", Effect.SLIGHT, words, "switch boost off for comparisons")


def _siblings(system: SystemFiles) -> Disturbance:
    active = system.read("sys/devices/system/cpu/smt/active")
    if active is None:
        return _unknown("hyper-threads", "smt/active")
    if active != "1":
        return Disturbance("hyper-threads", Effect.FINE, "each core runs one thread")
    words = "two threads share a core: a neighbour slows what is measured"
    severity = Effect.FINE if system.threads == 1 else Effect.SLIGHT
    return Disturbance("hyper-threads", severity, words, "use half as many threads at most")


def _battery(system: SystemFiles) -> Disturbance:
    states = set(system.read_all("sys/class/power_supply/*/status").values())
    if "Discharging" in states:
        words = "the machine runs on its battery and saves power"
        return Disturbance("power", Effect.SEVERE, words, "connect it to power")
    words = "connected to power" if states else "no battery"
    return Disturbance("power", Effect.FINE, words)


def _memory(system: SystemFiles) -> Disturbance:
    lines = (system.read("proc/meminfo") or "").splitlines()
    pairs = [line.split(":", 1) for line in lines if ":" in line]
    sizes = {key: int(value.split()[0]) * 1024 for key, value in pairs if value.split()}
    total, free = sizes.get("MemTotal"), sizes.get("MemAvailable")
    if not total or free is None:
        return _unknown("memory", "/proc/meminfo")
    swapped = sizes.get("SwapTotal", 0) - sizes.get("SwapFree", 0)
    words = f"{format_bytes(free)} of {format_bytes(total)} available"
    words += f", {format_bytes(swapped)} swapped out" if swapped else ""
    share, advice = free / total, "end programs that hold memory"
    if share < _SCARCE:
        return Disturbance("memory", Effect.SEVERE, words, advice)
    if share < _LITTLE_MEMORY:
        return Disturbance("memory", Effect.MODERATE, words, advice)
    return Disturbance("memory", Effect.SLIGHT if swapped else Effect.FINE, words)


def _virtual(system: SystemFiles) -> Disturbance:
    text, stat = system.read("proc/cpuinfo"), system.read("proc/stat")
    if text is None:
        return _unknown("virtual machine", "/proc/cpuinfo")
    if " hypervisor" not in text:
        return Disturbance("virtual machine", Effect.FINE, "not a virtual machine")
    stolen = _stolen(stat or "")
    words = "a virtual machine: others may use the same processor"
    if stolen is not None:
        words += f"; {format_share(stolen)} of its time went to them since it was started"
    severity = Effect.MODERATE if stolen is not None and stolen > _STOLEN else Effect.SLIGHT
    return Disturbance("virtual machine", severity, words, "compare in interleaved blocks only")


def _stolen(stat: str) -> float | None:
    """Return the share of stolen time in the first line of ``/proc/stat``, None if unknown."""
    fields = stat.splitlines()[0].split()[1:9] if stat else []
    if len(fields) < 8 or not all(field.isdigit() for field in fields):
        return None
    counts = [int(field) for field in fields]
    return counts[7] / sum(counts) if sum(counts) else None


_CHECKS: tuple[Callable[[SystemFiles], Disturbance], ...] = (
    _load,
    _threads,
    _quota,
    _governor,
    _boost,
    _siblings,
    _battery,
    _memory,
    _virtual,
)
