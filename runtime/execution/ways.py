"""The ways to run a method: fused calls, call by call, traced, and one instruction at a time.

Each one runs the chains within their instruction budget and raises an ExecutionError that names the
instruction that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import length_hint
from typing import Any

import torch

from runtime.execution.binding import BoundInstruction, Call
from runtime.execution.chains import Chains
from runtime.execution.fused import BasicBlock, FusedRun, Stretch, Unoptimized, has_scripts
from runtime.platform import clock, current
from runtime.tracing.tracer import DebugLevel, EventTracer, ProfilingLevel

_torch: Any = torch
_AS_IS: AbstractContextManager[Any] = nullcontext()
RUNS_BEFORE_SCRIPTS = 3  # recording takes as long as some runs


def run_fused(chains: Chains, fused: FusedRun) -> None:
    """Run the calls of a fused run; the plan has one chain without jumps."""
    fused.activate()
    chains.spend(chains.budget, len(chains.calls[0]), 0)
    if fused.may_record:
        fused.runs += 1
        if fused.runs > RUNS_BEFORE_SCRIPTS and has_scripts():
            _record(chains, fused)
            return
    remaining = iter(fused.calls)
    try:
        with (
            _below_autograd() if fused.has_kernels else _AS_IS,
            Unoptimized() if fused.is_scripted else _AS_IS,
        ):
            for call in remaining:
                call()
    except Exception as error:
        at = len(fused.calls) - 1 - length_hint(remaining)
        call = fused.calls[at]
        place = call.place if isinstance(call, Stretch) else fused.places[at]
        raise chains.failed(error, 0, place) from error


def _record(chains: Chains, fused: FusedRun) -> None:
    """Run the calls of a fused run, of which graphs are made."""
    seen: list[int] = []
    try:
        with _below_autograd():
            fused.record(seen.append)
    except Exception as error:
        raise chains.failed(error, 0, seen[-1] if seen else 0) from error


def run_resolved(chains: Chains, calls: Sequence[Sequence[Call]]) -> None:
    """Run the calls of a plan that is not fused; those of its blocks may run graphs."""
    with _below_autograd(), Unoptimized():
        run_calls(chains, calls)


def run_calls(chains: Chains, calls: Sequence[Sequence[Call]]) -> None:
    """Run one call an instruction or block, following jumps."""
    budget = chains.budget
    for chain, of_chain in enumerate(calls):
        chains.position.chain = chain
        if chains.jumps[chain] or isinstance(next(iter(of_chain), None), BasicBlock):
            budget = _run_jumping(chains, of_chain, chain, budget)
        else:
            budget = chains.spend(budget, len(of_chain), chain)
            _run_straight(chains, of_chain, chain)


def _run_straight(chains: Chains, calls: Sequence[Call], chain: int) -> None:
    index = 0
    position = chains.position
    try:
        for index, call in enumerate(calls):
            position.instruction = index
            call()
    except Exception as error:
        raise chains.failed(error, chain, index) from error


def _run_jumping(chains: Chains, calls: Sequence[Call], chain: int, budget: int) -> int:
    index, position = 0, chains.position
    try:
        while index < len(calls) and budget > 0:
            call = calls[index]
            budget -= call.count if isinstance(call, BasicBlock) else 1
            if budget < 0:
                break
            position.instruction = index
            target = call()
            index = index + 1 if target is None else target
    except Exception as error:
        raise chains.failed(error, chain, position.instruction) from error
    if index < len(calls):
        raise chains.exhausted(chain, index)
    return budget


def run_traced(
    chains: Chains,
    calls: Sequence[Sequence[Call]],
    tracer: EventTracer,
    outputs: Callable[[], list[Any]],
) -> None:
    """Run one call an instruction and record times and values by the tracer's levels."""
    budget = chains.budget
    tracer.create_event_block("Execute")
    with tracer.scope("Method::execute"):
        for chain, of_chain in enumerate(calls):
            budget = _trace_chain(chains, of_chain, chain, budget, tracer)
    if tracer.debug_level >= DebugLevel.OUTPUTS:
        for value in outputs():
            tracer.log_value(value, output=True)


def _trace_chain(
    chains: Chains, calls: Sequence[Call], chain: int, budget: int, tracer: EventTracer
) -> int:
    """Run a chain with an event for each instruction; return the remaining budget."""
    chains.position.chain = chain
    profiles = tracer.profiling_level >= ProfilingLevel.ALL_EVENTS
    if chains.jumps[chain] or tracer.debug_level >= DebugLevel.INTERMEDIATE or not profiles:
        return _trace_recorded(chains, calls, chain, budget, tracer)
    # Only times are recorded: this loop is short because its overhead is part of the measured
    # times.
    position, write, tick = chains.position, tracer.rows.append, current().clock
    budget = chains.spend(budget, len(calls), chain)
    index = 0
    try:
        for index, ((inner, event), call) in enumerate(
            zip(chains.events[chain], calls, strict=True)
        ):
            position.instruction = index
            start = tick()
            call()
            write((inner, event, chain, index, start, tick()))
    except Exception as error:
        raise chains.failed(error, chain, index) from error
    return budget


def _trace_recorded(
    chains: Chains, calls: Sequence[Call], chain: int, budget: int, tracer: EventTracer
) -> int:
    index, position, jumps = 0, chains.position, chains.jumps[chain]
    try:
        while index < len(calls) and budget > 0:
            budget -= 1
            position.instruction = index
            start = clock()
            target = calls[index]()
            record(chains, tracer, chain, index, (start, clock()))
            # Without jumps a call may return its result, which is not a jump target.
            index = target if jumps and target is not None else index + 1
    except Exception as error:
        raise chains.failed(error, chain, index) from error
    if index < len(calls):
        raise chains.exhausted(chain, index)
    return budget


def run_one(chains: Chains, chain: int, index: int, tracer: EventTracer | None) -> int:
    """Run one instruction and return the index of the next one in its chain."""
    chains.position.chain, chains.position.instruction = chain, index
    start = clock()
    try:
        target = chains.calls[chain][index]()
    except Exception as error:
        raise chains.failed(error, chain, index) from error
    if tracer is not None:
        record(chains, tracer, chain, index, (start, clock()))
    return index + 1 if target is None else target


def record(
    chains: Chains, tracer: EventTracer, chain: int, index: int, times: tuple[int, int]
) -> None:
    """Record an instruction that has run: its values, then its times."""
    instruction = chains.instructions[chain][index]
    if instruction.logged and tracer.debug_level >= DebugLevel.INTERMEDIATE:
        _log_values(chains, tracer, instruction, chain, index)
    if tracer.profiling_level >= ProfilingLevel.ALL_EVENTS:
        tracer.rows.append((instruction.kernel_event, instruction.event, chain, index, *times))


def _log_values(
    chains: Chains, tracer: EventTracer, instruction: BoundInstruction, chain: int, index: int
) -> None:
    if tracer.only.takes(index, instruction.operator):
        table = chains.table
        for value in instruction.logged:
            tracer.log_value(table.resolve(table.items[value]), chain, index)


def _below_autograd() -> AbstractContextManager[Any]:
    """Return a context in which kernels are called without the dispatch to autograd."""
    return _torch._C._AutoDispatchBelowAutograd()
