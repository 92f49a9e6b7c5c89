"""Which value of the recorded graph each instruction output is: by debug handle, then by flow.

A handle names the operator of the user's it came from; several nodes and several instructions may
share one. Among those, an instruction is the next node of its operator that reads what the
instruction reads. What cannot be told is left out, with a reason; nothing is guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from inspector import record_maps
from inspector.delegate_owner import ownership
from inspector.numerics.flat_graph import (
    FlatGraph,
    FlatNode,
    Value,
    flat_graph,
    inner_name,
    is_transparent,
    one_spelling,
)
from inspector.numerics.traced import (
    COPY_INDEX,
    KERNEL,
    VIEW,
    Output,
    instruction_outputs,
    tensor_of,
)
from inspector.operands import delegate_output_counts, plan_operands
from inspector.session import Session
from schema.graph import Graph, NodeKind
from schema.identity_cache import identity_cache
from schema.program import instructions, operator_name
from schema.program import model as m

WRITE_BACK = "aten::copy_"
NO_NODE = "no node of the recorded graph is known to be this instruction"
NO_OUTPUT = "the recorded node has no such output"
_ROUNDS = 4

HANDLE, ORDER, FLOW = "DEBUG_HANDLE", "ORDER", "FLOW"


@dataclass(frozen=True, slots=True)
class Target:
    """The recorded value that an instruction output is.

    Attributes:
        value: in the flat graph
        node: node that makes it, the last one of those the instruction covers
        covers: nodes the instruction covers, in graph order
        handles: their debug handles
        grade: DEBUG_HANDLE, ORDER or FLOW
        same: whether it is that value itself, not a copy or another view of it
    """

    value: Value
    node: str
    covers: tuple[str, ...]
    handles: tuple[int, ...]
    grade: str
    same: bool = True

    @property
    def inferred(self) -> bool:
        """Return whether order or data flow had to tell what the handle leaves open."""
        return self.grade != HANDLE


@dataclass(frozen=True, slots=True)
class Join:
    """The joins of a method.

    Attributes:
        graph: the recorded graph
        targets: (instruction, slot) -> what it is
        reasons: why the others are unknown
        inputs: value index of each program input -> the recorded input
        calls: delegate call -> the nodes it took, in graph order
    """

    graph: FlatGraph | None
    targets: Mapping[tuple[int, int], Target]
    reasons: Mapping[tuple[int, int], str]
    inputs: Mapping[int, str]
    calls: Mapping[int, tuple[FlatNode, ...]] = field(
        default_factory=dict[int, tuple[FlatNode, ...]]
    )


@identity_cache
def join_method(session: Session, method: str) -> Join:
    """Return the joins of a method with the recorded edge graph."""
    program, record = session.program, session.record
    assert program is not None
    graph = record_maps.edge_graph(record, method) if record is not None else None
    if graph is None:
        reason = "there is no ETRecord" if record is None else "the record has no such graph"
        outputs = instruction_outputs(program, method)
        reasons = {(each.instruction, each.slot): reason for each in outputs}
        return Join(None, {}, reasons, {})
    return _Joining(session, method, graph).join()


class _Joining:
    """Walks the instructions of a method in order, as often as that tells something new."""

    def __init__(self, session: Session, method: str, graph: Graph) -> None:
        assert session.program is not None
        assert session.record is not None
        self.plan = session.program.plan(method)
        counts = delegate_output_counts(session.program, self.plan)
        self.operands = plan_operands(self.plan, counts)
        self.flat = flat_graph(graph)
        self.handles = record_maps.handles(session.record, method)
        self.outputs: dict[int, list[Output]] = {}
        for output in instruction_outputs(session.program, method):
            self.outputs.setdefault(output.instruction, []).append(output)
        self.calls = _taken(session, graph, method, self.flat, self.plan)
        self.delegated = {node.place for nodes in self.calls.values() for node in nodes}
        self.mapped = {handle for own in self.handles.values() for handle in own}
        self.boundaries: dict[tuple[int, int], tuple[Value, str]] = {}
        self._reset()

    def _reset(self) -> None:
        self.known: dict[int, Value] = {}
        self.definer: dict[int, tuple[int, int]] = {}
        self.used: set[int] = set()
        self.uses: dict[tuple[int, int], list[Value]] = {}
        self.targets: dict[tuple[int, int], Target] = {}
        self.made: set[Value] = set()
        inputs = self.flat.inputs
        if len(inputs) == len(self.plan.inputs):
            self.known.update(zip(self.plan.inputs, inputs, strict=True))

    def join(self) -> Join:
        """Return everything that can be told."""
        before = -1
        for _ in range(_ROUNDS):
            self._reset()
            self._walk()
            if len(self.targets) == before:
                break
            before = len(self.targets)
            self._settle_boundaries()
            self._settle_by_use()
        reasons = {
            (output.instruction, output.slot): NO_NODE
            for outputs in self.outputs.values()
            for output in outputs
            if (output.instruction, output.slot) not in self.targets
        }
        inputs: dict[int, str] = {}
        if len(self.flat.inputs) == len(self.plan.inputs):
            pairs = zip(self.plan.inputs, self.flat.inputs, strict=True)
            inputs = {index: name for index, (_, name) in pairs}
        return Join(self.flat, self.targets, reasons, inputs, self.calls)

    # ---- one walk
    def _walk(self) -> None:
        self.waiting = _waiting(self)
        for step, (_, _, instruction) in enumerate(instructions(self.plan)):
            args = instruction.instr_args
            if isinstance(args, m.DelegateCall):
                self._delegate(step)
            elif isinstance(args, m.MoveCall):
                self._alike(step, args.move_from)
            elif isinstance(args, m.KernelCall):
                self._kernel(step, args)
        for place, index in enumerate(self.plan.outputs):
            if place < len(self.flat.graph.outputs):
                self._use(index, ((), self.flat.graph.outputs[place]))

    def _kernel(self, step: int, call: m.KernelCall) -> None:
        name = operator_name(self.plan, call)
        if name == VIEW and call.args:
            self._view(step, call.args[0])
        elif name == WRITE_BACK and step not in self.handles:
            self._alike(step, call.args[1] if len(call.args) > 1 else -1)
        elif step in self.outputs and name != COPY_INDEX:
            operator = one_spelling(name)
            node = self._node(step, operator)
            self.waiting[self._key(step, operator)] -= 1
            if node is not None:
                self._take(step, *node)
            else:
                self._forget(step)
        else:
            self._forget(step)

    def _node(self, step: int, operator: str) -> tuple[FlatNode, str] | None:
        """Return the node an instruction is, and how that is known."""
        free = [node for node in self._candidates(step, operator) if node.place not in self.used]
        fitting = [node for node in free if self._fits(step, node)]
        if not free:
            return self._only_one(step)
        if not fitting:
            return None
        if len(fitting) == 1:
            sole = len(self._candidates(step, operator)) == 1 and step in self.handles
            return fitting[0], HANDLE if sole else (ORDER if len(free) == 1 else FLOW)
        told = [node for node in fitting if self._evidence(step, node)]
        if len(told) == 1:
            return told[0], FLOW
        # Several left: in order, where there are as many instructions as nodes.
        if self.waiting[self._key(step, operator)] == len(free):
            return fitting[0], ORDER
        return None

    def _only_one(self, step: int) -> tuple[FlatNode, str] | None:
        """Return the only node of an instruction's handles, where it alone has them.

        Another operator than the recorded one was emitted for it then.
        """
        own = set(self.handles.get(step, ()))
        alike = [other for other in self.outputs if own & set(self.handles.get(other, ()))]
        nodes = [
            node
            for node in self.flat.nodes
            if node.node.debug_handle in own and node.place not in self.delegated
        ]
        if len(alike) != 1 or len(nodes) != 1 or not self._fits(step, nodes[0]):
            return None
        return nodes[0], HANDLE

    def _key(self, step: int, operator: str) -> tuple[tuple[int, ...], str]:
        return tuple(sorted(set(self.handles.get(step, ())))), operator

    def _candidates(self, step: int, operator: str) -> list[FlatNode]:
        own = set(self.handles.get(step, ()))
        nodes = [
            node
            for node in self.flat.nodes
            if node.operator == operator and node.place not in self.delegated
        ]
        if own:
            return [node for node in nodes if node.node.debug_handle in own]
        return [node for node in nodes if node.node.debug_handle not in self.mapped]

    def _fits(self, step: int, node: FlatNode) -> bool:
        """Return whether nothing known contradicts a match: shapes, types, what is read."""
        outputs = self.outputs[step]
        for output, value in zip(outputs, node.writes, strict=False):
            if not self._alike_meta(output, value):
                return False
        pairs = self._pairs(step, node)
        return all(self.flat.root(known) == self.flat.root(wanted) for known, wanted in pairs)

    def _evidence(self, step: int, node: FlatNode) -> bool:
        return any(True for _ in self._pairs(step, node))

    def _pairs(self, step: int, node: FlatNode) -> Iterator[tuple[Value, Value]]:
        """Yield what an instruction is known to read beside what the node reads there."""
        reads = self._tensor_reads(step)
        if len(reads) != len(node.reads):
            return
        for index, wanted in zip(reads, node.reads, strict=True):
            known = self.known.get(index)
            if known is not None and known[0] == wanted[0]:
                yield known, wanted

    def _tensor_reads(self, step: int) -> list[int]:
        instruction = instructions(self.plan)[step][2].instr_args
        if not isinstance(instruction, m.KernelCall):
            return []
        writes = set(self.operands[step].writes)
        spread: list[int] = []
        for index in instruction.args:
            value = self.plan.values[index].val if 0 <= index < len(self.plan.values) else None
            if isinstance(value, (m.TensorList, m.OptionalTensorList)):
                spread += [item for item in value.items if item >= 0]
            else:
                spread.append(index)
        return [
            index
            for index in spread
            if index not in writes and tensor_of(self.plan, index) is not None
        ]

    def _alike_meta(self, output: Output, value: Value) -> bool:
        meta = self.flat.meta.get(value)
        if meta is None or meta.tensor is None:
            return True
        sizes = meta.tensor.sizes
        if meta.tensor.scalar_type != output.code or len(sizes) != len(output.sizes):
            return False
        pairs = zip(sizes, output.sizes, strict=True)
        return not output.static or all(
            not isinstance(size, int) or size == other for size, other in pairs
        )

    def _take(self, step: int, node: FlatNode, grade: str) -> None:
        self.used.add(node.place)
        handle = node.node.debug_handle
        handles = self.handles.get(step, ()) or ((handle,) if handle else ())
        outputs, writes = self.outputs[step], node.writes
        for index, wanted in zip(self._tensor_reads(step), node.reads, strict=False):
            if len(self._tensor_reads(step)) == len(node.reads):
                self._use(index, wanted)
        for output in outputs:
            if output.slot < len(writes):
                value = writes[output.slot]
                name = node.node.name
                target = Target(value, name, (name,), tuple(handles), grade)
                self._define(output, target)
            else:
                self._define(output, None)

    def _use(self, index: int, wanted: Value) -> None:
        definer = self.definer.get(index)
        if definer is not None:
            self.uses.setdefault(definer, []).append(wanted)

    def _define(self, output: Output, target: Target | None, flow: Value | None = None) -> None:
        place = (output.instruction, output.slot)
        self.definer[output.value] = place
        self.known.pop(output.value, None)
        told = self.boundaries.get(place)
        if target is None and told is not None:
            maker = self.flat.makers.get(told[0])
            name = maker[0].node.name if maker is not None else told[0][1]
            handles = tuple(self.handles.get(output.instruction, ()))
            target = Target(told[0], name, (), handles, told[1], same=told[0] not in self.made)
        if target is not None:
            self.made.add(target.value)
            self.targets[place] = target
            self.known[output.value] = target.value if flow is None else flow

    def _forget(self, step: int) -> None:
        for output in self.outputs.get(step, ()):
            self._define(output, None)

    def _alike(self, step: int, source: int) -> None:
        """Say of a move or a write-back that its output is what it was given."""
        value, came = self.known.get(source), self.definer.get(source)
        for output in self.outputs.get(step, ()):
            if value is None:
                self._define(output, None)
                continue
            given = self.targets.get(came) if came is not None else None
            name = given.node if given is not None else value[1]
            covers = given.covers if given is not None else ()
            handles = given.handles if given is not None else ()
            self._define(output, Target(value, name, covers, handles, FLOW, same=False))

    def _view(self, step: int, source: int) -> None:
        """Say of a view which recorded view it is, or that it is another view of its source."""
        value = self.known.get(source)
        outputs = self.outputs.get(step, ())
        if value is None or len(outputs) != 1:
            self._forget(step)
            return
        output, root = outputs[0], self.flat.root(value)
        for node in self.flat.nodes:
            if not is_transparent(node) or node.place in self.used or not node.writes:
                continue
            alike = self.flat.root(node.writes[0]) == root and node.place not in self.delegated
            if alike and self._alike_meta(output, node.writes[0]):
                self._take(step, node, FLOW)
                return
        self._alike(step, source)

    # ---- delegates
    def _delegate(self, step: int) -> None:
        nodes = self.calls.get(step, ())
        names = tuple(node.node.name for node in self._members(nodes))
        handles = tuple(self.handles.get(step, ()))
        for output in self.outputs.get(step, ()):
            told = self.boundaries.get((step, output.slot)) or self._sole(step, output)
            if told is None:
                self._define(output, None)
                continue
            flow, grade = told
            value = self._innermost(nodes, flow)
            maker = self.flat.makers.get(value)
            name = maker[0].node.name if maker is not None else value[1]
            target = Target(value, name, names or (name,), handles, grade)
            self._define(output, target, flow)

    def _innermost(self, nodes: tuple[FlatNode, ...], value: Value) -> Value:
        """Return the value inside a recorded delegate that leaves it as this one."""
        for node in nodes:
            inner = self.flat.graph.subgraphs.get((*node.node.subgraphs, "")[0])
            if node.node.kind is NodeKind.DELEGATE and inner is not None and value in node.writes:
                place = node.writes.index(value)
                if place < len(inner.outputs):
                    return (*node.scope, inner_name(node.node.name, 0)), inner.outputs[place]
        return value

    def _members(self, nodes: tuple[FlatNode, ...]) -> tuple[FlatNode, ...]:
        return delegate_members(self.flat, nodes)

    def _sole(self, step: int, output: Output) -> tuple[Value, str] | None:
        """Return the value that leaves a delegate of one output."""
        leaving = self._leaving(step)
        if len(leaving) == len(self.outputs[step]) == 1 and self._alike_meta(output, leaving[0]):
            return leaving[0], HANDLE
        return None

    def _leaving(self, step: int) -> list[Value]:
        """Return the values that others need of the nodes a delegate took, in graph order."""
        nodes = self.calls.get(step, ())
        places = {node.place for node in nodes}
        if len(nodes) == 1 and nodes[0].node.kind is NodeKind.DELEGATE:
            return list(nodes[0].writes)
        found: list[Value] = []
        for node in nodes:
            for value in node.writes:
                users = self.flat.users.get(value, ())
                outside = any(user.place not in places for user in users)
                if outside or value in self.flat.results:
                    found.append(value)
        return found

    def _settle_boundaries(self) -> None:
        """Tell the outputs of delegates by who reads them, then by shape, then by order."""
        for step in self.calls:
            leaving = self._leaving(step)
            outputs = self.outputs.get(step, [])
            left = {output.slot: output for output in outputs}
            for slot in list(left):
                wanted = self.uses.get((step, slot), ())
                value = next((found for found in map(self._inside(step), wanted) if found), None)
                if value in leaving and self._alike_meta(left[slot], value):
                    self.boundaries[step, slot] = value, FLOW
                    leaving.remove(value)
                    del left[slot]
            if len(leaving) == len(left):
                pairs = list(zip(left.values(), leaving, strict=True))
                if all(self._alike_meta(output, value) for output, value in pairs):
                    grade = ORDER if len(pairs) > 1 else FLOW
                    for output, value in pairs:
                        self.boundaries.setdefault((step, output.slot), (value, grade))

    def _settle_by_use(self) -> None:
        """Tell what no node stands for by who reads it: the slice of a loop's pass, a copy."""
        for step, outputs in self.outputs.items():
            for output in outputs:
                place = (step, output.slot)
                wanted = set(self.uses.get(place, ()))
                if place in self.targets or place in self.boundaries or len(wanted) != 1:
                    continue
                value = wanted.pop()
                if self._alike_meta(output, value):
                    self.boundaries[place] = value, FLOW

    def _inside(self, step: int) -> Callable[[Value], Value | None]:
        places = {node.place for node in self.calls[step]}

        def find(value: Value) -> Value | None:
            """Return the value of the delegate that this one is a view of."""
            for _ in range(len(self.flat.nodes)):
                maker = self.flat.makers.get(value)
                if maker is None:
                    return None
                if maker[0].place in places:
                    return value
                if not is_transparent(maker[0]):
                    return None
                value = maker[0].reads[0]
            return None

        return find


def delegate_members(flat: FlatGraph, nodes: tuple[FlatNode, ...]) -> tuple[FlatNode, ...]:
    """Return the nodes of a delegate; of one that is recorded as lowered, those inside it."""
    if len(nodes) != 1 or nodes[0].node.kind is not NodeKind.DELEGATE:
        return nodes
    depth, prefix = len(nodes[0].scope), f"{nodes[0].node.name}/"
    return tuple(
        node
        for node in flat.nodes
        if len(node.scope) > depth and node.scope[depth].startswith(prefix)
    )


def _waiting(joining: _Joining) -> Counter[tuple[tuple[int, ...], str]]:
    """Return how many kernel calls there are of each set of handles and operator."""
    found: Counter[tuple[tuple[int, ...], str]] = Counter()
    for step, outputs in joining.outputs.items():
        if outputs[0].kind == KERNEL:
            own = tuple(sorted(set(joining.handles.get(step, ()))))
            found[own, one_spelling(outputs[0].operator)] += 1
    return found


def _taken(
    session: Session, graph: Graph, method: str, flat: FlatGraph, plan: m.ExecutionPlan
) -> dict[int, tuple[FlatNode, ...]]:
    """Return delegate call -> the recorded nodes it took, in graph order."""
    recorded = [node for node in flat.nodes if node.node.kind is NodeKind.DELEGATE]
    steps = [
        step
        for step, each in enumerate(instructions(plan))
        if isinstance(each[2].instr_args, m.DelegateCall)
    ]
    if recorded:
        pairs = zip(steps, recorded, strict=True) if len(steps) == len(recorded) else ()
        return {step: (node,) for step, node in pairs}
    own = ownership(session, graph, method)
    by_name: dict[str, FlatNode] = {node.node.name: node for node in flat.nodes if not node.scope}
    found: dict[int, list[FlatNode]] = {step: [] for step in steps}
    for node, call in zip(own.nodes, own.owners, strict=True):
        flat_node = by_name.get(node.source)
        if call is None or flat_node is None or own.calls[call] not in found:
            continue
        members = found[own.calls[call]]
        if flat_node not in members:
            members.append(flat_node)
    return {step: tuple(sorted(nodes, key=_place)) for step, nodes in found.items() if nodes}


def _place(node: FlatNode) -> int:
    return node.place
