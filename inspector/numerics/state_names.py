"""Names of the values that a method carries from run to run, where the record has them.

The file of a program names its buffers on request only. In the record an instruction that is a
known node reads what the node reads, and a write-back stores what becomes a buffer in the graph.
Buffers of one name have one place in the memory that methods share: a method that reads a buffer in
a delegate only has its name from one that is known to read or write it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from inspector.files.session import Session
from inspector.join import record_maps
from inspector.memory.lifetimes import Place, planned_place
from inspector.memory.plan import state_values, value_name
from inspector.numerics.flat_graph import Value
from inspector.numerics.grades import ORDER
from inspector.numerics.join import WRITE_BACK, join_method
from inspector.numerics.join_facts import Join, MethodFacts
from schema.graph import Graph, NodeKind
from schema.objects.identity_cache import identity_cache
from schema.program import instructions, operator_name
from schema.program import model as m

_BUFFER, _MUTATION = "buffer", "buffer_mutation"


SHARED_FROM = 2  # memory ids from this one on hold state of several methods


@identity_cache
def state_names(session: Session, method: str) -> Mapping[int, str]:
    """Return value index -> qualified name of each state tensor whose name is known.

    A value that two facts give different names has none, and neither have two values of one name.
    """
    program, found = session.program, dict(_own_names(session, method))
    if program is None or method not in session.methods:
        return found
    left = {
        index: place
        for index in state_values(program, method)
        if index not in found and (place := shared_place(program.plan(method), index))
    }
    if not left:
        return found
    votes: dict[Place, set[str]] = {}
    for other in session.methods:
        for index, name in _own_names(session, other).items():
            if place := shared_place(program.plan(other), index):
                votes.setdefault(place, set()).add(name)
    for index, place in left.items():
        names = votes.get(place, set())
        if len(names) == 1 and names.isdisjoint(found.values()):
            found[index] = next(iter(names))
    return found


def shared_place(plan: m.ExecutionPlan, index: int) -> Place | None:
    """Return where a value is in the memory that methods share, None if it is not there."""
    place = planned_place(plan.values[index])
    return place if place is not None and place[0] >= SHARED_FROM else None


@identity_cache
def _own_names(session: Session, method: str) -> Mapping[int, str]:
    """Return the names that follow from a method alone."""
    program = session.program
    if program is None or method not in session.methods:
        return {}
    plan = program.plan(method)
    state = state_values(program, method)
    own = {index: value_name(plan, index) for index in state}
    found = {index: name for index, name in own.items() if name != f"v{index}"}
    left = frozenset(state) - set(found)
    if not left or session.record is None:
        return found
    graph = record_maps.edge_graph(session.record, method)
    if graph is None:
        return found
    votes: dict[int, set[str]] = {}
    facts, join = MethodFacts(session, method, graph), join_method(session, method)
    for index, name in (*_read(facts, join, graph, left), *_written(facts, join, graph, left)):
        votes.setdefault(index, set()).add(name)
    agreed = {index: next(iter(names)) for index, names in votes.items() if len(names) == 1}
    names = [*found.values(), *(name for each in votes.values() for name in each)]
    return found | {index: name for index, name in agreed.items() if names.count(name) == 1}


def _read(
    facts: MethodFacts, join: Join, graph: Graph, state: frozenset[int]
) -> Iterator[tuple[int, str]]:
    """Yield state values that an instruction reads where its node reads a buffer."""
    buffers: dict[Value, str] = {
        ((), node.name): str(node.attributes.get("target", ""))
        for node in graph.nodes
        if node.kind is NodeKind.PLACEHOLDER and node.attributes.get("input_kind") == _BUFFER
    }
    nodes = {(*node.scope, node.node.name): node for node in facts.flat.nodes}
    for (step, _), target in join.targets.items():
        node = nodes.get((*target.value[0], target.node))
        reads = facts.tensor_reads(step)
        sure = target.grade != ORDER and len(target.covers) == 1 and target.same
        if not sure or node is None or len(reads) != len(node.reads):
            continue
        for index, requested in zip(reads, node.reads, strict=True):
            if index in state and buffers.get(requested):
                yield index, buffers[requested]


def _written(
    facts: MethodFacts, join: Join, graph: Graph, state: frozenset[int]
) -> Iterator[tuple[int, str]]:
    """Yield state values into which an instruction copies what becomes one buffer."""
    becomes = _mutations(graph)
    held: dict[int, Value] = {}
    for step, (_, _, instruction) in enumerate(instructions(facts.plan)):
        args = instruction.instr_args
        if isinstance(args, m.KernelCall) and len(args.args) > 1:
            into, source = args.args[:2]
            names = becomes.get(held[source], ()) if source in held and into in state else ()
            is_write = operator_name(facts.plan, args).split(".")[0] == WRITE_BACK
            if is_write and len(names) == 1:
                yield into, names[0]
        for output in facts.outputs.get(step, ()):
            target = join.targets.get((step, output.slot))
            held.pop(output.value, None)
            if target is not None and target.same and target.grade != ORDER:
                held[output.value] = target.value


def _mutations(graph: Graph) -> dict[Value, list[str]]:
    """Return value -> the buffers that it becomes at the end of a run."""
    found: dict[Value, list[str]] = {}
    for node in graph.nodes:
        if node.kind is not NodeKind.OUTPUT:
            continue
        kinds = cast("Sequence[str]", node.attributes.get("output_kinds", ()))
        targets = cast("Sequence[str]", node.attributes.get("output_targets", ()))
        for arg, kind, target in zip(node.args, kinds, targets, strict=False):
            if kind == _MUTATION and len(arg.values) == 1:
                found.setdefault(((), arg.values[0]), []).append(target)
    return found
