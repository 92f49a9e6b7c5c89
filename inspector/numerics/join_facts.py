"""Facts about a method, collected before its instructions are joined with the recorded graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from inspector.files.session import Session
from inspector.join import record_maps
from inspector.join.channels_last import moves_images
from inspector.join.delegate_owner import ownership
from inspector.join.operands import delegate_output_counts, plan_operands, writes_in_place
from inspector.numerics.flat_graph import (
    FlatGraph,
    FlatNode,
    Value,
    flat_graph,
    inner_name,
    is_transparent,
    one_spelling,
)
from inspector.numerics.flow_members import flow_members
from inspector.numerics.grades import EXACT
from inspector.numerics.moved import moves_alike
from inspector.numerics.plan_layouts import PERMUTATIONS, Order, PlanLayouts
from inspector.numerics.traced import KERNEL, InstructionOutput, instruction_outputs, tensor_of
from schema.graph import Graph, NodeKind
from schema.program import instructions
from schema.program import model as m

Key = tuple[tuple[int, ...], str]  # handles and operator


@dataclass(frozen=True, slots=True)
class JoinTarget:
    """The recorded value that an instruction output is.

    Attributes:
        value: in the flat graph
        node: node that computes it, the last one of those the instruction covers
        covers: nodes the instruction covers, in graph order
        handles: their debug handles
        grade: how that is known, one of ``grades``
        same: whether it is that value itself, not a copy or another view of it
        order: its dimensions as the instruction has them, empty if as recorded
    """

    value: Value
    node: str
    covers: tuple[str, ...]
    handles: tuple[int, ...]
    grade: str
    same: bool = True
    order: Order = ()

    @property
    def inferred(self) -> bool:
        """Return whether it was inferred from order or data flow."""
        return self.grade not in EXACT


@dataclass(frozen=True, slots=True)
class Join:
    """The joins of a method.

    Attributes:
        graph: the recorded graph
        targets: (instruction, slot) -> the output
        reasons: (instruction, slot) -> why it is unknown
        inputs: value index of each program input -> the recorded input
        calls: delegate call -> the nodes it took, in graph order
        unsure: calls whose nodes are uncertain
    """

    graph: FlatGraph | None
    targets: Mapping[tuple[int, int], JoinTarget]
    reasons: Mapping[tuple[int, int], str]
    inputs: Mapping[int, str]
    calls: Mapping[int, tuple[FlatNode, ...]] = field(
        default_factory=dict[int, tuple[FlatNode, ...]]
    )
    unsure: frozenset[int] = frozenset()


class MethodFacts:
    """The instructions of a method, its recorded graph, and the maps of the record.

    Attributes:
        session: the files
        method: name
        plan: of the program
        operands: what each instruction reads and writes
        flat: the recorded graph
        handles: instruction -> debug handles
        origins: which nodes the instructions are, where the record has them
        outputs: instruction -> its tensor outputs
        calls: delegate call -> the nodes it took, in graph order
        unsure: calls whose nodes are uncertain
        delegated: places of those nodes
        mapped: handles that some instruction has
        views: nodes outside of delegates that only rename, copy or reshape
        layouts: the order of dimensions of outputs
    """

    def __init__(self, session: Session, method: str, graph: Graph) -> None:
        assert session.program is not None
        assert session.record is not None
        self.session, self.method = session, method
        self.plan = session.program.plan(method)
        counts = delegate_output_counts(session.program, self.plan)
        self.operands = plan_operands(self.plan, counts)
        self.flat = flat_graph(graph)
        self.handles = record_maps.handles(session.record, method)
        self.origins = record_maps.origins(session.record, method)
        self.outputs: dict[int, list[InstructionOutput]] = {}
        for output in instruction_outputs(session.program, method):
            self.outputs.setdefault(output.instruction, []).append(output)
        steps = [
            step
            for step, each in enumerate(instructions(self.plan))
            if isinstance(each[2].instr_args, m.DelegateCall)
        ]
        self.calls, self.unsure = taken_nodes(session, method, self.flat, steps)
        self.delegated = {node.place for nodes in self.calls.values() for node in nodes}
        self.mapped = {handle for own in self.handles.values() for handle in own}
        self._reads: dict[int, list[int]] = {}
        self._silent = frozenset(
            step
            for step, (_, _, instruction) in enumerate(instructions(self.plan))
            if isinstance(call := instruction.instr_args, m.KernelCall)
            and writes_in_place(self.plan, call)
        )
        self._by_name = {"/".join((*node.scope, node.node.name)): node for node in self.flat.nodes}
        self._index()
        moved = moves_images(self.plan, (node.operator for node in self.flat.nodes))
        outputs = self.outputs if moved else {}
        self.layouts = PlanLayouts(self.plan, outputs, self.tensor_reads, self._permutation)

    def _index(self) -> None:
        self._unmapped: dict[str, list[FlatNode]] = {}
        self._by_handle: dict[int, list[FlatNode]] = {}
        self._steps_of: dict[int, list[int]] = {}
        self.views: list[FlatNode] = []
        for node in self.flat.nodes:
            if node.place in self.delegated:
                continue
            if node.node.debug_handle not in self.mapped:
                self._unmapped.setdefault(node.operator, []).append(node)
            if node.node.debug_handle is not None:
                self._by_handle.setdefault(node.node.debug_handle, []).append(node)
            if is_transparent(node) and node.writes:
                self.views.append(node)
        for step in self.outputs:
            for handle in self.handles.get(step, ()):
                self._steps_of.setdefault(handle, []).append(step)

    def recorded(self, step: int, operator: str) -> FlatNode | None:
        """Return the node of a kernel call by the record, if what both compute has one form.

        Its operator may differ where a vendor's passes replaced a plain call.
        """
        node = self._by_name.get(self.origins.nodes.get(step, ""))
        if node is None or node.place in self.delegated:
            return None
        is_plain = node.node.kind is NodeKind.CALL and not node.scope
        if node.operator != operator and not is_plain:
            return None
        fits = node.node.debug_handle in self.handles.get(step, ())
        outputs = zip(self.outputs.get(step, ()), self.made_by(step, node), strict=False)
        return node if fits and all(self.alike(*pair) for pair in outputs) else None

    def _permutation(self, step: int) -> FlatNode | None:
        """Return the recorded permutation whose value an instruction has."""
        node = self._by_name.get(self.origins.nodes.get(step, ""))
        if self.origins.nodes:
            return node if node is not None and node.operator in PERMUTATIONS else None
        nodes = [one for name in PERMUTATIONS for one in self.candidates(step, name)]
        return nodes[0] if len(nodes) == 1 else None

    def covered(self, step: int) -> tuple[str, ...]:
        """Return the names of the nodes of an instruction's handles, in their order."""
        nodes = (n for h in self.handles.get(step, ()) for n in self._by_handle.get(h, ()))
        return tuple(dict.fromkeys(node.node.name for node in nodes))

    def returned(self, step: int) -> list[Value]:
        """Return the values that a delegate call returns by the record; empty without it."""
        names = (name.split("/") for name in self.origins.results.get(step, ()))
        values = [((*_scope(parts[:-1]),), parts[-1]) for parts in names]
        outputs = self.outputs.get(step, ())
        fit = len(values) == len(outputs) and all(value in self.flat.meta for value in values)
        return values if fit and all(map(self.alike, outputs, values)) else []

    def key(self, step: int, operator: str) -> Key:
        """Return the key shared by instructions that can be confused."""
        return tuple(sorted(set(self.handles.get(step, ())))), operator

    def waiting(self) -> Counter[Key]:
        """Return the number of kernel calls for each set of handles and operator."""
        return Counter(
            self.key(step, one_spelling(outputs[0].operator))
            for step, outputs in self.outputs.items()
            if outputs[0].kind == KERNEL
        )

    def candidates(self, step: int, operator: str) -> list[FlatNode]:
        """Return the nodes outside of delegates that an instruction may be, in graph order."""
        own = set(self.handles.get(step, ()))
        if own:
            nodes = [node for handle in own for node in self._by_handle.get(handle, ())]
            return sorted((one for one in nodes if one.operator == operator), key=_place)
        return self._unmapped.get(operator, [])

    def rivals(self, step: int, operator: str) -> list[FlatNode]:
        """Return the candidates, and nodes of calls whose nodes are uncertain."""
        own = set(self.handles.get(step, ()))
        taken = [node for call in self.unsure for node in self.calls.get(call, ())]
        more = (node for node in taken if node.node.debug_handle in own)
        return [*self.candidates(step, operator), *(n for n in more if n.operator == operator)]

    def only_one(self, step: int) -> FlatNode | None:
        """Return the only node of an instruction's handles, where it alone has them.

        Another operator than the recorded one was emitted for it then.
        """
        own = set(self.handles.get(step, ()))
        alike = {other for handle in own for other in self._steps_of.get(handle, ())}
        nodes = [node for handle in own for node in self._by_handle.get(handle, ())]
        return nodes[0] if len(alike) == 1 and len(nodes) == 1 else None

    def tensor_reads(self, step: int) -> list[int]:
        """Return the tensors a kernel call reads, in the order of its arguments."""
        found = self._reads.get(step)
        if found is None:
            found = self._reads[step] = self._tensor_reads(step)
        return found

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

    def moves_alike(self, step: int, node: FlatNode) -> bool:
        """Return whether the indices of moved elements do not contradict a node."""
        call = instructions(self.plan)[step][2].instr_args
        return not isinstance(call, m.KernelCall) or moves_alike(self.plan, call, node)

    def made_by(self, step: int, node: FlatNode) -> tuple[Value, ...]:
        """Return the results of a node, in the order of the outputs of an instruction.

        The recorded call of an operator without a result lists None first.
        """
        return node.writes[1:] if step in self._silent else node.writes

    def alike(self, output: InstructionOutput, value: Value) -> bool:
        """Return whether type and shape of an output do not contradict a value."""
        meta = self.flat.meta.get(value)
        if meta is None or meta.tensor is None:
            return True
        sizes, order = meta.tensor.sizes, self.layouts.of(output)
        if order:
            if len(order) != len(sizes):
                return False
            sizes = [sizes[dim] for dim in order]
        if meta.tensor.scalar_type != output.code or len(sizes) != len(output.sizes):
            return False
        pairs = zip(sizes, output.sizes, strict=True)
        return not output.static or all(
            not isinstance(size, int) or size == other for size, other in pairs
        )

    def leaving(self, step: int) -> list[Value]:
        """Return the values that others need of the nodes a delegate took, in graph order."""
        return leaving_values(self.flat, self.calls.get(step, ()))

    def inside(self, step: int) -> Callable[[Value], Value | None]:
        """Return a function that finds the delegate result behind a view."""
        places = {node.place for node in self.calls[step]}

        def find(value: Value) -> Value | None:
            """Return the delegate result that this value is a view of."""
            for _ in range(len(self.flat.nodes)):
                maker = self.flat.producers.get(value)
                if maker is None:
                    return None
                if maker[0].place in places:
                    return value
                if not is_transparent(maker[0]):
                    return None
                value = maker[0].reads[0]
            return None

        return find


def _scope(parts: Sequence[str]) -> tuple[str, ...]:
    """Return the nested graphs of a name, each of which is a node and a number."""
    return tuple(inner_name(*pair) for pair in zip(parts[::2], map(int, parts[1::2]), strict=True))


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


def leaving_values(flat: FlatGraph, nodes: Sequence[FlatNode]) -> list[Value]:
    """Return the values that others need of the nodes a delegate took, in graph order."""
    if len(nodes) == 1 and nodes[0].node.kind is NodeKind.DELEGATE:
        return list(nodes[0].writes)
    places = {node.place for node in nodes}
    return [
        value
        for node in nodes
        for value in node.writes
        if value in flat.results
        or any(user.place not in places for user in flat.users.get(value, ()))
    ]


def innermost(flat: FlatGraph, nodes: Sequence[FlatNode], value: Value) -> Value:
    """Return the value inside a recorded delegate that leaves it as this one."""
    for node in nodes:
        scope = (*node.scope, inner_name(node.node.name, 0))
        inner = flat.graphs.get(scope) if node.node.subgraphs else None
        if node.node.kind is NodeKind.DELEGATE and inner is not None and value in node.writes:
            place = node.writes.index(value)
            if place < len(inner.outputs):
                return scope, inner.outputs[place]
    return value


def taken_nodes(
    session: Session, method: str, flat: FlatGraph, steps: Sequence[int]
) -> tuple[Mapping[int, tuple[FlatNode, ...]], frozenset[int]]:
    """Return delegate call -> the recorded nodes it took, and the calls that may be others.

    Args:
        session: with a record
        method: name
        flat: its recorded graph
        steps: delegate calls, in order
    """
    recorded = [node for node in flat.nodes if node.node.kind is NodeKind.DELEGATE]
    if recorded:
        pairs = zip(steps, recorded, strict=True) if len(steps) == len(recorded) else ()
        return {step: (node,) for step, node in pairs}, frozenset()
    assert session.record is not None
    shared = _sharing(session, method, flat, steps)
    listed = record_maps.taken(session.record, method)
    walked = flow_members(session, method, flat) if shared and not listed else None
    if walked is not None:
        return walked.calls, walked.unsure & shared
    own = ownership(session, flat.graph, method)
    by_name: dict[str, FlatNode] = {node.node.name: node for node in flat.nodes if not node.scope}
    found: dict[int, list[FlatNode]] = {step: [] for step in steps}
    for node, call in zip(own.nodes, own.owners, strict=True):
        flat_node = by_name.get(node.source)
        if call is None or flat_node is None or own.calls[call] not in found:
            continue
        members = found[own.calls[call]]
        if flat_node not in members:
            members.append(flat_node)
    calls = {step: tuple(sorted(nodes, key=_place)) for step, nodes in found.items() if nodes}
    return calls, frozenset() if listed else shared


def _sharing(
    session: Session, method: str, flat: FlatGraph, steps: Sequence[int]
) -> frozenset[int]:
    """Return the calls that share a debug handle with nodes outside of them."""
    assert session.record is not None
    handles = record_maps.handles(session.record, method)
    there = Counter(node.node.debug_handle for node in flat.nodes)
    counts = {step: Counter(handles.get(step, ())) for step in steps}
    return frozenset(
        step
        for step, own in counts.items()
        if any(there[handle] > count for handle, count in own.items())
    )


def _place(node: FlatNode) -> int:
    return node.place
