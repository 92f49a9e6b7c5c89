"""Counters of a timeline: planned bytes in use, and bytes that cross the borders of delegates.

Both follow from the plan and the instructions that the trace names; what neither has is missing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.canvas_data import TimelineCounter
from inspector.files.session import Session
from inspector.graph.model_graph import model_graph
from inspector.join.links import link_block
from inspector.profile.attribution import attribution
from inspector.tables.boundaries import boundaries
from inspector.tables.memory import memory_plan
from inspector.trace.timed_blocks import timed_blocks
from schema.objects.identity_cache import identity_cache
from schema.program import instructions
from schema.program import model as m

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
IN_USE, BOUNDARY = "bytes in use", "delegate boundary"
_NO_PROGRAM = "needs the program (.pte) that ran"
_NO_CALLS = "the trace names no instruction of this program"
_FROM_PLAN = "planned memory in use, from the plan: from each instruction to the next one"
_FROM_GRAPH = "bytes that the call of a delegate takes and returns, while it runs"


@identity_cache
def row_steps(session: Session) -> tuple[Ints, Bools, Bools]:
    """Return for each row of the profile its instruction, and whether it is a call or a run.

    The instruction is -1 where it is not one of the program.

    Shapes: int64[rows], bool[rows], bool[rows]
    """
    steps, calls, whole = [np.zeros(0, np.int64)], [np.zeros(0, np.bool_)], [np.zeros(0, np.bool_)]
    for block in timed_blocks(session.timed_dumps).blocks:
        layout, parts = block.layout, attribution(block)
        joined = session.program is None or link_block(session, block).plan is not None
        known = (layout.chain >= 0) & joined
        steps.append(np.where(known, layout.instruction, -1))
        calls.append(parts.calls)
        whole.append(parts.whole)
    return np.concatenate(steps), np.concatenate(calls), np.concatenate(whole)


def counters(
    session: Session, method: str, group: str, rows: Ints, spans: tuple[Floats, Floats]
) -> tuple[TimelineCounter, ...]:
    """Return the counters of a group of lanes, none where no instruction ran.

    Args:
        session: whose runs they are
        method: of them
        group: of lanes
        rows: row of the profile of each event
        spans: begin and end of each event
    """
    steps, is_call, is_whole = row_steps(session)
    known = rows >= 0
    if not is_call[rows[known]].any():  # the program was loaded, and did not run
        return ()
    calls, whole = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
    calls[known] = is_call[rows[known]] & (steps[rows[known]] >= 0)
    whole[known] = is_whole[rows[known]]
    order = np.flatnonzero(calls)[np.argsort(spans[0][calls], kind="stable")]
    found = (steps[rows[order]], spans[0][order], spans[1][order])
    return (
        _in_use(session, method, group, found, spans[1][whole]),
        *_boundary(session, method, group, found),
    )


def _missing(label: str, group: str, why: str) -> TimelineCounter:
    return TimelineCounter(label, group, np.zeros(0), np.zeros(0), 0.0, why, why)


def _in_use(
    session: Session, method: str, group: str, calls: tuple[Ints, Floats, Floats], ends: Floats
) -> TimelineCounter:
    plan = memory_plan(session, method)
    steps, start, end = calls
    if plan is None:
        return _missing(IN_USE, group, _NO_PROGRAM)
    if not len(steps):
        return _missing(IN_USE, group, _NO_CALLS)
    live = np.zeros(max(plan.instruction_count, 1))
    for arena in plan.arenas:
        live += arena.live_bytes
    value = _looked_up(live, steps)
    if not len(ends):
        ends = end[-1:]
    times = np.concatenate([start, ends])
    values = np.concatenate([value, np.full(len(ends), np.nan)])  # between runs nothing is known
    order = np.argsort(times, kind="stable")
    top = float(live.max(initial=0.0))
    return TimelineCounter(IN_USE, group, times[order], values[order], top, _FROM_PLAN)


def _boundary(
    session: Session, method: str, group: str, calls: tuple[Ints, Floats, Floats]
) -> tuple[TimelineCounter, ...]:
    """Return the counter of boundaries, none for a method without delegates."""
    program = session.program
    if program is None or method not in session.methods:
        return ()
    plan = program.plan(method)
    if not plan.delegates:
        return ()
    steps, start, end = calls
    if not len(steps):
        return (_missing(BOUNDARY, group, _NO_CALLS),)
    of_delegate = _crossing_bytes(session, method)
    nbytes = np.zeros(len(instructions(plan)))
    for step, (_, _, one) in enumerate(instructions(plan)):
        if isinstance(one.instr_args, m.DelegateCall):
            nbytes[step] = of_delegate(one.instr_args.delegate_index)
    value = _looked_up(nbytes, steps)
    delegated = np.isnan(value) | (value > 0)
    inside, outside = value[delegated], np.zeros(int(delegated.sum()))
    times = np.concatenate([start[:1], start[delegated], end[delegated]])
    values = np.concatenate([np.zeros(1), inside, outside])
    before = np.concatenate([np.zeros(1), np.ones(len(inside)) * 2, np.ones(len(inside))])
    order = np.lexsort((before, times))
    top = float(np.nan_to_num(nbytes).max(initial=0.0))
    return (TimelineCounter(BOUNDARY, group, times[order], values[order], top, _FROM_GRAPH),)


def _looked_up(values: Floats, steps: Ints) -> Floats:
    found = np.full(len(steps), np.nan)
    known = steps < len(values)
    found[known] = values[steps[known]]
    return found


def _crossing_bytes(session: Session, method: str) -> Callable[[int], float]:
    """Return a function of a delegate: bytes that cross its border, NaN where one is unknown."""
    graph = model_graph(session, method)
    found: dict[int, float] = {}
    for one in boundaries(graph) if graph is not None else ():
        nbytes = float("nan") if one.nbytes is None else float(one.nbytes)
        found[one.delegate] = found.get(one.delegate, 0.0) + nbytes
    return lambda delegate: found.get(delegate, float("nan"))
