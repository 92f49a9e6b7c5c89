"""Runs a recorded program on its representative inputs and keeps the values of its nodes."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from inspector.compat.devtools.etrecord import ETRecord
from inspector.compat.numeric_gap.bodies import has_bodies
from inspector.compat.numeric_gap.recorded import (
    EDGE,
    EXPORTED,
    NodeValue,
    Recorded,
    handles_of_exported,
    own_copy,
)
from inspector.files.session import Session
from inspector.join import record_maps
from inspector.numerics.flat_graph import Scope, Value
from inspector.numerics.replay.inputs import Inputs, run_inputs
from inspector.numerics.replay.references import ReferenceGraph, reference_graph
from inspector.rebuild.serde_rewrite import RebuildError
from runtime.emulation.graph import GraphRun
from runtime.emulation.recorded import UNKNOWN, Sides
from schema.graph import Graph

_LOG = logging.getLogger(__name__)


def recorded_values(
    session: Session, record: ETRecord, method: str, requested: str | None, *, best_effort: bool
) -> Recorded:
    """Run a recorded program and return the values of its nodes; loads torch.

    Args:
        session: opened files
        record: the ETRecord
        method: name
        requested: ``exported_program``, ``edge_dialect_exported_program``, another recorded graph,
            or None for the exported one if all handles have a counterpart in it, else the edge one
        best_effort: accept handles without a counterpart

    Raises: ValueError naming the available graphs; RebuildError if torch cannot read the program
    """
    artifact = record.artifact
    if requested is None and has_bodies(record_maps.edge_graph(artifact, method)):
        requested = EDGE  # handles of what is in bodies lead nowhere
    member, name, handles = "", requested or "", dict[str, int]()
    if requested in (None, EXPORTED):
        handles = handles_of_exported(record, method, best_effort=best_effort)
        member = artifact.roles.exported or "" if handles else ""
        name = EXPORTED
        if requested and not member:
            raise ValueError(
                "Cannot use 'exported_program': it was not recorded, or debug handles do not all"
                " lead back to it; disable_debug_handle_valdiation=True takes those that do"
            )
    if not member and requested in (None, EDGE):
        member, name = artifact.roles.edge.get(method, ""), EDGE
    if not member and requested not in (None, EXPORTED, EDGE):
        member = _extra(artifact.roles.extra, str(requested))
        name = member
    if not member:
        raise ValueError(f"the record has no program of {method}")
    try:
        return _run(session, record, method, member, name, handles)
    except RebuildError as error:
        handles = handles_of_exported(record, method, best_effort=True)
        if name == EXPORTED or not handles or not artifact.roles.exported:
            raise
        _LOG.warning("%s; the exported program is taken instead", error)
        return _run(session, record, method, artifact.roles.exported, EXPORTED, handles)


def _extra(names: Mapping[str, Any] | Sequence[str], requested: str) -> str:
    looked_for = requested if "/" in requested else f"{requested}/forward"
    if looked_for in names:
        return looked_for
    known = ", ".join(repr(name) for name in (EXPORTED, EDGE, *names))
    raise ValueError(f"Reference graph {looked_for!r} not found; available: {known}")


class _Keeper:
    """Keeps the results of the nodes of the outermost graph, by debug handle.

    Args:
        graph: the graph to run
        handles: node -> debug handle; if empty, handles are taken from the nodes
        nested: whether to keep the results inside its branches and loops as well
    """

    def __init__(self, graph: Graph, handles: Mapping[str, int], *, nested: bool) -> None:
        self._nodes: dict[str, tuple[int, str | None]] = {}
        for node in graph.calls():
            handle = handles.get(node.name, 0) if handles else node.debug_handle
            if handle and "getitem" not in node.name:
                self._nodes[node.name] = handle, node.stack_trace or None
        self._nested = nested and has_bodies(graph)
        self.found: dict[int, list[NodeValue]] = {}
        self.executed: dict[Value, list[Any]] = {}

    def observe(self, scope: Scope, name: str, results: Sides, times: int) -> None:
        """Keep the result of a node."""
        del times
        (result,) = results
        if result is UNKNOWN:
            return
        if self._nested:
            self.executed.setdefault((scope, name), []).append(own_copy(result))
        known = self._nodes.get(name) if not scope else None
        if known is not None:
            value = NodeValue(name, own_copy(result), known[1])
            self.found.setdefault(known[0], []).append(value)


def _copied(value: Any) -> Any:  # noqa: ANN401
    """Return a copy of an input with its own memory."""
    return value.detach().clone() if hasattr(value, "clone") else own_copy(value)


def _run(
    session: Session,
    record: ETRecord,
    method: str,
    member: str,
    name: str,
    handles: Mapping[str, int],
) -> Recorded:
    artifact = record.artifact
    reference = reference_graph(artifact, member)
    inputs = run_inputs(session, method, -1, artifact, reference, None)
    edge = member in artifact.roles.edge.values()
    keeper = _Keeper(artifact.graph(member), handles, nested=edge)
    errors = _kept(reference, inputs, keeper)
    if errors and reference.program is None:  # torch's own reader decides
        reference = reference.long_way()
        keeper = _Keeper(artifact.graph(member), handles, nested=edge)
        errors = _kept(reference, inputs, keeper)
    if errors:
        (_, where), why = next(iter(errors.items()))
        raise RebuildError(f"the recorded program failed at {where}: {why}")
    if not inputs.recorded:
        _LOG.warning(
            "the record has no representative inputs: the %s are taken, which is right only if the"
            " run had them; ETRecord.update_representative_inputs sets those of the run",
            inputs.source,
        )
    return Recorded(name, keeper.found, keeper.executed, inputs.source)


def _kept(
    reference: ReferenceGraph, inputs: Inputs, keeper: _Keeper
) -> Mapping[tuple[Scope, str], str]:
    """Run a program, and return the nodes whose kernels failed.

    Raises: ValueError without inputs
    """
    if not inputs.source:
        raise ValueError(
            "Missing etrecord or missing representative inputs within etrecord, both of which are"
            " required for calculating numerical gap; ETRecord.update_representative_inputs sets"
            " the inputs of the run"
        )
    run = GraphRun(reference.graph, keeper.observe)
    # Where an input lies decides on last bits: each is copied.
    run.run([[UNKNOWN if value is None else _copied(value)] for value in inputs.values])
    return run.errors
