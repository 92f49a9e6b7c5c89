"""Places the values of a program as planners of the compiler do, from the lifetimes in the file."""

from __future__ import annotations

from typing import Any

from compiler.memory.blocks import MemoryBlock
from compiler.memory.planners import PLANNERS, plan_blocks
from inspector.files.load import load_session
from inspector.jobs.planning import PlanJob, PlannedBuffer, PlannerResult
from inspector.memory.plan import Arena, analyse_memory
from inspector.memory.replan import blocks_of
from inspector.worker import exporter
from inspector.worker.exporter import timed_stage
from inspector.worker.tasks import Task
from schema.errors import FormatError
from schema.objects.codec import to_json


class PlannerError(ValueError):
    """A request for an unknown method or planner."""


def work(job: PlanJob, task: Task) -> dict[str, Any]:
    """Return the plans of a request.

    Raises: PlannerError, FormatError, OSError; PlanError if a planner overlaps values
    """
    with timed_stage(task.notify, "load"):
        session = load_session([job.program])
    program = session.program
    if program is None:
        raise PlannerError(f"{job.program} holds no program")
    method = job.method or next(iter(session.methods), "")
    unknown = [name for name in job.planners if name not in PLANNERS]
    if unknown or method not in session.methods:
        found = f"planner {unknown[0]!r}" if unknown else f"method {method!r}"
        known = PLANNERS if unknown else session.methods
        raise PlannerError(f"unknown {found}; available: {', '.join(known)}")
    buffers: list[PlannedBuffer] = []
    with timed_stage(task.notify, "plan"):
        arenas = analyse_memory(program, method).arenas
        for done, name in enumerate(job.planners):
            task.notify("counted", done=done, total=len(job.planners))
            buffers += [_planned(job, name, arena) for arena in arenas]
    return to_json(PlannerResult(tuple(buffers)))


def _planned(job: PlanJob, name: str, arena: Arena) -> PlannedBuffer:
    found = blocks_of(arena, lent=job.lent)
    blocks = [MemoryBlock(one.name, one.nbytes, one.first, one.last) for one in found]
    placed = plan_blocks(blocks, job.alignment, (PLANNERS[name],))
    members = [
        (value, offset + inside)
        for block, offset in zip(found, placed.offsets, strict=True)
        for value, inside in block.members
    ]
    return PlannedBuffer(
        name,
        arena.mem_id,
        placed.nbytes,
        tuple(value for value, _ in members),
        tuple(offset for _, offset in members),
    )


def failure(error: BaseException) -> dict[str, Any]:
    """Return an error as the content of a message."""
    found = exporter.failure(error)
    if isinstance(error, (FormatError, PlannerError)):
        return {**found, "sentence": str(error), "blame": "unreadable"}
    if isinstance(error, OSError) and error.strerror:
        return {**found, "sentence": f"{error.filename}: {error.strerror}", "blame": "unreadable"}
    return found
