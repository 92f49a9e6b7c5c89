"""Programs measured side by side on a device: each block is a process there, in turns."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspector.devices.device import device_named
from inspector.devices.errors import DeviceError
from inspector.devices.lock import locked
from inspector.devices.remote import RemoteFolder
from inspector.devices.transport import transport_of
from inspector.jobs.executing import WALL, MeasureJob
from inspector.worker.device_run import DeviceProgram, partitions_of, pushed
from inspector.worker.exporter import Say, timed_stage
from inspector.worker.passes import Stopped, never
from schema.version import __version__

_WARMUP = 3


@dataclass
class _DeviceEntry:
    """One of the programs.

    Attributes:
        number: its index in the job
        program: pushed
        runs: of a block
        failed: whether it is excluded
    """

    number: int
    program: DeviceProgram
    runs: int = 1
    failed: bool = False


def measure_on_device(
    job: MeasureJob,
    notify: Say,
    failure: Callable[[BaseException], dict[str, Any]],
    stopped: Stopped = never,
) -> dict[str, Any]:
    """Measure all programs on one device; each block is reported when it is done.

    Args:
        job: the request, whose programs name one device
        notify: called with messages
        failure: an error as the content of a message
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

    with locked(device, waiting), tempfile.TemporaryDirectory() as folder:
        with timed_stage(notify, "connect"):
            remote.open()
        entries = [
            _DeviceEntry(number, pushed(remote, each, Path(folder), notify))
            for number, each in enumerate(job.programs)
        ]
        with timed_stage(notify, "measure"):
            for block in range(-1, job.blocks):
                if stopped():
                    break
                notify("counted", done=max(block, 0), total=job.blocks)
                for entry in entries if block % 2 == 0 else entries[::-1]:
                    if not entry.failed:
                        _block(entry, job, block, notify, failure)
            notify("counted", done=job.blocks, total=job.blocks)
        remote.close()
    return {"etscope": __version__, "torch": ""}


def _block(
    entry: _DeviceEntry,
    job: MeasureJob,
    block: int,
    notify: Say,
    failure: Callable[[BaseException], dict[str, Any]],
) -> None:
    """Run a block; block -1 is a rehearsal that shows how many runs a block has."""
    program = entry.program
    notify("measured", program=entry.number, block=max(block, 0), run_ms=[])
    try:
        _, found = program.run(entry.runs, _WARMUP if block >= 0 else 0)
        times = _checked(program, program.times(found, entry.runs, _WARMUP if block >= 0 else 0))
    except DeviceError as error:
        program.remote.open()  # where the device itself is gone, everything ends here
        entry.failed = True
        words = failure(error)
        notify(
            "refused", program=entry.number, **{key: words[key] for key in ("sentence", "blame")}
        )
        return
    if block < 0:
        requested = math.ceil(1e3 * job.seconds / max(times[0], 1e-3))
        entry.runs = max(job.least_runs, min(requested, job.most_runs))
        return
    facts = {
        "method": program.given.plan.name,
        "threads": program.job.threads or 1,
        "clock": WALL,
        "backends": list(dict.fromkeys(one.id for one in program.given.plan.delegates)),
        "partitions": partitions_of(program),
    }
    notify("measured", program=entry.number, block=block, run_ms=times, facts=facts)


def _checked(program: DeviceProgram, times: list[float]) -> list[float]:
    if not times:
        device = program.remote.device.name
        raise DeviceError(f"the runner of {device} prints no times", "usage")
    return times
