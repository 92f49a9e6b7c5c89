"""What the nodes of a recorded program make of the representative inputs, by debug handle."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from inspector.api.etrecord import ETRecord
from inspector.api.exported_program import rebuilt
from inspector.api.serde_rewrite import RebuildError
from inspector.api.torch_bridge import later_copy
from inspector.files.session import Session
from inspector.join import record_maps
from inspector.numerics.bodies import Executed, has_bodies
from inspector.numerics.flat_graph import Scope, Value
from inspector.numerics.graph_run import GraphRun, State
from inspector.numerics.inputs import RECORDED, recorded_inputs, run_inputs
from inspector.numerics.plain_run import plain_graph, plain_run
from inspector.numerics.unknown import UNKNOWN
from schema.graph import Graph, GraphNode, NodeKind

_LOG = logging.getLogger(__name__)
EDGE, EXPORTED = "edge_dialect_exported_program", "exported_program"
_SKIPPED = (NodeKind.PLACEHOLDER, NodeKind.OUTPUT)


@dataclass(frozen=True, slots=True)
class NodeValue:
    """What one node made.

    Attributes:
        name: of the node
        operator: its operator
        value: tensor, list or number
        stack_trace: where the user's code calls it, None when unknown
    """

    name: str
    operator: str
    value: Any
    stack_trace: str | None


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded program and what its nodes made.

    Attributes:
        name: of the graph
        nodes: debug handle -> its nodes, in order
        executed: of a graph with branches or loops: value of a nested graph, or of a node that has
            some -> what was made of it, pass by pass
        inputs: where its inputs come from
    """

    name: str
    nodes: Mapping[int, Sequence[NodeValue]]
    executed: Executed = field(default_factory=dict[Value, list[Any]])
    inputs: str = RECORDED


def recorded_bytes(found: Recorded) -> int:
    """Return the bytes of all values."""
    inside = sum(_bytes(value) for passes in found.executed.values() for value in passes)
    return inside + sum(_bytes(node.value) for nodes in found.nodes.values() for node in nodes)


def copied(found: Recorded) -> Recorded:
    """Return the same with tensors of its own."""
    nodes = {
        handle: [replace(node, value=own_copy(node.value)) for node in each]
        for handle, each in found.nodes.items()
    }
    inside = {
        value: [own_copy(each) for each in passes] for value, passes in found.executed.items()
    }
    return replace(found, nodes=nodes, executed=inside)


def _bytes(value: Any) -> int:  # noqa: ANN401
    if isinstance(value, (tuple, list)):
        return sum(map(_bytes, cast("Sequence[Any]", value)))
    return int(getattr(value, "nbytes", 0))


def handles_of_exported(record: ETRecord, method: str, *, best_effort: bool) -> dict[str, int]:
    """Return node of the exported graph -> debug handle, by the ancestors edge nodes name.

    Args:
        record: with an exported program
        method: name
        best_effort: take what is available, also when edge nodes have no counterpart

    Returns: empty where an edge node has no counterpart
    """
    artifact = record.artifact
    edge, exported = record_maps.edge_graph(artifact, method), record_maps.aten_graph(artifact)
    if edge is None or exported is None:
        return {}
    by_ancestor: dict[str, int] = {}
    for node in _all_nodes(edge):
        if node.debug_handle is not None and node.kind is not NodeKind.DELEGATE:
            for ancestor in node.from_node:
                by_ancestor.setdefault(ancestor, node.debug_handle)
    found: dict[str, int] = {}
    for node in _all_nodes(exported):
        own = f"{node.name}.{artifact.export_graph_id}"
        handle = next((by_ancestor[key] for key in (own, *node.from_node) if key in by_ancestor), 0)
        found[node.name] = handle
    matched = set(found.values())
    wanted = {
        node.debug_handle
        for node in _all_nodes(edge)
        if node.debug_handle is not None and node.kind is not NodeKind.DELEGATE
    }
    return found if best_effort or wanted <= matched else {}


def _all_nodes(graph: Graph) -> list[GraphNode]:
    found = [node for node in graph.nodes if node.kind not in _SKIPPED]
    for inner in graph.subgraphs.values():
        found += _all_nodes(inner)
    return found


def recorded_values(
    session: Session, record: ETRecord, method: str, wanted: str | None, *, best_effort: bool
) -> Recorded:
    """Run a recorded program and return what its nodes made; loads torch.

    Args:
        session: opened files
        record: the ETRecord
        method: name
        wanted: ``exported_program``, ``edge_dialect_exported_program``, another recorded graph, or
            None for the exported one where all handles lead back to it, else the edge one
        best_effort: do not ask that all handles lead back

    Raises: ValueError naming the graphs there are; RebuildError if torch cannot make a program
    """
    artifact = record.artifact
    if wanted is None and has_bodies(record_maps.edge_graph(artifact, method)):
        wanted = EDGE  # handles of what is in bodies lead nowhere
    member, name, handles = "", wanted or "", dict[str, int]()
    if wanted in (None, EXPORTED):
        handles = handles_of_exported(record, method, best_effort=best_effort)
        member = artifact.roles.exported or "" if handles else ""
        name = EXPORTED
        if wanted and not member:
            raise ValueError(
                "Cannot use 'exported_program': it was not recorded, or debug handles do not all"
                " lead back to it; disable_debug_handle_valdiation=True takes those that do"
            )
    if not member and wanted in (None, EDGE):
        member, name = artifact.roles.edge.get(method, ""), EDGE
    if not member and wanted not in (None, EXPORTED, EDGE):
        member = _extra(artifact.roles.extra, str(wanted))
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


def _extra(names: Mapping[str, Any] | Sequence[str], wanted: str) -> str:
    looked_for = wanted if "/" in wanted else f"{wanted}/forward"
    if looked_for in names:
        return looked_for
    known = ", ".join(repr(name) for name in (EXPORTED, EDGE, *names))
    raise ValueError(f"Reference graph {looked_for!r} not found; there are {known}")


class _Keeper:
    """Keeps what the nodes of the outermost graph make, by debug handle."""

    def __init__(
        self, nodes: Iterable[tuple[str, int | None, str, str | None]], handles: Mapping[str, int]
    ) -> None:
        """Take what is known of the nodes.

        Args:
            nodes: name, own debug handle, operator and stack trace of each
            handles: node -> debug handle; empty where the nodes' own count
        """
        self._nodes: dict[str, tuple[int, str, str | None]] = {}
        for name, own, operator, trace in nodes:
            handle = handles.get(name, 0) if handles else own
            if handle and "getitem" not in name:
                self._nodes[name] = handle, operator, trace
        self.found: dict[int, list[NodeValue]] = {}
        self.executed: dict[Value, list[Any]] = {}
        self.nested = False

    def made(self, scope: Scope, name: str, pair: list[Any], times: int) -> None:
        """Keep what a node made."""
        del times
        reference = pair[0]
        if self.nested and reference is not UNKNOWN:
            self.executed.setdefault((scope, name), []).append(own_copy(reference))
        known = self._nodes.get(name) if not scope else None
        if known is not None and reference is not UNKNOWN:
            handle, operator, trace = known
            value = NodeValue(name, operator, own_copy(reference), trace)
            self.found.setdefault(handle, []).append(value)


def own_copy(value: Any) -> Any:  # noqa: ANN401
    """Return a value that later operators in place do not change."""
    if hasattr(value, "clone"):
        return later_copy(value)
    if isinstance(value, (tuple, list)):
        return [own_copy(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def _copied(value: Any) -> Any:  # noqa: ANN401
    """Return an input with memory of its own."""
    return value.detach().clone() if hasattr(value, "clone") else own_copy(value)


def _run(
    session: Session,
    record: ETRecord,
    method: str,
    member: str,
    name: str,
    handles: Mapping[str, int],
) -> Recorded:
    found = _plain(record, method, member, handles)
    if found is not None:
        return Recorded(name, found)
    keeper, inputs = _rebuilt(session, record, method, member, handles)
    return Recorded(name, keeper.found, keeper.executed, inputs)


def _plain(
    record: ETRecord, method: str, member: str, handles: Mapping[str, int]
) -> dict[int, list[NodeValue]] | None:
    """Return what the nodes make, None if the graph or its inputs are not plain."""
    inputs = recorded_inputs(record, method)
    if inputs is None or any(value is None for value in inputs):
        return None
    graph = plain_graph(record.artifact, member)
    if graph is None:
        return None
    nodes = [call.node for call in graph.calls]
    rows = [(n.name, n.debug_handle, n.target, n.stack_trace or None) for n in nodes]
    keeper = _Keeper(rows, handles)
    own = [_copied(value) for value in inputs]  # where an input lies decides on last bits
    done = plain_run(graph, own, lambda node, value: keeper.made((), node.name, [value], 0))
    return keeper.found if done else None


def _rebuilt(
    session: Session, record: ETRecord, method: str, member: str, handles: Mapping[str, int]
) -> tuple[_Keeper, str]:
    """Return what the nodes make of a program that torch reads, and whose inputs they had."""
    program = rebuilt(record.artifact, member, delegates=True)
    inputs = run_inputs(session, method, -1, record, program, None)
    if not inputs.source:
        raise ValueError(
            "Missing etrecord or missing representative inputs within etrecord, both of which are"
            " required for calculating numerical gap; ETRecord.update_representative_inputs sets"
            " the inputs of the run"
        )
    if not inputs.recorded:
        _LOG.warning(
            "the record has no representative inputs: the %s are taken, which is right only if the"
            " run had them; ETRecord.update_representative_inputs sets those of the run",
            inputs.source,
        )
    nodes = [node for node in program.graph.nodes if node.op == "call_function"]
    rows = [
        (n.name, n.meta.get("debug_handle"), str(n.target), n.meta.get("stack_trace"))
        for n in nodes
    ]
    keeper = _Keeper(rows, handles)
    keeper.nested = member in record.artifact.roles.edge.values() and has_bodies(
        record_maps.edge_graph(record.artifact, method)
    )
    going = GraphRun(program, State(), keeper)
    pairs = zip(going.user_inputs, inputs.values, strict=False)
    going.run({key: (_copied(value), UNKNOWN) for key, value in pairs if value is not None})
    if going.errors:
        (_, where), why = next(iter(going.errors.items()))
        raise RebuildError(f"the recorded program failed at {where}: {why}")
    return keeper, inputs.source
