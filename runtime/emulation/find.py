"""Finds in an ETRecord the graph that a partition of a program was lowered from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

import torch

from runtime.emulation.calls import call_of, graph_of, tensor_of
from runtime.emulation.names import Handles, ValueMatcher, reads
from runtime.emulation.naming import consistent_names
from runtime.emulation.recorded import RecordedGraph
from runtime.errors import ErrorCode, ExecutionError
from schema.errors import FormatError
from schema.etrecord import LoweredModule, RecordFile, SavedTree, TensorData, lowered_modules
from schema.graph import Graph, GraphNode, NodeKind
from schema.program import ProgramFile
from schema.program import model as m


class Emulation:
    """The record of a program, from which its partitions can be run.

    Args:
        record: generated together with the program
        file: the program
    """

    def __init__(self, record: RecordFile, file: ProgramFile) -> None:
        self._record = record
        self._file = file

    def subgraph(self, plan: m.ExecutionPlan, number: int) -> RecordedGraph:
        """Return the graph of a partition.

        Raises: ExecutionError NotFound if the record belongs to a different program or is
            incomplete
        """
        place, call = _call_of(plan, number)
        try:
            graph = self._record.edge_graph(plan.name)
            if graph is None:
                raise _another(f"it has no edge graph of {plan.name!r}")
            found = self._lowered(graph, plan.delegates[number])
            if found is None:
                found = self._by_handles(graph, plan, place, call)
        except FormatError as error:
            raise _another(str(error)) from None
        if len(found.inputs) + len(found.outputs) != len(call.args):
            raise _another(
                f"the partition is called with {len(call.args)} values; its graph has "
                f"{len(found.inputs)} inputs and {len(found.outputs)} results"
            )
        return found

    def _lowered(self, graph: Graph, delegate: m.BackendDelegate) -> RecordedGraph | None:
        """Return the graph recorded with the payload, None in records taken before delegation."""
        processed = self._file.delegate_data(delegate)
        for module in lowered_modules(graph).values():
            if module.backend_id == delegate.id and module.processed == bytes(processed):
                return _kept(module)
        return None

    def _by_handles(
        self, graph: Graph, plan: m.ExecutionPlan, place: int, call: m.DelegateCall
    ) -> RecordedGraph:
        """Return the graph of the nodes that have the debug handles of an instruction."""
        record = self._record
        known = (record.delegate_map or {}).get(plan.name, {}).get(place)
        backend = plan.delegates[call.delegate_index].id
        if known is None or known.name != backend:
            raise _another(f"it has no partition of {backend} at instruction {place}")
        handles = (record.debug_handle_map or {}).get(plan.name, {})
        known = dict(zip(plan.inputs, graph.inputs, strict=False))
        known.update(zip(plan.outputs, graph.outputs, strict=False))
        names = ValueMatcher(graph, plan, handles, known)
        constants = self._constants(graph, plan.name)
        called = {node.name for node in names.nodes.values()}
        split = len(call.args) - names.results(place, call.args)
        between = _between(graph, names.of, (call.args, split), constants, called)
        if between is not None:
            return between
        # Constants that are shared with other instructions are passed; the record has them too.
        passed = {at for one in _delegate_calls(plan) for at in one.args}
        names.of.update({at: f"constant {at}" for at in passed if self._constant(plan, at)})
        nodes = _owned(graph, names, handles, place)
        if not nodes:
            raise _another(f"no node of {plan.name!r} has the debug handles of the partition")
        whole = _whole(graph, nodes, names, call, constants)
        if whole is not None:
            return whole
        agreed = consistent_names(graph, plan, handles, names, constants) or {}
        between = _between(graph, agreed, (call.args, split), constants, ())
        if between is None:
            number = call.delegate_index
            raise _another(f"which values go into partition {number} is not distinguishable")
        return between

    def _constant(self, plan: m.ExecutionPlan, index: int) -> bool:
        value = plan.values[index].val if 0 <= index < len(plan.values) else None
        held = isinstance(value, m.Tensor) and value.allocation_info is None
        return held and isinstance(value, m.Tensor) and self._file.constant_data(value) is not None

    def _constants(self, graph: Graph, method: str) -> dict[str, torch.Tensor]:
        member = self._record.roles.edge[method]
        saved = {**self._record.state_dict(member), **self._record.constants(member)}
        return _held(graph, saved)


def _delegate_calls(plan: m.ExecutionPlan) -> Iterator[m.DelegateCall]:
    for chain in plan.chains:
        for instruction in chain.instructions:
            if isinstance(instruction.instr_args, m.DelegateCall):
                yield instruction.instr_args


def _call_of(plan: m.ExecutionPlan, number: int) -> tuple[int, m.DelegateCall]:
    for chain in plan.chains:
        for place, instruction in enumerate(chain.instructions):
            args = instruction.instr_args
            if isinstance(args, m.DelegateCall) and args.delegate_index == number:
                return place, args
    return 0, m.DelegateCall(number, ())


def _kept(module: LoweredModule) -> RecordedGraph:
    saved = {**_mapping(module.state_dict()), **_mapping(module.constants())}
    return graph_of(module.original, _held(module.original, saved))


def _mapping(saved: SavedTree) -> dict[str, TensorData]:
    value: Any = saved.value
    if not isinstance(value, Mapping):
        return {}
    entries = cast("Mapping[Any, Any]", value)
    return {str(key): entry for key, entry in entries.items() if isinstance(entry, TensorData)}


def _held(graph: Graph, saved: Mapping[str, TensorData]) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for node in graph.nodes:
        target = node.attributes.get("target")
        if node.kind is NodeKind.PLACEHOLDER and target in saved:
            found[node.outputs[0]] = tensor_of(saved[str(target)])
    return found


def _graph_of(
    nodes: Sequence[GraphNode],
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    constants: Mapping[str, torch.Tensor],
) -> RecordedGraph:
    read = {name for node in nodes for name in reads(node)}
    held = {name: constants[name] for name in read if name in constants}
    return RecordedGraph(tuple(call_of(node) for node in nodes), inputs, outputs, held)


def _between(
    graph: Graph,
    names: Mapping[int, str],
    call: tuple[Sequence[int], int],
    constants: Mapping[str, torch.Tensor],
    called: Collection[str],
) -> RecordedGraph | None:
    """Return the graph from the inputs of a call to its results, None if not all have names.

    Compilers copy nodes into the partitions that read them, so that one handle is in several
    partitions and beside them; what lies between two borders is certain all the same.

    Args:
        graph: of the method
        names: value index -> name
        call: value indices, and how many of them are inputs
        constants: of the graph
        called: nodes that kernels run, not the partition
    """
    indices, split = call
    found = tuple(names.get(index, "") for index in indices)
    inputs, outputs = found[:split], found[split:]
    if "" in found or not outputs:
        return None
    makers = {name: node for node in graph.nodes for name in node.outputs}
    wanted, left = dict[str, GraphNode](), [*outputs]
    while left:
        name = left.pop()
        if name in inputs or name in constants:
            continue
        node = makers.get(name)
        if node is None or node.kind is not NodeKind.CALL:
            return None
        if node.name not in wanted:
            wanted[node.name] = node
            left.extend(reads(node))
    if not wanted or any(name in wanted for name in called):
        return None
    nodes = [node for node in graph.nodes if node.name in wanted]
    return _graph_of(nodes, inputs, outputs, constants)


def _whole(
    graph: Graph,
    nodes: Sequence[GraphNode],
    names: ValueMatcher,
    call: m.DelegateCall,
    constants: Mapping[str, torch.Tensor],
) -> RecordedGraph | None:
    """Return the graph of all nodes of a partition, None if the order of its values is open."""
    inputs, outputs = _border(graph, nodes, constants)
    split = len(call.args) - len(outputs)
    ordered = names.placed(inputs, call.args[:split])
    results = names.placed(outputs, call.args[split:])
    if ordered is None or results is None:
        return None
    return _graph_of(nodes, ordered, results, constants)


def _border(
    graph: Graph, nodes: Sequence[GraphNode], constants: Mapping[str, torch.Tensor]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the inputs and outputs of a set of nodes, in the order of use."""
    produced = {name for node in nodes for name in node.outputs}
    read = dict.fromkeys(name for node in nodes for name in reads(node))
    inputs = tuple(name for name in read if name not in produced and name not in constants)
    inside = {node.name for node in nodes}
    outside = {name for n in graph.nodes if n.name not in inside for name in reads(n)}
    outputs = tuple(name for node in nodes for name in node.outputs if name in outside)
    return inputs, outputs


def _owned(graph: Graph, names: ValueMatcher, handles: Handles, place: int) -> list[GraphNode]:
    """Return the nodes of a partition: those with its handles that no kernel call has."""
    requested = {*handles.get(place, ())}
    others = {node.name for node in names.nodes.values()}
    return [
        node
        for node in graph.nodes
        if node.kind is NodeKind.CALL and node.debug_handle in requested and node.name not in others
    ]


def _another(reason: str) -> ExecutionError:
    return ExecutionError(
        ErrorCode.NotFound,
        f"the record does not fit the program: {reason}",
        remedy="Use the ETRecord that was generated together with this program.",
    )
