"""The guard in the worker: each partition of a program loaded alone, and refusals explained."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compiler.managers import EdgeProgramManager
from compiler.partition.rules import names_behind
from compiler.partition.verdicts import calls_in
from compiler.program_manager import ExecutorchProgramManager
from inspector.jobs.description import PROGRAM
from inspector.jobs.guard import LOADS, REFUSED, UNCHECKED, Guarded, GuardReport
from runtime.backends.xnnpack.errors import PartitionError
from runtime.backends.xnnpack.native.available import availability
from runtime.backends.xnnpack.reading import Names, read_plan
from runtime.backends.xnnpack.trial import LOADING, Refused, try_native, try_torch
from runtime.errors import ErrorCode, ExecutionError
from runtime.external import NamedDataMap
from runtime.loading import decode_program, read
from schema import flat_tensor
from schema.errors import FormatError
from schema.etrecord.guard import Refusal
from schema.etrecord.verdicts import Outcome, Verdict
from schema.flat_tensor import FlatTensor
from schema.payloads.xnnpack.identity import node_identity
from schema.program import Program, instructions
from schema.program import model as m

MOST_ROUNDS = 16
"""How often a program is made anew without the nodes that were refused."""
LARGEST = 1 << 30
"""Bytes of a program that is loaded without being asked to: kernels hold weights twice."""
XNNPACK = "XnnpackBackend"
_BOUNDS = "its bounds are"
_ACTIVATIONS = ("aten.clamp.default", "aten.hardtanh.default", "aten.relu.default")
HOST = "torch's kernels (host emulation)"
Maps = Mapping[str, Mapping[int, Mapping[str, tuple[int, ...]]]]


@dataclass(frozen=True)
class Known:
    """What is known about a compile beside its program.

    Attributes:
        verdicts: by method, on each node
        maps: by method and delegate instruction, debug handles of each node of a payload
        origins: by method and node of the edge program, the node that was exported
    """

    verdicts: Mapping[str, Sequence[Verdict]] = field(default_factory=dict[str, Sequence[Verdict]])
    maps: Maps = field(default_factory=dict[str, Mapping[int, Mapping[str, tuple[int, ...]]]])
    origins: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])


def delegates_to_xnnpack(maps: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> bool:
    """Return whether a program has partitions that can be checked.

    Args:
        maps: by method, the delegate maps of its delegate instructions
    """
    return any(entry["name"] == XNNPACK for found in maps.values() for entry in found.values())


def real_kernels() -> bool:
    """Return whether the real kernels can be asked; the first call tests them."""
    return availability().folder is not None


def origins_of(edge: EdgeProgramManager) -> dict[str, dict[str, str]]:
    """Return by method and node of the recorded edge program the node that was exported."""
    return {
        method: {path: names_behind(node)[-1] for node, path in calls_in(program.graph_module)}
        for method, program in edge.lowered_programs.items()
    }


def guard_file(
    folder: Path, edge: EdgeProgramManager, program: ExecutorchProgramManager, *, always: bool
) -> GuardReport | None:
    """Load the partitions of a program that was written into a folder.

    Args:
        folder: with the program and the data files beside it
        edge: that it was made of
        program: as it was written
        always: also where only torch's kernels can be asked

    Returns: None where nobody could be asked
    """
    if not always and not real_kernels():
        return None
    maps = {
        method: {step: _by_text(entry["delegate_map"]) for step, entry in found.items()}
        for method, found in program.delegate_map.items()
    }
    beside = [flat_tensor.decode(read(folder / name)[0]) for name in program.tensor_data_files]
    written = decode_program(read(folder / PROGRAM)[0], PROGRAM)
    files = (folder / name for name in (PROGRAM, *program.tensor_data_files))
    nbytes = sum(path.stat().st_size for path in files)
    if not always and nbytes > LARGEST:
        return _unchecked(written, f"its {nbytes:,} bytes are many to load twice; --guard on does")
    return guard(written, beside, Known(program.verdicts, maps, origins_of(edge)))


def _unchecked(program: Program, reason: str) -> GuardReport:
    found = [
        Guarded(plan.name, number, entry.id, UNCHECKED, reason=reason)
        for plan in program.plans
        for number, entry in enumerate(plan.delegates)
    ]
    return GuardReport(tuple(found))


def _by_text(handles: Mapping[Any, tuple[int, ...]]) -> Mapping[str, tuple[int, ...]]:
    return {str(place): found for place, found in handles.items()}


def guard(program: Program, external: Iterable[FlatTensor], known: Known) -> GuardReport:
    """Load each partition alone and let go of it; nothing is run.

    The real kernels are in a process of their own, which is a new one after it has ended.

    Args:
        program: the compiled program
        external: data files that belong beside it
        known: explains which node of the graph a node of a payload was made of
    """
    names = Names(NamedDataMap(external, program))
    partitions: list[Guarded] = []
    refusals: list[Refusal] = []
    for plan in program.plans:
        called = dict(_calls(plan))
        for number, entry in enumerate(plan.delegates):
            if entry.id != XNNPACK:
                reason = f"the engine of {entry.id} is not here"
                partitions.append(Guarded(plan.name, number, entry.id, UNCHECKED, reason=reason))
                continue
            engine = _engine()
            start = time.perf_counter()
            found = _tried(program, entry, names, number)
            spent = (time.perf_counter() - start) * 1e3
            verdict = LOADS if found is None else REFUSED
            partitions.append(Guarded(plan.name, number, entry.id, verdict, engine, time_ms=spent))
            if found is not None:
                place = (plan.name, number, called.get(number, -1))
                refusals += _explained(found, place, engine, known)
    return GuardReport(tuple(partitions), tuple(refusals))


def _calls(plan: m.ExecutionPlan) -> Iterator[tuple[int, int]]:
    """Yield delegate and instruction of each call."""
    for step, (_, _, instruction) in enumerate(instructions(plan)):
        if isinstance(instruction.instr_args, m.DelegateCall):
            yield instruction.instr_args.delegate_index, step


def _engine() -> str:
    release = availability().release
    return f"the real kernels of {release}" if release else HOST


def _tried(program: Program, entry: m.BackendDelegate, names: Names, number: int) -> Refused | None:
    try:
        plan = read_plan(program.delegate_data(entry), names, number)
    except ExecutionError as error:
        return Refused(LOADING, (error,))
    except FormatError as error:
        return Refused(LOADING, (_unreadable(error, number),))
    return try_native(plan) if real_kernels() else try_torch(plan)


def _unreadable(error: FormatError, number: int) -> PartitionError:
    code = ErrorCode.DelegateInvalidCompatibility
    return PartitionError(code, str(error), partition=number)


def _explained(
    found: Refused, place: tuple[str, int, int], engine: str, known: Known
) -> Iterator[Refusal]:
    """Yield a refusal for each node to blame, those of one edge node once."""
    method, number, step = place
    handles = known.maps.get(method, {}).get(step, {})
    verdicts = [v for v in known.verdicts.get(method, ()) if v.outcome is Outcome.DELEGATED]
    seen: set[str] = set()
    for error in found.errors:
        at, kind = getattr(error, "node", None), getattr(error, "kind", "")
        told: list[int] = [
            *_own_handle(error),
            *(handles.get(node_identity(at), ()) if at is not None else ()),
        ]
        nodes = _nodes_of(told, verdicts)
        if _BOUNDS in error.reason:  # those of an activation that became a part of its operand
            nodes.sort(key=lambda v: v.operator not in _ACTIVATIONS)
        main = nodes[0] if nodes else None
        if main is not None and main.node in seen:
            continue
        seen.add(main.node if main is not None else "")
        yield Refusal(
            method=method,
            delegate=number,
            backend=XNNPACK,
            engine=engine,
            phase=found.phase,
            reason=_why(error),
            place=at,
            kind=kind,
            node=main.node if main else "",
            exported=known.origins.get(method, {}).get(main.node, "") if main else "",
            operator=main.operator if main else "",
            partitioner=main.partitioner if main else "",
            rule=main.rule if main else "",
            source=main.source if main else "",
            others=tuple(verdict.node for verdict in nodes[1:]),
        )


def _why(error: ExecutionError) -> str:
    found = error.why if isinstance(error, PartitionError) else error.reason
    return found.rstrip(".")


def _own_handle(error: ExecutionError) -> tuple[int, ...]:
    handle = getattr(error, "debug_handle", None)
    return () if not handle else (handle,)


def _nodes_of(handles: Sequence[int], verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the delegated nodes with these handles, what only quantises last."""
    order = {handle: at for at, handle in reversed(list(enumerate(handles)))}
    found = [v for v in verdicts if v.debug_handle is not None and v.debug_handle in order]
    found.sort(key=lambda v: (_quantises(v.operator), order[v.debug_handle or 0]))
    return found


def _quantises(operator: str) -> bool:
    return "quantize_" in operator or "choose_qparams" in operator
