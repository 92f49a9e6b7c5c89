"""Identity of the machine that measures: what its times and its calibration belong to."""

from __future__ import annotations

import math
import os
import platform
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from schema.objects.plural import plural

_CGROUP = Path("/sys/fs/cgroup")
_CPUINFO = Path("/proc/cpuinfo")
_MODELS = ("model name", "Hardware", "Processor", "cpu model", "CPU part")


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine as far as times depend on it.

    Attributes:
        cpu: model of the processor
        cores: logical cores of the machine
        system: operating system and architecture
    """

    cpu: str
    cores: int
    system: str

    def __str__(self) -> str:
        """Return the machine in words."""
        return f"{self.cpu}, {plural(self.cores, 'core')}"


@cache
def this_machine() -> Machine:
    """Return the machine of this process."""
    system = f"{platform.system()} {platform.machine()}"
    return Machine(
        cpu_model(_CPUINFO) or platform.processor() or "unknown", os.cpu_count() or 1, system
    )


def cpu_model(cpuinfo: Path) -> str:
    """Return the name of the processor in a file like ``/proc/cpuinfo``, empty if unknown."""
    try:
        lines = cpuinfo.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    facts = dict(line.split(":", 1) for line in reversed(lines) if ":" in line)
    named = {key.strip(): " ".join(value.split()) for key, value in facts.items()}
    return next((named[key] for key in _MODELS if named.get(key)), "")


@cache
def torch_release() -> str:
    """Return the release of the installed torch without importing it, empty without one."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return ""


def usable_cores() -> int:
    """Return how many cores this process can use at a time: those it may run on, within quotas."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        allowed = os.cpu_count() or 1
    quota = cpu_quota(_CGROUP)
    return allowed if quota is None else max(1, min(allowed, math.ceil(quota)))


def cpu_quota(folder: Path) -> float | None:
    """Return how many cores a control group may use on average, None if unlimited.

    Source: cpu.max of cgroup v2; cpu.cfs_quota_us and cpu.cfs_period_us of v1
    """
    try:
        if (folder / "cpu.max").is_file():
            quota, period = (folder / "cpu.max").read_text("ascii").split()
        else:
            quota = (folder / "cpu/cpu.cfs_quota_us").read_text("ascii").strip()
            period = (folder / "cpu/cpu.cfs_period_us").read_text("ascii").strip()
        return None if quota == "max" or int(quota) < 0 else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None
