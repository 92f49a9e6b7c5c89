"""Delegated and non-delegated nodes of the compiled program.

Three sources, best first; ``counting`` is the one used:
``lowered``  the record contains the graph after delegation, its lowered modules are counted;
``handles``  the record contains the graph before delegation, its nodes are split by the handles
             listed at the delegate instructions;
``payload``  only the program is known: nodes of the decoded payloads against kernel calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import filterfalse

from inspector.files.payloads import delegate_payload
from inspector.files.session import Session
from inspector.join import record_maps
from inspector.join.delegate_owner import call_nodes, ownership
from inspector.join.operator_names import node_type
from schema.etrecord import DelegateMap, RecordFile
from schema.etrecord.parts.verdicts import NodeOutcome, Verdict
from schema.graph import Graph, NodeKind, is_compute
from schema.objects.identity_cache import identity_cache
from schema.objects.plural import plural
from schema.payloads import Payload, describe_compile_specs, total_bytes
from schema.program import ProgramFile, instructions, operator_name
from schema.program import model as m

GETITEM = "getitem"


@dataclass(frozen=True, slots=True)
class OperatorCount:
    """Occurrences of one operator inside and outside delegates."""

    op_type: str
    delegated: int
    non_delegated: int


@dataclass(frozen=True, slots=True)
class DelegateFacts:
    """One delegate of a method.

    Attributes:
        index: position in the method's delegates
        backend_id: as in the program
        nbytes: processed bytes, without data looked up by key
        named_bytes: constants looked up by key
        compile_specs: key -> readable value
        nodes: names of its recorded nodes, else of the payload's
        operators: operator of each node
        calls: instructions that call it
        payload: the decoded payload
    """

    index: int
    backend_id: str
    nbytes: int
    named_bytes: int
    compile_specs: dict[str, str]
    nodes: tuple[str, ...]
    operators: tuple[str, ...]
    calls: tuple[int, ...]
    payload: Payload | None

    @property
    def computing(self) -> int:
        """Return how many of its nodes compute: no getitem, copies, views or q/dq."""
        return sum(map(is_compute, self.operators))


def stored_bytes(delegates: Iterable[DelegateFacts]) -> int:
    """Return the bytes of payloads and of the constants that they look up by key.

    A constant that several of them use, such as the weight of an unrolled loop, is stored once.
    """
    own, named = 0, dict[str, int]()
    for one in delegates:
        own += one.nbytes
        constants = one.payload.constants if one.payload is not None else ()
        named |= {item.name: item.nbytes or 0 for item in constants if item.location == "named"}
    return own + sum(named.values())


@dataclass(frozen=True, slots=True)
class MethodDelegation:
    """Delegation of one method, counted as by the stock tool and by computing nodes.

    Attributes:
        method: name
        counting: lowered, handles or payload
        num_delegated_subgraphs: delegates called
        num_delegated_nodes: call nodes inside delegates
        num_non_delegated_nodes: call nodes outside; a getitem on a delegate's result counts, as in
            the stock tool
        by_operator: both counts per operator, by name
        delegates: one per delegate
        compute_delegated: nodes inside that compute: no getitem, copies, views or q/dq
        compute_non_delegated: the same outside
        nested_non_delegated: nodes of branches and loop bodies, which the stock tool ignores
        verdicts: why each node was delegated or not, as recorded by the compiler; empty if not
            recorded
    """

    method: str
    counting: str
    num_delegated_subgraphs: int
    num_delegated_nodes: int
    num_non_delegated_nodes: int
    by_operator: tuple[OperatorCount, ...]
    delegates: tuple[DelegateFacts, ...]
    compute_delegated: int
    compute_non_delegated: int
    nested_non_delegated: int
    verdicts: tuple[Verdict, ...] = ()

    @property
    def unread(self) -> tuple[DelegateFacts, ...]:
        """Return the delegates whose nodes are unknown: only their payloads could name them."""
        if self.counting != "payload":
            return ()
        return tuple(one for one in self.delegates if one.payload and one.payload.graph is None)

    @property
    def unread_words(self) -> str:
        """Return what the counts leave out, empty where nothing."""
        count = len(self.unread)
        return f"the inside of {plural(count, 'delegate')} cannot be read" if count else ""

    @property
    def summary(self) -> str:
        """Return the three lines of the stock tool's summary."""
        return summary_text(
            self.num_delegated_subgraphs, self.num_delegated_nodes, self.num_non_delegated_nodes
        )


def summary_text(subgraphs: int, delegated: int, non_delegated: int) -> str:
    """Return the documented wording."""
    return (
        f"Total delegated subgraphs: {subgraphs}\n"
        f"Number of delegated nodes: {delegated}\n"
        f"Number of non-delegated nodes: {non_delegated}\n"
    )


def verdicts_by_node(verdicts: Iterable[Verdict]) -> dict[str, tuple[Verdict, ...]]:
    """Return the verdicts on each node, that of the partitioner that took it first."""
    found: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        found.setdefault(verdict.node, []).append(verdict)
    return {
        node: (*filter(_took, given), *filterfalse(_took, given)) for node, given in found.items()
    }


def partition_tags(
    verdicts: Iterable[Verdict], delegates: Mapping[str, int | None]
) -> dict[int, str]:
    """Return the partitioner's tag of each delegate, where a record names it.

    Args:
        verdicts: on the nodes of a method
        delegates: delegate of each node by name
    """
    found: dict[int, Counter[str]] = {}
    for verdict in verdicts:
        delegate = delegates.get(verdict.node)
        if delegate is not None and verdict.partition:
            found.setdefault(delegate, Counter())[verdict.partition] += 1
    return {delegate: counts.most_common(1)[0][0] for delegate, counts in found.items()}


def _took(verdict: Verdict) -> bool:
    return verdict.outcome is NodeOutcome.DELEGATED


@identity_cache
def analyse_delegation(session: Session) -> tuple[MethodDelegation, ...]:
    """Return the delegation of every method that has instructions or a recorded graph."""
    found: list[MethodDelegation] = []
    program, record = session.program, session.record
    for method in session.methods:
        graph = record_maps.edge_graph(record, method) if record is not None else None
        plan = program.plan(method) if program is not None else None
        if graph is None and (plan is None or not instructions(plan)):
            continue
        found.append(_method(session, record, graph, program, method))
    return tuple(found)


def _method(
    session: Session,
    record: RecordFile | None,
    graph: Graph | None,
    program: ProgramFile | None,
    method: str,
) -> MethodDelegation:
    if graph is not None and any(node.kind is NodeKind.DELEGATE for node in graph.nodes):
        inside, outside, counting = *_lowered_sides(graph), "lowered"
    elif graph is not None and record is not None:
        inside, outside, counting = *_handle_sides(session, graph, method), "handles"
    else:
        assert program is not None
        inside, outside, counting = *_payload_sides(session, program, method), "payload"
    delegates = _delegates(session, program, record, method, inside)
    counted = _counted(method, counting, inside, outside, graph, delegates)
    if record is None:
        return counted
    return replace(counted, verdicts=record_maps.verdicts(record, method))


Sides = tuple[dict[int, list[tuple[str, str]]], list[tuple[str, str]]]  # (name, operator type)


def _lowered_sides(graph: Graph) -> Sides:
    inside: dict[int, list[tuple[str, str]]] = {}
    for node in graph.nodes:
        if node.kind is NodeKind.DELEGATE:
            lowered = graph.subgraphs.get(node.subgraphs[0]) if node.subgraphs else None
            inside[len(inside)] = _pairs(lowered) if lowered is not None else []
    return inside, _pairs(graph)


def _pairs(graph: Graph) -> list[tuple[str, str]]:
    return [(node.name, node_type(node.name, node.target)) for node in call_nodes(graph)]


def _handle_sides(session: Session, graph: Graph, method: str) -> Sides:
    own = ownership(session, graph, method)
    inside: dict[int, list[tuple[str, str]]] = {call: [] for call in range(len(own.calls))}
    outside: list[tuple[str, str]] = []
    for node, call in zip(own.nodes, own.owners, strict=True):
        side = outside if call is None else inside[call]
        side.append((node.name, node_type(node.name, node.target)))
    assert session.record is not None
    outputs = record_maps.output_counts(session.record, method)
    for number in own.calls:
        # The compiled graph reads each result of a delegate through a getitem.
        outside += [(f"{GETITEM} of delegate call {number}", GETITEM)] * outputs.get(number, 1)
    return inside, outside


def _payload_sides(session: Session, program: ProgramFile, method: str) -> Sides:
    plan = program.plan(method)
    inside: dict[int, list[tuple[str, str]]] = {}
    for index in range(len(plan.delegates)):
        graph = delegate_payload(program, plan, index, session.external).graph
        nodes = graph.calls() if graph is not None else ()
        inside[index] = [(node.name, node.target) for node in nodes]
    outside = [
        (f"instruction {step}", operator_name(plan, instruction.instr_args))
        for step, (_, _, instruction) in enumerate(instructions(plan))
        if isinstance(instruction.instr_args, m.KernelCall)
    ]
    return inside, outside


def _delegates(
    session: Session,
    program: ProgramFile | None,
    record: RecordFile | None,
    method: str,
    inside: dict[int, list[tuple[str, str]]],
) -> tuple[DelegateFacts, ...]:
    if program is None:
        return _record_delegates(record, method, inside)
    plan = program.plan(method)
    called = _called_by(plan)
    order = sorted(called, key=lambda index: called[index][0])
    found: list[DelegateFacts] = []
    for index, delegate in enumerate(plan.delegates):
        payload = delegate_payload(program, plan, index, session.external)
        position = order.index(index) if index in order else index
        pairs = inside.get(position, [])
        specs = [(spec.key, bytes(spec.value)) for spec in delegate.compile_specs]
        found.append(
            DelegateFacts(
                index,
                delegate.id,
                payload.size,
                total_bytes(item for item in payload.constants if item.location == "named"),
                {key: str(value) for key, value in describe_compile_specs(delegate.id, specs)},
                tuple(name for name, _ in pairs),
                tuple(operator for _, operator in pairs),
                tuple(called.get(index, ())),
                payload,
            )
        )
    return tuple(found)


def _called_by(plan: m.ExecutionPlan) -> dict[int, list[int]]:
    called: dict[int, list[int]] = {}
    for step, (_, _, instruction) in enumerate(instructions(plan)):
        args = instruction.instr_args
        if isinstance(args, m.DelegateCall):
            called.setdefault(args.delegate_index, []).append(step)
    return called


def _record_delegates(
    record: RecordFile | None, method: str, inside: dict[int, list[tuple[str, str]]]
) -> tuple[DelegateFacts, ...]:
    entries: Mapping[int, DelegateMap] = {}
    if record is not None:
        entries = record_maps.delegates(record, method)
    found: list[DelegateFacts] = []
    for index, (number, entry) in enumerate(sorted(entries.items())):
        pairs = inside.get(index, [])
        names = tuple(name for name, _ in pairs)
        operators = tuple(operator for _, operator in pairs)
        found.append(DelegateFacts(index, entry.name, 0, 0, {}, names, operators, (number,), None))
    return tuple(found)


def _counted(
    method: str,
    counting: str,
    inside: dict[int, list[tuple[str, str]]],
    outside: list[tuple[str, str]],
    graph: Graph | None,
    delegates: tuple[DelegateFacts, ...],
) -> MethodDelegation:
    within = Counter(operator for pairs in inside.values() for _, operator in pairs)
    without = Counter(operator for _, operator in outside)
    operators = sorted(within.keys() | without.keys())
    return MethodDelegation(
        method=method,
        counting=counting,
        num_delegated_subgraphs=len(inside),
        num_delegated_nodes=within.total(),
        num_non_delegated_nodes=without.total(),
        by_operator=tuple(OperatorCount(op, within[op], without[op]) for op in operators),
        delegates=delegates,
        compute_delegated=sum(n for op, n in within.items() if is_compute(op)),
        compute_non_delegated=sum(n for op, n in without.items() if is_compute(op)),
        nested_non_delegated=_nested(graph) if graph is not None else 0,
    )


def _nested(graph: Graph) -> int:
    total = 0
    for node in graph.nodes:
        if node.kind is NodeKind.DELEGATE:
            continue
        for name in node.subgraphs:
            inner = graph.subgraphs.get(name)
            if inner is not None:
                total += len(call_nodes(inner)) + _nested(inner)
    return total
