"""Programs measured in turns, each block by a process beside this one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from inspector.devices.errors import DeviceError
from inspector.jobs.executing import MeasureJob
from inspector.toolchain.child import ToolchainError
from inspector.worker.exporter import Say, timed_stage
from inspector.worker.passes import Stopped
from inspector.worker.tasks import reported_failure


class BlockProgram(Protocol):
    """A program that runs in another process."""

    def block(self, runs: int, *, rehearsal: bool) -> list[float]:
        """Run as often, after a warm-up unless it is the rehearsal; return the times in ms.

        Raises: ToolchainError, DeviceError; the other programs are still measured
        """
        ...

    def facts(self) -> dict[str, Any]:
        """Return the facts about its runs."""
        ...

    def recover(self) -> None:
        """Prepare for the blocks of the others after an error; raise where nothing works."""
        ...


@dataclass
class _Entry:
    """One of the programs.

    Attributes:
        number: its index in the job
        program: the program
        first: the block to begin with, after the rehearsal
        runs: of a block, which the rehearsal decides
        failed: whether it is excluded
    """

    number: int
    program: BlockProgram
    first: int = 0
    runs: int = 1
    failed: bool = False


def measure_in_turns(
    job: MeasureJob,
    programs: Sequence[BlockProgram],
    notify: Say,
    stopped: Stopped,
) -> None:
    """Measure all programs; each block is reported when it is done.

    Args:
        job: the request
        programs: in its order
        notify: called with messages
        stopped: whether to end with the blocks there are

    Raises: errors of ``recover``
    """
    first = job.first_block or (0,) * len(programs)
    entries = [
        _Entry(number, program, start)
        for number, (program, start) in enumerate(zip(programs, first, strict=True))
    ]
    with timed_stage(notify, "measure"):
        for block in range(-1, job.blocks):
            if stopped():
                break
            notify("counted", done=max(block, 0), total=job.blocks)
            for entry in entries if block % 2 == 0 else entries[::-1]:
                if not entry.failed and (block < 0 or block >= entry.first):
                    _block(entry, job, block, notify)
        notify("counted", done=job.blocks, total=job.blocks)


def _block(entry: _Entry, job: MeasureJob, block: int, notify: Say) -> None:
    program = entry.program
    notify("measured", program=entry.number, block=max(block, 0), run_ms=[])
    try:
        times = program.block(entry.runs, rehearsal=block < 0)
    except (ToolchainError, DeviceError) as error:
        program.recover()
        entry.failed = True
        words = reported_failure(error)
        told = {key: words[key] for key in ("sentence", "blame")}
        notify("refused", program=entry.number, **told)
        return
    if block < 0:
        requested = math.ceil(1e3 * job.seconds / max(times[0], 1e-3))
        entry.runs = max(job.least_runs, min(requested, job.most_runs))
        return
    facts = program.facts()
    notify("measured", program=entry.number, block=block, run_ms=times, facts=facts)
