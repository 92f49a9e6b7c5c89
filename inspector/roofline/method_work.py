"""The work of each operator of a method: from the program's tensors, else the recorded graph."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from inspector.files.session import Session
from inspector.graph.instruction_names import dotted
from inspector.graph.model_graph import ModelNode, model_graph
from inspector.graph.plan_graph import plan_graph
from inspector.join.int_maps import RunMap
from inspector.join.node_index import base_operator, walk_nodes
from inspector.join.record_maps import edge_graph
from inspector.roofline.operators import RULES
from inspector.roofline.payload_sizes import with_sizes
from inspector.roofline.rules import no_work
from inspector.roofline.run_sizes import run_sizes
from inspector.roofline.work import NO_WORK, Rule, Work, node_work, total, unknown
from schema.backends import Backend, backend_of, resolve
from schema.graph import Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.objects.identity_cache import identity_cache

_SCALARS = "executorch_prim::"  # all other functions of it compute sizes
_EXAMPLE = unknown("dynamic sizes: the payload has those of an example")
_OF_RECORD = "FLOPs and bytes are of the recorded graph, before delegates fuse its nodes"
_BODIES = "the operators inside of it are not counted"


@dataclass(frozen=True, slots=True)
class OperatorWork:
    """An operator of a method and its work in one pass.

    Attributes:
        label: operator name; node name inside of a delegate
        instruction: index over all chains, None without a program
        delegate: index in the method's delegates, None outside
        backend: backend id, empty outside of delegates
        node: name of the payload node or recorded node, empty for instructions
        work: FLOPs and bytes
    """

    label: str
    instruction: int | None
    delegate: int | None
    backend: str
    node: str
    work: Work


@dataclass(frozen=True, slots=True, eq=False)
class MethodWork:
    """The work of a method.

    Attributes:
        operators: in the order of the instructions, the nodes of a delegate for its call
        by_step: instruction -> positions in operators, none for control flow
        recorded: node of the recorded graph -> its work
        missing: why nothing is known, empty where there is a program or a recorded graph
    """

    operators: tuple[OperatorWork, ...]
    by_step: Mapping[int, tuple[int, ...]]
    recorded: Mapping[str, Work]
    missing: str = ""

    def of_step(self, step: int) -> Work | None:
        """Return the work of an instruction, with all of a delegate; None if it is unknown."""
        places = self.by_step.get(step)
        return None if places is None else total(self.operators[at].work for at in places)

    def inside(self, step: int, nodes: Sequence[str]) -> Work | None:
        """Return the work of nodes of a delegate that an instruction calls; None if unknown."""
        own = {self.operators[at].node: at for at in self.by_step.get(step, ())}
        found = [own[name] for name in nodes if name in own]
        return total(self.operators[at].work for at in found) if len(found) == len(nodes) else None

    def of_node(self, node: ModelNode, steps: Sequence[int]) -> Work:
        """Return the work of a node of the displayed graph.

        Args:
            node: of the recorded graph, or of the program with its payloads
            steps: instructions that run it
        """
        own = self.of_step(steps[0]) if node.delegate is None and len(steps) == 1 else None
        if own is None:
            own = self.recorded.get(node.name, self.recorded.get(node.node.name))
        if own is None and steps:
            own = self.inside(steps[0], (node.node.name,))
        if own is not None:
            return own
        whole = self.of_step(steps[0]) if steps else None
        reason = whole.reason if whole is not None else ""
        return unknown(reason or "not matched to an operator of the program")

    @property
    def total(self) -> Work:
        """Return the sum, each instruction once; missing where one operator is."""
        if self.missing:
            return unknown(self.missing)
        return total(one.work for one in self.operators)

    @property
    def known(self) -> Work:
        """Return the sum over operators whose FLOPs are known: a lower bound of the total."""
        return total(one.work for one in self.operators if one.work.nbytes is not None)

    @property
    def unknown(self) -> tuple[OperatorWork, ...]:
        """Return the operators whose FLOPs or bytes are missing."""
        return tuple(
            one for one in self.operators if one.work.flops is None or one.work.nbytes is None
        )


@identity_cache
def method_work(session: Session, method: str) -> MethodWork:
    """Return the work of a method's operators; empty without a program and a record."""
    recorded = method_recorded(session, method)
    program = session.program
    if program is None or method not in session.methods:
        missing = "" if model_graph(session, method) is not None else "no program and no ETRecord"
        return MethodWork(tuple(_of_record(session, method, recorded)), {}, recorded, missing)
    graph = _as_run(session, method, plan_graph(program, method))
    operators: list[OperatorWork] = []
    starts = [0]
    for node in graph.nodes:
        step = node.attributes.get("instruction")
        if isinstance(step, int):
            operators += _of_node(session, method, graph, node, step)
            starts.append(len(operators))
    return MethodWork(tuple(operators), RunMap(starts, range(len(operators))), recorded)


def work_note(session: Session) -> str:
    """Return which graph FLOPs and bytes are of where that is not the one that runs, else empty."""
    if session.program is not None or session.record is None:
        return ""
    found = (method_work(session, name).operators for name in session.methods)
    return _OF_RECORD if any(one.backend for some in found for one in some) else ""


def operator_rule(target: str) -> Rule | None:
    """Return the rule of an operator in either spelling of its name, None if there is none."""
    base = base_operator(target)
    return RULES.get(base) or (no_work if base.startswith(_SCALARS) else None)


def _of_node(
    session: Session, method: str, graph: Graph, node: GraphNode, number: int
) -> list[OperatorWork]:
    if node.kind is NodeKind.CALL:
        work = node_work(node, graph.values, operator_rule(node.target))
        return [OperatorWork(dotted(node.target), number, None, "", "", work)]
    if node.kind is not NodeKind.DELEGATE:
        return []  # jumps, moves and frees
    index = node.attributes.get("delegate")
    delegate = index if isinstance(index, int) else None
    inside = graph.subgraphs.get(node.subgraphs[0]) if node.subgraphs else None
    whole = OperatorWork(node.target, number, delegate, node.target, "", NO_WORK)
    if inside is None or not backend_of(node.target).work_rules:
        return _unread(session, method, whole, inside)
    given, results = (
        [graph.values.get(one) for one in names] for names in (node.inputs, node.outputs)
    )
    at_sizes = _at_sizes(inside, given, results, backend_of(node.target))
    if at_sizes is None:
        calls = inside.calls()
        return [replace(whole, label=one.name, node=one.name, work=_EXAMPLE) for one in calls]
    bounded = any(map(_is_dynamic, (*given, *results)))
    return _of_payload(whole, at_sizes, bounded=bounded)


def _as_run(session: Session, method: str, graph: Graph) -> Graph:
    """Return a program with the sizes that its runs had, where their report has all of them."""
    sizes = run_sizes(session, method)
    values = dict(graph.values)
    for name, value in values.items():
        if value.tensor is not None and name in sizes:
            tensor = replace(value.tensor, sizes=sizes[name], dynamism=0)
            values[name] = replace(value, tensor=tensor)
    return replace(graph, values=values) if sizes else graph


def _at_sizes(
    inside: Graph,
    given: Sequence[GraphValue | None],
    results: Sequence[GraphValue | None],
    backend: Backend,
) -> Graph | None:
    """Return a payload with the sizes of its call; None where it has others, of an example."""
    if _has_sizes(inside, (*given, *results)):
        return inside
    tensors = [value.tensor for value in given if value is not None and value.tensor is not None]
    if not backend.size_rules or len(tensors) < len(given):
        return None
    inputs = [_in_memory(tensor) for tensor in tensors]
    found = with_sizes(inside, inputs, resolve(backend.size_rules))
    return found if found is not None and _has_sizes(found, (*given, *results)) else None


def _in_memory(tensor: TensorMeta) -> tuple[int, ...]:
    """Return the sizes of a tensor, the outermost dimension in memory first."""
    order = tensor.dim_order or range(len(tensor.sizes))
    sizes = [size if isinstance(size, int) else -1 for size in tensor.sizes]
    return tuple(sizes[place] for place in order)


def _has_sizes(inside: Graph, around: Sequence[GraphValue | None]) -> bool:
    """Return whether inputs and outputs of a payload have as many elements as those of its call."""
    own = [inside.values.get(name) for name in (*inside.inputs, *inside.outputs)]
    return _counts(own) == _counts(around)


def _counts(values: Sequence[GraphValue | None]) -> list[int]:
    """Return the numbers of elements of tensors, the smallest first: layouts may differ."""
    tensors = [value.tensor for value in values if value is not None and value.tensor is not None]
    sizes = [[size for size in tensor.sizes if isinstance(size, int)] for tensor in tensors]
    return sorted(map(math.prod, sizes))


def _unread(
    session: Session, method: str, whole: OperatorWork, inside: Graph | None
) -> list[OperatorWork]:
    """Return the work of a delegate by its recorded nodes, else unknown work of the call."""
    graph = model_graph(session, method)
    nodes = graph.nodes if graph is not None and graph.source == "record" else ()
    own = [node for node in nodes if node.delegate == whole.delegate]
    recorded = method_recorded(session, method)
    if not own or any(node.name not in recorded for node in own):
        why = "the payload cannot be read" if inside is None else "its nodes have no rules"
        return [replace(whole, work=unknown(f"{whole.label}: {why}"))]
    return [
        replace(whole, label=node.node.target, node=node.name, work=recorded[node.name])
        for node in own
    ]


def _of_payload(whole: OperatorWork, inside: Graph, *, bounded: bool) -> list[OperatorWork]:
    rules: Mapping[str, Rule] = resolve(backend_of(whole.backend).work_rules)
    found: list[OperatorWork] = []
    for node in inside.calls():
        work = node_work(node, inside.values, rules.get(node.target))
        work = replace(work, bounded=work.bounded or bounded)
        found.append(replace(whole, label=node.name, node=node.name, work=work))
    return found


def _is_dynamic(value: GraphValue | None) -> bool:
    return value is not None and value.tensor is not None and value.tensor.dynamism != 0


@identity_cache
def method_recorded(session: Session, method: str) -> dict[str, Work]:
    """Return the work of the nodes of the recorded graph, by name; empty without a record."""
    graph = edge_graph(session.record, method) if session.record is not None else None
    return {} if graph is None else _of_graph(graph)


def _of_graph(graph: Graph) -> dict[str, Work]:
    values = dict(graph.values)
    for inner in graph.subgraphs.values():
        values.update(inner.values)
    found: dict[str, Work] = {}
    for node in walk_nodes(graph):
        if node.kind is NodeKind.CALL:
            is_part = node.target.rpartition(".")[2] == "getitem"
            rule = no_work if is_part else operator_rule(node.target)
            found[node.name] = node_work(node, values, rule)
        elif node.kind is NodeKind.CONTROL:
            found[node.name] = unknown(f"{node.target}: {_BODIES}")
    return found


def _of_record(session: Session, method: str, recorded: Mapping[str, Work]) -> list[OperatorWork]:
    graph = model_graph(session, method)
    if graph is None:
        return []
    return [
        OperatorWork(
            node.node.target, None, node.delegate, node.backend, node.name, recorded[node.name]
        )
        for node in graph.nodes
        if node.name in recorded
    ]
