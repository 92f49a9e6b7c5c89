"""The measured costs of calls on a target: a delegate call, an instruction, a transposed byte.

``etscope roofline --calibrate-calls`` measures them with small programs on our runtime, on the
stock one or on a device. They are kept in the user's cache folder, one file for each target.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from inspector.files.machine import Machine, this_machine
from inspector.roofline.calibration import calibration_folder, is_stale, save_measured
from inspector.units import format_time
from schema.errors import FormatError
from schema.objects.codec import read_versioned

VERSION = 1
THIS, STOCK = "this runtime", "stock runtime"
DEVICE = "device "
_LARGEST = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class CallCosts:
    """What calls cost on a target, with one thread, beyond what kernels do.

    Units: nanoseconds

    Attributes:
        target: this runtime, stock runtime, or device and its name
        release: of the runtime, empty if unknown
        machine: measured, that of the host for a device
        date: of the measurement, ISO 8601 in UTC
        run: a run of a program, without its instructions
        instruction: an operator on a few elements
        call: a delegate call with one operator on a few elements
        byte: a byte of a tensor whose layout a delegate changes
        portable_flop: a FLOP of a matmul outside of delegates
        delegate_flop: one inside
        version: of the file
    """

    target: str
    release: str
    machine: Machine
    date: str
    run: float
    instruction: float
    call: float
    byte: float
    portable_flop: float
    delegate_flop: float
    version: int = VERSION

    def overhead(self, instructions: int, calls: int) -> float:
        """Return the overhead of a run of a program beyond its kernels.

        Args:
            instructions: those that are run, delegate calls not among them
            calls: of delegates
        """
        return self.run + self.instruction * instructions + self.call * calls

    def boundary(self, calls: float, nbytes: float) -> float:
        """Return the cost of delegate calls and of bytes whose layout they change."""
        return self.call * calls + self.byte * nbytes

    @property
    def fewest_nodes(self) -> int:
        """Return the number of nodes whose instructions cost as much as a delegate call."""
        if self.instruction <= 0:
            return 1
        return max(1, math.ceil(self.call / self.instruction))

    @property
    def least_work(self) -> int | None:
        """Return the FLOPs at which kernels of the delegate have won the cost of a call.

        None where they are not faster.
        """
        won = self.portable_flop - self.delegate_flop
        return None if won <= 0 else max(1, math.ceil(self.call / won))

    @property
    def stale(self) -> bool:
        """Return whether it should be measured again."""
        return is_stale(self.date)

    @property
    def where(self) -> str:
        """Return the target with its release."""
        return f"{self.target} {self.release}".rstrip()

    @property
    def described(self) -> str:
        """Return the costs and their origin in words."""
        again = "; old, calibrate again" if self.stale else ""
        return (
            f"{self.where}: {format_time(self.call)} a delegate call,"
            f" {format_time(self.instruction)} an instruction,"
            f" {format_time(self.byte * 1024)} a KiB in another layout"
            f" ({self.machine}, measured {self.date[:10]}{again})"
        )


def device_target(name: str) -> str:
    """Return the target that a device is."""
    return f"{DEVICE}{name}"


def costs_file(target: str, machine: Machine | None = None) -> Path:
    """Return where the costs of a target are kept."""
    one = this_machine() if machine is None else machine
    key = json.dumps([target, one.cpu, one.cores, one.system])
    name = hashlib.sha256(key.encode()).hexdigest()[:16]
    return calibration_folder() / f"calls-{name}.json"


def load_costs(target: str, machine: Machine | None = None) -> CallCosts | None:
    """Return the costs of a target on a machine, by default this one; None if not measured.

    Raises: FormatError, OSError for a file that cannot be used
    """
    one = this_machine() if machine is None else machine
    path = costs_file(target, one)
    if not path.is_file():
        return None
    found = read_versioned(path, CallCosts, "costs of calls", ("version", VERSION), _LARGEST)
    if found.target != target or found.machine != one:
        raise FormatError(f"costs of {target} on {one}", found.described, file=str(path))
    return found


def known_costs() -> Iterator[CallCosts]:
    """Yield the costs of all targets that were measured on this machine, the stock runtime first.

    Files that cannot be used are left out.
    """
    files = sorted(calibration_folder().glob("calls-*.json"))
    found: list[CallCosts] = []
    for path in files:
        try:
            one = read_versioned(path, CallCosts, "costs of calls", ("version", VERSION), _LARGEST)
        except (FormatError, OSError):
            continue
        if one.machine == this_machine():
            found.append(one)
    order = (STOCK, THIS)
    yield from sorted(
        found, key=lambda one: (order.index(one.target) if one.target in order else 2, one.target)
    )


def usual_costs() -> CallCosts | None:
    """Return the costs of the stock runtime if they are known, else of another target."""
    return next(known_costs(), None)


def save_costs(found: CallCosts) -> Path:
    """Write costs into the cache, in place of earlier ones; return the file.

    Raises: OSError
    """
    return save_measured(costs_file(found.target, found.machine), found)
