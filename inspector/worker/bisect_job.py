"""A bisection in the worker: the source is read once, then program after program is tried."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compiler.delegate.lowered_module import LoweredBackendModule
from compiler.errors import CompileError
from compiler.pipeline.edge_manager import EdgeProgramManager
from inspector.experiments.bisect.bound import Bound, parse_bound
from inspector.experiments.bisect.search import Ranges
from inspector.experiments.gates.requirement import Kind
from inspector.jobs.bisect import BisectJob
from inspector.jobs.bisect_trials import CandidateNode, Trial
from inspector.recipes.compile_job import CompileJob
from inspector.toolchain.table import toolchain_named
from inspector.worker import executing, exporter
from inspector.worker.backend_options import set_backend_options
from inspector.worker.bisect_search import Valued, not_here, searched, tried, without
from inspector.worker.compile_job import MessageCollector, source_of
from inspector.worker.exported_file import UnreadableExportError
from inspector.worker.exporter import AnswerError, Say, timed_stage
from inspector.worker.guarding import origins_of
from inspector.worker.lowering import backend_config, check_names
from inspector.worker.probing import Probe, ProbeError
from inspector.worker.tasks import Task
from inspector.worker.warm import Warm
from runtime import Runtime
from runtime.errors import ExecutionError
from schema.errors import FormatError
from schema.etrecord.parts.verdicts import NodeOutcome
from schema.vendors.names import flow_vendor, unknown_partitioner

_UNHELPFUL = (ProbeError, CompileError, ExecutionError, FormatError, MemoryError)


def work(job: BisectJob, task: Task) -> dict[str, Any]:
    """Bisect in the folder of a task; see ``bisect``.

    Raises: AnswerError for a flow, which delegates nothing that could be removed
    """
    flow = next((one for one in job.compile.partitioners if flow_vendor(one) is not None), "")
    if flow:
        raise AnswerError(unknown_partitioner(flow.partition(":")[0]))
    return toolchain_named(job.compile.toolchain).bisect(job, task)


def bisect_built_in(job: BisectJob, task: Task) -> dict[str, Any]:
    """Bisect programs of the built-in toolchain; see ``bisect``."""
    check_names(job.compile)
    return bisect(job, task.folder, task.notify, task.options)


def failure(error: BaseException) -> dict[str, Any]:
    """Return an error as the content of a message."""
    found = executing.failure(error)
    return {**found, "blame": "unreadable"} if isinstance(error, UnreadableExportError) else found


def bisect(job: BisectJob, folder: Path, notify: Say, how: Mapping[str, Any]) -> dict[str, Any]:
    """Search the smallest set of nodes to remove; return the result.

    Args:
        job: the request
        folder: for the programs of trials
        notify: called with messages
        how: ``candidates`` and ``trials`` of an earlier worker

    Raises: AnswerError, RequirementError, and errors of the source or its first compile
    """
    listener = MessageCollector(notify)
    exporter.redirect_logs(listener)
    set_backend_options(job.backend_options)
    bound = parse_bound(job.bound)
    warm = Warm()
    source = warm.source(job.compile, lambda: source_of(job.compile, folder, listener), listener)
    source = warm.quantize_source(job.compile, source, listener)
    trying = _Trials(job, bound, Probe(job, bound, source, folder), warm, listener)
    with timed_stage(listener, "lower"):
        nodes = trying.candidates()
    return searched(nodes, trying.trial, notify, how)


def absent_backends(edge: EdgeProgramManager) -> list[str]:
    """Return the backends of the delegates that are not registered here."""
    return sorted(
        delegate_backends(edge) - set(Runtime.get().backend_registry.registered_backend_names)
    )


def delegate_backends(edge: EdgeProgramManager) -> set[str]:
    """Return the backends of the delegates."""
    modules = (
        module
        for name in edge.methods
        for module in edge.exported_program(name).graph_module.modules()
    )
    return {one.backend_id for one in modules if isinstance(one, LoweredBackendModule)}


class _Trials:
    """Builds and evaluates trial programs."""

    def __init__(
        self, job: BisectJob, bound: Bound, probe: Probe, warm: Warm, listener: MessageCollector
    ) -> None:
        self._job = job
        self._bound = bound
        self._probe = probe
        self._warm = warm
        self._counts = listener
        self._nodes: list[CandidateNode] = []

    def candidates(self) -> list[CandidateNode]:
        """Return the exported nodes that are at least partly delegated, in the order of the graph.

        Raises: AnswerError without partitioners, for an unknown method, or for backends that do
            not run here
        """
        if not self._job.compile.partitioners:
            raise AnswerError("the recipe names no partitioner to take nodes from")
        edge = self._lowered(self._job.compile)
        method = self._job.method
        if method and method not in edge.methods:
            there = ", ".join(sorted(edge.methods))
            raise AnswerError(f"unknown method {method!r}; available: {there}")
        kind = self._bound.kind
        absent = [] if self._job.device or kind is Kind.PROGRAM else absent_backends(edge)
        if absent:
            raise AnswerError(not_here(absent))
        if not self._job.device and self._bound.kind not in (None, Kind.PROGRAM):
            self._check_payloads(edge)
        origins = origins_of(edge)
        self._nodes = [
            node
            for name, found in origins.items()
            if method in ("", name)
            for node in _taken(name, found, edge)
        ]
        return self._nodes

    def _check_payloads(self, edge: EdgeProgramManager) -> None:
        """Raise AnswerError if a payload of the complete program would only be emulated."""
        backends = Runtime.get().backend_registry
        if all(backends.backend(one).payload_is_all for one in delegate_backends(edge)):
            return
        stand_in = self._probe.stand_in(edge.to_executorch(backend_config(self._job.compile)))
        if stand_in is not None:
            raise AnswerError(not_here([stand_in.backend], stand_in.note))

    def trial(self, removed: Ranges) -> Trial:
        """Return the trial of a program without some of its delegated nodes."""
        return tried(removed, self._bound, lambda: self._value(removed), self._counts, _UNHELPFUL)

    def _value(self, removed: Ranges) -> Valued:
        job = without(self._job.compile, self._nodes, removed)
        edge = self._lowered(job)
        program = edge.to_executorch(backend_config(job))
        return self._probe.value(edge, program)

    def _lowered(self, job: CompileJob) -> EdgeProgramManager:
        return self._warm.lowered(job, self._probe.source, lambda _: None)


def _taken(method: str, origins: dict[str, str], edge: EdgeProgramManager) -> list[CandidateNode]:
    """Return the exported nodes that are at least partly delegated, once each."""
    found: dict[str, CandidateNode] = {}
    order = {node: place for place, node in enumerate(origins)}
    verdicts = [v for v in edge.verdicts[method] if v.outcome is NodeOutcome.DELEGATED]
    for one in sorted(verdicts, key=lambda v: order.get(v.node, len(order))):
        name = origins.get(one.node, one.node)
        node = CandidateNode(method, name, one.operator, one.rule, one.partitioner, one.source)
        known = found.get(name)
        if known is None or (known.rule == known.partitioner != one.rule):
            found[name] = node
    return list(found.values())
