"""The delegate of each node of a graph that was recorded before delegation.

The record lists, for each delegate call, one handle for each node it took. Nodes of one user
operator share a handle, and a delegate may take only some of them: then the remaining instructions
of the program show which ones were not delegated.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from inspector.files.session import Session
from inspector.join import record_maps
from inspector.join.node_index import base_operator
from schema.etrecord import ListedNode, RecordFile, node_list
from schema.etrecord.parts.verdicts import NodeOutcome
from schema.graph import Graph, is_compute
from schema.objects.identity_cache import identity_cache
from schema.program import ProgramFile, instructions, operator_name
from schema.program import model as m

_CALL_DELEGATE = "executorch_call_delegate"


@dataclass(frozen=True, slots=True)
class Ownership:
    """The owner of each listed call node.

    Attributes:
        nodes: call nodes as the stock tool lists them, in order; without unused results
        owners: index into calls, one per node; None if not delegated
        calls: instructions that call a delegate, in order
        delegates: delegate of each call
        backends: backend id of each call
        is_recorded: whether the record names the owners; else the counts of its handles do
    """

    nodes: tuple[ListedNode, ...]
    owners: tuple[int | None, ...]
    calls: tuple[int, ...]
    delegates: tuple[int, ...]
    backends: tuple[str, ...]
    is_recorded: bool = False


def call_nodes(graph: Graph) -> tuple[ListedNode, ...]:
    """Return the call nodes of the stock tool's graph, without unused results."""
    return tuple(
        node
        for node in node_list(graph)
        if node.op == "call_function"
        and not node.name.startswith(_CALL_DELEGATE)
        and "_unused_" not in node.name
    )


@identity_cache
def ownership(session: Session, graph: Graph, method: str) -> Ownership:
    """Return the delegate of each node of a method's recorded graph."""
    record, nodes = session.record, call_nodes(graph)
    if record is None:
        return Ownership(nodes, (None,) * len(nodes), (), (), ())
    entries = record_maps.delegates(record, method)
    handles = record_maps.handles(record, method)
    calls = tuple(sorted(entries))
    taken = [Counter(handles.get(number, ())) for number in calls]
    delegates = _delegate_indices(session.program, method, calls)
    backends = tuple(entries[number].name for number in calls)
    reported = _recorded_owners(record, method, nodes, dict(zip(calls, taken, strict=True)))
    if reported is not None:
        return Ownership(nodes, reported, calls, delegates, backends, is_recorded=True)
    last = {handle: number for number in calls for handle in handles.get(number, ())}
    left = _operators_left(session.program, method, handles, last)
    owners: list[int | None] = [None] * len(nodes)
    for handle, places in _by_handle(nodes).items():
        requested = [index for index, counts in enumerate(taken) for _ in range(counts[handle])]
        if not requested:
            continue
        before, behind = left.get(handle, (Counter(), Counter()))
        chosen = choose(nodes, places, before, len(requested), behind)
        for place, call in zip(chosen, requested, strict=False):
            owners[place] = call
    return Ownership(nodes, tuple(owners), calls, delegates, backends)


def _recorded_owners(
    record: RecordFile, method: str, nodes: Sequence[ListedNode], taken: Mapping[int, Counter[int]]
) -> tuple[int | None, ...] | None:
    """Return the owners according to the record's verdicts; None if these are incomplete.

    A partition belongs to the call that lists its nodes, or else its handles; equal ones are
    matched in order.
    """
    partitions = {
        verdict.node: verdict.partition
        for verdict in record_maps.verdicts(record, method)
        if verdict.outcome is NodeOutcome.DELEGATED
    }
    members: dict[str, list[int]] = {}
    for place, node in enumerate(nodes):
        if partitions.get(node.source):
            members.setdefault(partitions[node.source], []).append(place)
    if not members or len(members) != len(taken):
        return None
    listed = record_maps.taken(record, method)
    named = listed.keys() == taken.keys()
    known = {node.source.rpartition("/")[2] for node in nodes}  # results belong to their node
    waiting: dict[frozenset[object], list[int]] = {}
    for call, (number, counts) in enumerate(taken.items()):
        key = frozenset(known.intersection(listed[number]) if named else counts.items())
        waiting.setdefault(key, []).append(call)
    owners: list[int | None] = [None] * len(nodes)
    for places in members.values():  # in the order of their first nodes
        own = [nodes[place] for place in places]
        counts = Counter(node.debug_handle or 0 for node in own)
        names = (node.source.rpartition("/")[2] for node in own)
        calls = waiting.get(frozenset(names) if named else frozenset(counts.items()))
        if not calls:
            return None
        call = calls.pop(0)
        for place in places:
            owners[place] = call
    return tuple(owners)


def _by_handle(nodes: Sequence[ListedNode]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for place, node in enumerate(nodes):
        if node.debug_handle:
            found.setdefault(node.debug_handle, []).append(place)
    return found


def choose(
    nodes: Sequence[ListedNode],
    places: Iterable[int],
    left: Counter[str],
    count: int,
    behind: Counter[str],
) -> list[int]:
    """Return the indices of the nodes a delegate took, in order.

    Args:
        nodes: of the graph
        places: indices of those of one handle, in order
        left: operators of the kernel calls that are left, which are the first nodes
        count: how many the delegate took
        behind: operators of the kernel calls after the delegate, which are the last nodes
    """
    places = sorted(places)
    last = _claimed(nodes, reversed(places), behind)
    kept = _claimed(nodes, (place for place in places if place not in last), left)
    free = [place for place in places if place not in last and place not in kept]
    kept = sorted([*kept, *last])
    outside = {nodes[place].source for place in kept}
    # A view may have left no instruction: computing operators are more likely to be delegated.
    # A getitem leaves none either; it is always on the same side as its source.
    ranked = sorted(
        free, key=lambda place: (nodes[place].source in outside, not is_compute(nodes[place].name))
    )
    return sorted([*ranked, *kept][:count])


def _claimed(
    nodes: Sequence[ListedNode], places: Iterable[int], operators: Counter[str]
) -> list[int]:
    """Return the first of some places that have these operators."""
    still = Counter(operators)
    found: list[int] = []
    for place in places:
        operator = base_operator(nodes[place].target)
        if still[operator] > 0:
            still[operator] -= 1
            found.append(place)
    return found


def _operators_left(
    program: ProgramFile | None,
    method: str,
    handles: record_maps.Handles,
    last: Mapping[int, int],
) -> dict[int, tuple[Counter[str], Counter[str]]]:
    """Return handle -> the operators of its kernel calls: the first, and those behind delegates.

    Handles that no delegate call has are left out.

    Args:
        program: that was compiled
        method: name
        handles: of its instructions
        last: handle -> the last delegate call that has it
    """
    found: dict[int, tuple[Counter[str], Counter[str]]] = {}
    if program is None or not last:
        return found
    plan = program.plan(method)
    for step, (_, _, instruction) in enumerate(instructions(plan)):
        args = instruction.instr_args
        if isinstance(args, m.KernelCall):
            for handle in filter(last.__contains__, handles.get(step, ())):
                both = found.setdefault(handle, (Counter(), Counter()))
                counts = both[step > last[handle]]
                counts[base_operator(operator_name(plan, args))] += 1
    return found


def _delegate_indices(
    program: ProgramFile | None, method: str, calls: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the delegate of each call; without a program its index among the calls."""
    if program is None:
        return tuple(range(len(calls)))
    steps = instructions(program.plan(method))
    found: list[int] = []
    for place, number in enumerate(calls):
        args = steps[number][2].instr_args if number < len(steps) else None
        found.append(args.delegate_index if isinstance(args, m.DelegateCall) else place)
    return tuple(found)


def node_owners(session: Session, graph: Graph, method: str) -> dict[str, tuple[int, str]]:
    """Return source node name -> (delegate, backend id) of the nodes a delegate took."""
    own = ownership(session, graph, method)
    return {
        node.source: (own.delegates[call], own.backends[call])
        for node, call in zip(own.nodes, own.owners, strict=True)
        if call is not None
    }


@identity_cache
def calls_of_nodes(session: Session, graph: Graph, method: str) -> Mapping[str, int | None]:
    """Return recorded node -> the delegate call that took it, None for none, where it is known.

    Where only counts are known, of several nodes with one handle and one operator it is not known
    which of them a call took. Names that several nested graphs have are left out, too.
    """
    own = ownership(session, graph, method)
    owners: dict[object, set[int | None]] = defaultdict(set)
    names = [node.source.rpartition("/")[2] for node in own.nodes]
    sources = {node.source for node in own.nodes}  # results of a node are listed under its name
    keys: list[object] = [
        node.source if own.is_recorded else (node.debug_handle, base_operator(node.target))
        for node in own.nodes
    ]
    for key, call in zip(keys, own.owners, strict=True):
        owners[key].add(call)
    once = Counter(source.rpartition("/")[2] for source in sources)
    return {
        name: None if call is None else own.calls[call]
        for name, key, call in zip(names, keys, own.owners, strict=True)
        if once[name] == 1 and len(owners[key]) == 1
    }
