"""The guard in the worker: each partition of a program loaded alone, and refusals explained."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compiler.partition.rules import names_behind
from compiler.partition.verdicts import calls_in
from compiler.pipeline.edge_manager import EdgeProgramManager
from compiler.pipeline.program_manager import ExecutorchProgramManager
from inspector.jobs.guard import LOADS, REFUSED, UNCHECKED, Guarded, GuardReport
from inspector.recipes.compile_job import PROGRAM
from runtime.backends import built_in_backends
from runtime.delegates.errors import DelegateError, LoadFailure
from runtime.errors import ExecutionError
from runtime.program.loading import decode_program, read
from runtime.program.named_data import NamedDataMap
from schema import flat_tensor
from schema.backends import backend_of
from schema.etrecord.parts.guard import Refusal
from schema.etrecord.parts.verdicts import NodeOutcome, Verdict
from schema.flat_tensor import FlatTensor
from schema.payloads import Payload, decode
from schema.payloads.identity import node_identity
from schema.program import ProgramFile, instructions
from schema.program import model as m

MOST_ROUNDS = 16
"""How often a program is compiled again without the nodes that were refused."""
LARGEST = 1 << 30  # a check loads the weights a second time; --guard on does it for larger files
"""Limit of programs test-loaded by default, in bytes: kernels store weights twice."""
_BOUNDS = "its bounds are"
_ACTIVATIONS = ("aten.clamp.default", "aten.hardtanh.default", "aten.relu.default")
HOST = "torch's kernels (host emulation)"
Maps = Mapping[str, Mapping[int, Mapping[str, tuple[int, ...]]]]


@dataclass(frozen=True)
class CompileFacts:
    """Facts about a compile in addition to its program.

    Attributes:
        verdicts: by method, on each node
        maps: by method and delegate instruction, debug handles of each node of a payload
        origins: by method and node of the edge program, the exported node
    """

    verdicts: Mapping[str, Sequence[Verdict]] = field(default_factory=dict[str, Sequence[Verdict]])
    maps: Maps = field(default_factory=dict[str, Mapping[int, Mapping[str, tuple[int, ...]]]])
    origins: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])


def is_checkable(maps: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> bool:
    """Return whether a program has partitions that can be checked.

    Args:
        maps: by method, the delegate maps of its delegate instructions
    """
    names = {entry["name"] for found in maps.values() for entry in found.values()}
    return any(backend_of(name).has_engines for name in names)


def real_kernels() -> bool:
    """Return whether the real kernels are available; the first call tests them."""
    found = built_in_backends()
    return any(found[name]().trial_engine() for name in found if backend_of(name).has_engines)


def origins_of(edge: EdgeProgramManager) -> dict[str, dict[str, str]]:
    """Return by method and node of the recorded edge program the node that was exported."""
    return {
        method: {path: names_behind(node)[-1] for node, path in calls_in(program.graph_module)}
        for method, program in edge.lowered_programs.items()
    }


def guard_file(
    folder: Path, edge: EdgeProgramManager, program: ExecutorchProgramManager, *, always: bool
) -> GuardReport | None:
    """Test-load the partitions of a program written into a folder.

    Args:
        folder: with the program and its data files
        edge: the edge program
        program: the written program
        always: even if only torch's kernels are available

    Returns: None if no engine is available
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
    return guard(written, beside, CompileFacts(program.verdicts, maps, origins_of(edge)))


def _unchecked(program: ProgramFile, reason: str) -> GuardReport:
    found = [
        Guarded(plan.name, number, entry.id, UNCHECKED, reason=reason)
        for plan in program.plans
        for number, entry in enumerate(plan.delegates)
    ]
    return GuardReport(tuple(found))


def _by_text(handles: Mapping[Any, tuple[int, ...]]) -> Mapping[str, tuple[int, ...]]:
    return {str(place): found for place, found in handles.items()}


def guard(program: ProgramFile, external: Iterable[FlatTensor], known: CompileFacts) -> GuardReport:
    """Load each partition alone and release it; nothing is run.

    The real kernels run in a separate process, which is restarted after a crash.

    Args:
        program: the compiled program
        external: its data files
        known: maps payload nodes to nodes of the graph
    """
    named_data, known_backends = NamedDataMap(external, program), built_in_backends()
    partitions: list[Guarded] = []
    refusals: list[Refusal] = []
    for plan in program.plans:
        called = dict(_calls(plan))
        for number, entry in enumerate(plan.delegates):
            if not backend_of(entry.id).has_engines:
                reason = f"the engine of {entry.id} is not here"
                partitions.append(Guarded(plan.name, number, entry.id, UNCHECKED, reason=reason))
                continue
            backend = known_backends[entry.id]()
            engine = backend.trial_engine() or HOST
            start = time.perf_counter()
            found = backend.try_load(program.delegate_data(entry), named_data, number)
            spent = (time.perf_counter() - start) * 1e3
            verdict = LOADS if found is None else REFUSED
            partitions.append(Guarded(plan.name, number, entry.id, verdict, engine, time_ms=spent))
            if found is not None:
                place = (plan.name, number, called.get(number, -1))
                built = _PayloadNodes(known, place, decode(entry.id, program.delegate_data(entry)))
                refusals += _explained(found, built, engine)
    return GuardReport(tuple(partitions), tuple(refusals))


def _calls(plan: m.ExecutionPlan) -> Iterator[tuple[int, int]]:
    """Yield delegate and instruction of each call."""
    for step, (_, _, instruction) in enumerate(instructions(plan)):
        if isinstance(instruction.instr_args, m.DelegateCall):
            yield instruction.instr_args.delegate_index, step


class _PayloadNodes:
    """The origins of the nodes of one payload.

    Attributes:
        method: it belongs to
        number: index of the delegate
        backend: id of its backend
        verdicts: on the nodes of the method that were delegated
        exported: by edge node, the exported node
    """

    def __init__(self, known: CompileFacts, place: tuple[str, int, int], payload: Payload) -> None:
        self.method, self.number, step = place
        self.backend = payload.backend_id
        found = known.verdicts.get(self.method, ())
        self.verdicts = [v for v in found if v.outcome is NodeOutcome.DELEGATED]
        self.exported = known.origins.get(self.method, {})
        self._handles = known.maps.get(self.method, {}).get(step, {})
        self._payload = payload

    def handles(self, place: int) -> tuple[int, ...]:
        """Return the debug handles of a node of the payload.

        An inserted node has none: those of the nearest node it was inserted for are used, first
        among its users, else among its inputs.
        """
        own = self._handles.get(node_identity(place), ())
        if own:
            return own
        for backwards in (False, True):
            found = self._nearest(place, backwards=backwards)
            if found:
                return found
        return ()

    def _nearest(self, place: int, *, backwards: bool) -> tuple[int, ...]:
        ends = self._ends()
        if place >= len(ends):
            return ()
        reached = set(ends[place][0 if backwards else 1])
        places = reversed(range(place)) if backwards else range(place + 1, len(ends))
        for other in places:
            read, built = ends[other]
            if reached.isdisjoint(built if backwards else read):
                continue
            found = self._handles.get(node_identity(other), ())
            if found:
                return found
            reached |= read if backwards else built
        return ()

    def _ends(self) -> list[tuple[set[str], set[str]]]:
        """Return inputs and outputs of each node; empty for an unreadable payload."""
        graph = self._payload.graph
        nodes = () if graph is None else graph.calls()
        return [({*node.inputs}, {*node.outputs}) for node in nodes]


def _explained(found: LoadFailure, built: _PayloadNodes, engine: str) -> Iterator[Refusal]:
    """Yield a refusal for each faulty node, one per edge node."""
    seen: set[str] = set()
    for error in found.errors:
        at, kind = getattr(error, "node", None), getattr(error, "kind", "")
        reported: list[int] = [
            *_own_handle(error),
            *(built.handles(at) if at is not None else ()),
        ]
        nodes = _nodes_of(reported, built.verdicts)
        if _BOUNDS in error.reason:  # those of an activation that became a part of its operand
            nodes.sort(key=lambda v: v.operator not in _ACTIVATIONS)
        main = nodes[0] if nodes else None
        if main is not None and main.node in seen:
            continue
        seen.add(main.node if main is not None else "")
        yield Refusal(
            method=built.method,
            delegate=built.number,
            backend=built.backend,
            engine=engine,
            phase=found.phase,
            reason=_why(error),
            place=at,
            kind=kind,
            node=main.node if main else "",
            exported=built.exported.get(main.node, "") if main else "",
            operator=main.operator if main else "",
            partitioner=main.partitioner if main else "",
            rule=main.rule if main else "",
            source=main.source if main else "",
            others=tuple(verdict.node for verdict in nodes[1:]),
        )


def _why(error: ExecutionError) -> str:
    found = error.why if isinstance(error, DelegateError) else error.reason
    return found.rstrip(".")


def _own_handle(error: ExecutionError) -> tuple[int, ...]:
    handle = getattr(error, "debug_handle", None)
    return () if not handle else (handle,)


def _nodes_of(handles: Sequence[int], verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the delegated nodes with these handles, quantize nodes last."""
    order = {handle: at for at, handle in reversed(list(enumerate(handles)))}
    found = [v for v in verdicts if v.debug_handle is not None and v.debug_handle in order]
    found.sort(key=lambda v: (_is_quantization(v.operator), order[v.debug_handle or 0]))
    return found


def _is_quantization(operator: str) -> bool:
    return "quantize_" in operator or "choose_qparams" in operator
