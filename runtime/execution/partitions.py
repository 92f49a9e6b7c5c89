"""The delegates of a method: initialized when it is loaded, called by its instructions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from runtime.delegates.errors import DelegateError
from runtime.delegates.interface import (
    BackendExecutionContext,
    BackendInitContext,
    BackendInterface,
    DelegateTracer,
)
from runtime.delegates.stepping import DelegateSteps
from runtime.emulation.backend import EmulatedBackend
from runtime.emulation.find import Emulation
from runtime.errors import OF_BACKEND, ErrorCode, ExecutionError, invalid_program
from runtime.execution.binding import BoundInstruction, Call
from runtime.program.values import ValueTable
from runtime.tracing.tracer import EventTracer
from schema.errors import FormatError
from schema.etrecord import RecordFile
from schema.program import ProgramFile
from schema.program import model as m

# What backends say of a payload that they do not run; the recorded graph may stand in for it.
_REFUSED = frozenset((ErrorCode.DelegateInvalidCompatibility, ErrorCode.NotSupported))


@dataclass(frozen=True, slots=True)
class LoadedPartition:
    """A loaded delegate of a plan.

    Attributes:
        name: id of its backend
        backend: the backend
        handle: returned by the backend's `init`
    """

    name: str
    backend: BackendInterface
    handle: Any


@dataclass(slots=True)
class RunPosition:
    """Chain and instruction that run, for events logged from inside an instruction."""

    chain: int = -1
    instruction: int = 0


def load_partitions(
    plan: m.ExecutionPlan,
    program: ProgramFile,
    context: BackendInitContext,
    record: RecordFile | None = None,
) -> list[LoadedPartition]:
    """Return the delegates of a plan, initialized by their backends.

    Args:
        plan: the plan
        program: its program
        context: for the backends
        record: of the same program; its graphs emulate the partitions of missing backends

    Raises: ExecutionError NotFound with all missing backends
    """
    backends = context.backends
    unknown = sorted({entry.id for entry in plan.delegates} - {*backends.registered_backend_names})
    if unknown and record is None:
        known = ", ".join(backends.registered_backend_names) or "none"
        raise ExecutionError(
            ErrorCode.NotFound,
            f"the program needs {', '.join(unknown)}; registered backends: {known}",
            remedy="Register the backend before loading, load with the ETRecord of this program "
            "to run its original graph instead, or lower the program without it.",
        )
    found: list[LoadedPartition] = []
    for number, entry in enumerate(plan.delegates):
        if entry.id in unknown and record is not None:
            found.append(_emulated(plan, number, Emulation(record, program), EmulatedBackend()))
            continue
        try:
            kept: Mapping[str, bytes] = {}
            if record is not None:
                kept = record.kept(_payload(program, entry))
            own = replace(context, partition=number, kept=kept)
            found.append(_loaded(entry, program, own))
        except ExecutionError as error:
            refused = error.code in _REFUSED
            if record is None or not refused or backends.backend(entry.id).payload_is_all:
                raise
            stand_in = EmulatedBackend(f"does not run the payload: {_reason(error)}")
            try:
                found.append(_emulated(plan, number, Emulation(record, program), stand_in))
            except ExecutionError as why:  # the first cause stays, with what was tried
                error.reason = f"{error.reason}; emulated by its record: {why.reason}"
                raise error from why
    return found


def _payload(program: ProgramFile, entry: m.BackendDelegate) -> memoryview:
    try:
        return program.delegate_data(entry)
    except FormatError as error:
        raise invalid_program(str(error)) from None


def _reason(error: ExecutionError) -> str:
    return error.why if isinstance(error, DelegateError) else error.reason


def _emulated(
    plan: m.ExecutionPlan, number: int, emulation: Emulation, backend: EmulatedBackend
) -> LoadedPartition:
    name = plan.delegates[number].id
    try:
        return LoadedPartition(name, backend, emulation.subgraph(plan, number))
    except ExecutionError as error:
        raise error.located(operator=name) from None


def _loaded(
    entry: m.BackendDelegate, program: ProgramFile, context: BackendInitContext
) -> LoadedPartition:
    backend = context.backends.backend(entry.id)
    if not backend.is_available():
        raise ExecutionError(
            ErrorCode.NotFound, f"backend {entry.id} cannot run on this machine", remedy=OF_BACKEND
        )
    specs = {spec.key: bytes(spec.value) for spec in entry.compile_specs}
    try:
        processed = _payload(program, entry)
        return LoadedPartition(entry.id, backend, backend.init(context, processed, specs))
    except FormatError as error:
        raise invalid_program(str(error)) from None
    except ExecutionError as error:
        raise error.located(operator=entry.id) from None
    except Exception as error:
        raise ExecutionError(
            ErrorCode.DelegateInvalidCompatibility,
            f"{type(error).__name__}: {error}",
            remedy="The backend raised it in its initialization (__cause__ has the traceback): "
            "fix the backend, or compile the program again for its version.",
        ).located(operator=entry.id) from error


def delegate_call(
    call: m.DelegateCall,
    partition: LoadedPartition,
    table: ValueTable,
    tracer: Callable[[], EventTracer | None],
    place: tuple[str, RunPosition],
    exchanged: Collection[int] = (),
) -> BoundInstruction:
    """Return the instruction that runs a partition.

    Args:
        call: the instruction
        partition: that it calls
        table: the values
        tracer: returns the current tracer
        place: name of the method, and the running instruction
        exchanged: values whose table entry changes while the method runs
    """
    run = partial(_execute, call.args, partition, table, tracer, place)
    slots = [
        None if index in exchanged else table.slots.get(id(table.items[index]))
        for index in call.args
    ]
    bound = partition.backend.bound(partition.handle, slots)
    untraced: Call | None = None
    if bound is not None:
        untraced = partial(_execute_untraced, bound.untraced, run)
        run = partial(_execute_bound, bound.traced, run, tracer, place[1])
    enter = partial(_enter, call.args, partition, table, place)
    written = partition.backend.written(partition.handle)
    known = (
        None
        if written is None
        else tuple(index for place, index in enumerate(call.args) if place in written)
    )
    return BoundInstruction(
        "DELEGATE_CALL",
        run,
        logged=call.args,
        operator=partition.name,
        enter=enter,
        written=known,
        untraced=untraced,
    )


def _execute(
    args: tuple[int, ...],
    partition: LoadedPartition,
    table: ValueTable,
    tracer: Callable[[], EventTracer | None],
    place: tuple[str, RunPosition],
) -> None:
    method, at = place
    inner = DelegateTracer(tracer(), (at.chain, at.instruction))
    context = BackendExecutionContext(inner, method, table, args)
    values = [table.resolve(table.items[index]) for index in args]
    partition.backend.execute(context, partition.handle, values)


_UNTRACED = DelegateTracer(None, (0, 0))


def _execute_bound(
    bound: Callable[[DelegateTracer], bool],
    otherwise: Callable[[], None],
    tracer: Callable[[], EventTracer | None],
    at: RunPosition,
) -> None:
    recorder = tracer()
    inner = _UNTRACED if recorder is None else DelegateTracer(recorder, (at.chain, at.instruction))
    if not bound(inner):
        otherwise()


def _execute_untraced(bound: Callable[[], bool], otherwise: Callable[[], None]) -> None:
    if not bound():
        otherwise()


def _enter(
    args: tuple[int, ...],
    partition: LoadedPartition,
    table: ValueTable,
    place: tuple[str, RunPosition],
) -> DelegateSteps | None:
    method, at = place
    inner = DelegateTracer(None, (at.chain, at.instruction))
    context = BackendExecutionContext(inner, method, table, args)
    values = [table.resolve(table.items[index]) for index in args]
    return partition.backend.steps(context, partition.handle, values)
