"""Programs measured side by side on a device: each block is a process there, in turns."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspector.devices.device import device_named
from inspector.devices.errors import DeviceError
from inspector.devices.lock import locked
from inspector.devices.remote import RemoteFolder
from inspector.devices.transport import transport_of
from inspector.jobs.executing import WALL, MeasureJob
from inspector.worker.block_turns import measure_in_turns
from inspector.worker.device_run import DeviceProgram, partitions_of, pushed
from inspector.worker.exporter import Say, timed_stage
from inspector.worker.passes import Stopped, never
from schema.version import __version__

_WARMUP = 3


@dataclass(frozen=True, slots=True)
class _DeviceBlocks:
    """The blocks of a program that was pushed."""

    program: DeviceProgram

    def block(self, runs: int, *, rehearsal: bool) -> list[float]:
        program, warmup = self.program, 0 if rehearsal else _WARMUP
        _, found = program.run(runs, warmup)
        times = program.times(found, runs, warmup)
        if not times:
            device = program.remote.device.name
            raise DeviceError(f"the runner of {device} prints no times", "usage")
        return times

    def facts(self) -> dict[str, Any]:
        program = self.program
        return {
            "method": program.given.plan.name,
            "threads": program.job.threads or 1,
            "clock": WALL,
            "backends": list(dict.fromkeys(one.id for one in program.given.plan.delegates)),
            "partitions": partitions_of(program),
        }

    def recover(self) -> None:
        """See whether the device is still there: where it is gone, everything ends here."""
        self.program.remote.open()


def measure_on_device(job: MeasureJob, notify: Say, stopped: Stopped = never) -> dict[str, Any]:
    """Measure all programs on one device; each block is reported when it is done.

    Args:
        job: the request, whose programs name one device
        notify: called with messages
        stopped: whether to end with the blocks there are

    Raises: DeviceError, AnswerError, FormatError, ValuesError, ToolchainError, OSError
    """
    names = {one.device for one in job.programs}
    if len(names) > 1:
        words = " and ".join(sorted(name or "this machine" for name in names))
        raise DeviceError(f"programs of {words} cannot be measured side by side", "usage")
    device = device_named(names.pop())
    remote = RemoteFolder(device, transport_of(device))

    def waiting(sentence: str) -> None:
        notify("warning", text=sentence, file="", line=0)
        notify("stage", stage=f"wait for {device.name}", method="")

    with locked(device, waiting), tempfile.TemporaryDirectory() as folder:
        with timed_stage(notify, "connect"):
            remote.open()
        programs = [
            _DeviceBlocks(pushed(remote, each, Path(folder), notify)) for each in job.programs
        ]
        measure_in_turns(job, programs, notify, stopped)
        remote.close()
    return {"etscope": __version__, "torch": ""}
