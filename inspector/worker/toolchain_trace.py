"""Converts recordings of the stock runtime to those of ours: without warm-up and unused bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from inspector.trace import event_kinds
from inspector.units import NS_PER_MS
from runtime.tracing.sinks import ALIGNMENT
from schema import etdump
from schema.dtypes.scalar_type import tensor_nbytes
from schema.etdump import AnyEvent, DebugEvent, ETDump, ProfileEvent, RunData
from schema.etdump.values import DebugTensor

EXECUTE = "Execute"  # name of a run in the stock runtime
_PIECE = 1 << 20  # bytes copied at once, so that a large debug buffer needs little memory


def measured_only(dump: ETDump, warmup: int, runs: int) -> ETDump | None:
    """Return a trace with the measured runs only.

    Args:
        dump: of all runs
        warmup: number of first runs to drop
        runs: number of measured runs

    Returns: None if the runs cannot be identified
    """
    found = [run for run in dump.run_data if run.name == EXECUTE]
    if len(found) != warmup + runs:
        return None if warmup else dump
    before = {id(run) for run in found[:warmup]}
    return etdump.dump(run for run in dump.run_data if id(run) not in before)


def executed_ms(dump: ETDump, runs: int) -> tuple[float, ...]:
    """Return the time of each of the last runs by its trace, in ms; empty if they are not there.

    Args:
        dump: whose ticks are ns
        runs: number of runs
    """
    executed = [run for run in dump.run_data if run.name == EXECUTE][-runs:] if runs else []
    spent = tuple(time for run in executed if (time := _executed(run)) is not None)
    return spent if len(spent) == runs else ()


def _executed(run: RunData) -> float | None:
    """Return the time of a run, whose event is the last to end, in ms; None without one."""
    for event in reversed(run.events):
        if isinstance(event, ProfileEvent) and event.name in event_kinds.EXECUTE:
            return (event.end_time - event.start_time) / NS_PER_MS
    return None


def cut_buffer(dump: ETDump, buffer: Path) -> ETDump:
    """Cut a debug buffer to the values of a trace; return the trace with their places in it.

    Raises: OSError
    """
    tensors = [one for one in _tensors(dump.run_data) if one.offset >= 0]
    start = min((one.offset for one in tensors), default=0)
    end = max((one.offset + _nbytes(one) for one in tensors), default=0)
    with buffer.open("r+b") as stream:
        for at in range(start, end, _PIECE):
            stream.seek(at)
            piece = stream.read(min(_PIECE, end - at))
            stream.seek(at - start)
            stream.write(piece)
        stream.truncate(end - start)
        if tensors:  # zeros at the end, by which a buffer is known without its trace
            stream.seek(0, os.SEEK_END)
            stream.write(bytes(ALIGNMENT))
    return _shifted(dump, start) if start else dump


def _tensors(runs: Iterable[RunData]) -> Iterable[DebugTensor]:
    for run in runs:
        for event in run.events:
            if isinstance(event, DebugEvent) and event.value is not None:
                yield from event.value.all_tensors()


def _nbytes(tensor: DebugTensor) -> int:
    return tensor_nbytes(tensor.scalar_type, tensor.sizes)


def _shifted(dump: ETDump, by: int) -> ETDump:
    def moved(one: DebugTensor) -> DebugTensor:
        return replace(one, offset=one.offset - by) if one.offset >= 0 else one

    return etdump.dump(
        etdump.run(
            run.name,
            [_with_tensors(event, moved) for event in run.events],
            bundled_input_index=run.bundled_input_index,
            allocators=run.allocators,
        )
        for run in dump.run_data
    )


def _with_tensors(event: AnyEvent, moved: Callable[[DebugTensor], DebugTensor]) -> AnyEvent:
    if not isinstance(event, DebugEvent) or event.value is None:
        return event
    value = event.value
    tensor = moved(value.tensor) if value.tensor is not None else None
    tensors = tuple(map(moved, value.tensors)) if value.tensors is not None else None
    return replace(event, value=replace(value, tensor=tensor, tensors=tensors))
