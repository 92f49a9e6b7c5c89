"""Finds the nodes of each delegate call, if a record lists only shared debug handles.

Instructions and the nodes of payloads are walked in order. Each is the recorded node of its kind
that reads the same values, and, of several, the one whose weights have the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from inspector.files.payloads import delegate_payload
from inspector.files.session import Session
from inspector.graph.delegate_inside import InsideNode, inside_delegate
from inspector.join import record_maps
from inspector.join.lowered_kinds import BATCH_NORM, becomes, operation
from inspector.join.operands import plan_operands
from inspector.numerics.element_moves import CUTTING, begin_alike, integers
from inspector.numerics.flat_graph import (
    FlatGraph,
    FlatNode,
    Value,
    constant_values,
    is_transparent,
    one_spelling,
)
from inspector.numerics.moved import moves_alike
from inspector.numerics.traced import tensor_of
from schema.dtypes.scalar_type import numel
from schema.program import instructions, operator_name
from schema.program import model as m

_IMAGE_DIMS = 4
_LOST = 0.8  # share of the listed nodes: a walk that finds fewer has gone wrong
_PASSING = (
    *("Copy", "Convert", "StaticTranspose", "StaticReshape", "Clamp"),
    *("aten.squeeze_copy.dims", "aten.unsqueeze_copy.default", "aten.view_copy.default"),
    *("aten.clone.default", "dim_order_ops._to_dim_order_copy.default"),
)
_CONVOLUTION = "aten::convolution"
_BOUNDED = ("relu", "clamp", "hardtanh", "relu6")


@dataclass(frozen=True, slots=True)
class FlowMembers:
    """Nodes of delegate calls.

    Attributes:
        calls: delegate call -> the nodes it took, in graph order
        unsure: calls for which several nodes were equally likely, and their readers
    """

    calls: Mapping[int, tuple[FlatNode, ...]]
    unsure: frozenset[int]


def flow_members(session: Session, method: str, flat: FlatGraph) -> FlowMembers | None:
    """Return the nodes of the delegate calls of a method, None if payloads do not show them."""
    program, record = session.program, session.record
    if program is None or record is None or len(flat.inputs) != len(program.plan(method).inputs):
        return None
    walk = _MemberWalk(session, method, flat)
    if not walk.walk():
        return None
    found, handles = walk.found(), record_maps.handles(record, method)
    listed = {step: len(handles.get(step, ())) for step in record_maps.delegates(record, method)}
    count = sum(map(len, found.calls.values()))
    whole = set(listed) <= set(found.calls) and count >= _LOST * sum(listed.values())
    return found if whole else None


class _MemberWalk:
    """One walk through a program."""

    def __init__(self, session: Session, method: str, flat: FlatGraph) -> None:
        assert session.program is not None
        assert session.record is not None
        self._session, self._method, self._flat = session, method, flat
        self._plan = session.program.plan(method)
        self._operands = plan_operands(self._plan)
        self._handles = record_maps.handles(session.record, method)
        self._known: dict[int, Value] = dict(zip(self._plan.inputs, flat.inputs, strict=True))
        self._taken: dict[int, int] = {}  # node -> the instruction that is it, or has it
        self._unsure: set[int] = set()
        self._doubted: set[Value] = set()
        self._kinds: set[str] = set()  # of the nodes of the payload at hand
        self._weights = _Weights(session, method, flat)
        self._by_handle: dict[int, list[FlatNode]] = {}
        for node in flat.nodes:
            if node.node.debug_handle is not None:
                self._by_handle.setdefault(node.node.debug_handle, []).append(node)

    def walk(self) -> bool:
        """Go through all instructions; return whether every payload could be read."""
        for step, (_, _, instruction) in enumerate(instructions(self._plan)):
            args = instruction.instr_args
            if isinstance(args, m.DelegateCall):
                if not self._call(step, args):
                    return False
            elif isinstance(args, m.KernelCall):
                self._kernel(step, args)
            elif isinstance(args, m.MoveCall):
                self._pass_on(args.move_from, (args.move_to,))
        return True

    def found(self) -> FlowMembers:
        """Return the nodes of the calls, with views and constants that belong to them."""
        calls = {step for step, each in enumerate(instructions(self._plan)) if _is_call(each[2])}
        for node in reversed(self._flat.nodes):  # constants that only one call reads
            users = {user.place for value in node.writes for user in self._users(value)}
            owners = {self._taken.get(place) for place in users}
            if node.place not in self._taken and len(owners) == 1 and None not in owners:
                self._adopt(node, next(iter(owners)), calls)
        for node in self._flat.nodes:  # views of results of a call, without a kernel
            sources = [self._flat.producers.get(value) for value in node.reads[:1]]
            owner = (
                self._taken.get(sources[0][0].place) if sources and sources[0] is not None else None
            )
            if node.place not in self._taken and is_transparent(node):
                self._adopt(node, owner, calls)
        members: dict[int, list[FlatNode]] = {step: [] for step in calls}
        for node in self._flat.nodes:
            owner = self._taken.get(node.place)
            if owner in members:
                members[owner].append(node)
        return FlowMembers(
            {step: tuple(nodes) for step, nodes in members.items() if nodes},
            frozenset(self._unsure),
        )

    def _adopt(self, node: FlatNode, owner: int | None, calls: set[int]) -> None:
        if owner in calls and node.node.debug_handle in self._handles.get(owner or 0, ()):
            self._taken[node.place] = owner or 0

    def _users(self, value: Value) -> Iterable[FlatNode]:
        return self._flat.users.get(value, ())

    # ---- kernels
    def _kernel(self, step: int, call: m.KernelCall) -> None:
        touched = self._operands[step].writes  # lists of results among them
        writes = [index for index in touched if tensor_of(self._plan, index) is not None]
        operator = one_spelling(operator_name(self._plan, call))
        candidates = [node for node in self._free(step) if node.operator == operator]
        reads = [index for index in _tensors(self._plan, call) if index not in writes]
        known = [self._known[index] for index in reads if index in self._known]
        candidates = [node for node in candidates if moves_alike(self._plan, call, node)]
        chosen, sure = self._choice(candidates, known, ())
        if chosen is None:
            if operator.startswith(("executorch_prim::et_view", "aten::copy_")) and known:
                self._pass_on(reads[-1] if operator.endswith("copy_") else reads[0], writes)
            else:
                for index in writes:
                    self._known.pop(index, None)
            return
        self._take(step, chosen, sure=sure)
        for index, value in zip(writes, chosen.writes, strict=False):
            self._known[index] = value

    def _pass_on(self, source: int, targets: Sequence[int]) -> None:
        for index in targets:
            if source in self._known:
                self._known[index] = self._known[source]
            else:
                self._known.pop(index, None)

    def _free(self, step: int) -> list[FlatNode]:
        own = dict.fromkeys(self._handles.get(step, ()))
        nodes = [node for handle in own for node in self._by_handle.get(handle, ())]
        free = (node for node in nodes if node.place not in self._taken)
        return sorted(free, key=lambda node: node.place)

    def _take(self, step: int, node: FlatNode, *, sure: bool) -> None:
        self._taken[node.place] = step
        doubted = any(self._flat.root(value) in self._doubted for value in node.reads)
        if not sure or doubted:
            self._unsure.add(step)
            self._doubted.update(self._flat.root(value) for value in node.writes)

    # ---- delegates
    def _call(self, step: int, call: m.DelegateCall) -> bool:
        assert self._session.program is not None
        external = tuple(self._session.external)
        payload = delegate_payload(
            self._session.program, self._plan, call.delegate_index, external
        ).graph
        if payload is None or len(payload.inputs) + len(payload.outputs) != len(call.args):
            return False
        split = len(payload.inputs)
        given = list(zip(payload.inputs, call.args[:split], strict=True))
        local = {name: self._known[index] for name, index in given if index in self._known}
        held = {name for name, index in given if self._is_held(index)} - set(local)
        inside = inside_delegate(self._session, self._method, call.delegate_index).nodes
        self._kinds = {one.node.target for one in inside}
        for node in inside:
            self._inside(step, node, local, held)
        for name, index in zip(payload.outputs, call.args[split:], strict=True):
            if name in local:
                self._known[index] = local[name]
            else:
                self._known.pop(index, None)
        return True

    def _is_held(self, index: int) -> bool:
        """Return whether a value of the plan is a constant of the file."""
        tensor = tensor_of(self._plan, index)
        return tensor is not None and tensor.data_buffer_idx > 0 and not tensor.allocation_info

    def _inside(self, step: int, node: InsideNode, local: dict[str, Value], held: set[str]) -> None:
        """Find the recorded node of a payload node, and the values of its results."""
        outputs = [one.value for one in node.values if one.role.startswith("output")]
        given = [one for one in node.values if not one.role.startswith("output")]
        names = [one.value.name for one in given if one.constant is None]
        reads = [name for name in names if name not in held]
        known = [local[name] for name in reads if name in local]
        kind = node.node.target
        size = outputs[0].tensor if outputs else None
        candidates = [
            one
            for one in self._free(step)
            if becomes(one.operator, kind) and self._is_as_large(one, size)
        ]
        constants = [bytes(c.data) for one in given if (c := one.constant) and c.data is not None]
        candidates = [one for one in candidates if _moves_alike(one, node)]
        if operation(kind) in CUTTING:  # a dimension may be counted from behind on one side
            given_at = integers(node.node)
            candidates = [
                one for one in candidates if begin_alike(given_at, integers(one.node))
            ] or candidates
        chosen, sure = self._choice(
            candidates if len(known) == len(reads) else [], known, constants
        )
        if chosen is None:
            if given and not reads:  # a constant that is packed or converted
                held.update(value.name for value in outputs)
            if kind in _PASSING and known:
                local.update((value.name, known[0]) for value in outputs)
            return
        self._take(step, chosen, sure=sure)
        last = self._normed(step, chosen) if becomes(_CONVOLUTION, kind) else chosen
        last = self._bounded(step, last) if node.activation else last
        for value, result in zip(outputs, last.writes, strict=False):
            local[value.name] = result

    def _normed(self, step: int, node: FlatNode) -> FlatNode:
        """Return the batch norm behind a convolution that its payload has folded into it."""
        users = list(self._users(node.writes[0]))
        if len(users) != 1 or users[0].operator != BATCH_NORM or users[0].place in self._taken:
            return node
        if any(becomes(BATCH_NORM, kind) for kind in self._kinds):
            return node
        self._take(step, users[0], sure=True)
        return users[0]

    def _bounded(self, step: int, node: FlatNode) -> FlatNode:
        """Return the activation after a node that is fused into it."""
        last = node
        while True:
            users = list(self._users(last.writes[0]))
            if len(users) != 1 or users[0].place in self._taken:
                return node
            last = users[0]
            if last.operator.rpartition("::")[2] in _BOUNDED:
                self._take(step, last, sure=True)
                return last
            if not is_transparent(last):
                return node

    def _is_as_large(self, node: FlatNode, size: object) -> bool:
        meta = self._flat.meta.get(node.writes[0]) if node.writes else None
        sizes = (getattr(size, "sizes", None), meta.tensor.sizes if meta and meta.tensor else None)
        counts = [_count(one) for one in sizes]
        return None in counts or counts[0] == counts[1]

    # ---- choosing
    def _choice(
        self, nodes: Sequence[FlatNode], reads: Sequence[Value], constants: Sequence[bytes]
    ) -> tuple[FlatNode | None, bool]:
        """Return the first node that reads exactly some values, and whether it is the only one."""
        requested = Counter(map(self._flat.root, reads))
        fitting = [
            node
            for node in nodes
            if self._roots(self._in_order(node)) <= requested <= self._roots(node.reads)
        ]
        if not fitting:
            return None, True
        if len(fitting) > 1 and constants:
            fitting = [n for n in fitting if self._weights.has(n, constants)] or fitting
        ordered = [node for node in fitting if self._in_order(node) == list(reads)]
        fitting = ordered or fitting
        alike = {str([(a.name, a.values, a.literal) for a in node.node.args]) for node in fitting}
        return fitting[0], len(alike) == 1

    def _in_order(self, node: FlatNode) -> list[Value]:
        fixed = constant_values(self._flat)
        return [value for value in node.reads if value not in fixed]

    def _roots(self, values: Iterable[Value]) -> Counter[Value]:
        return Counter(map(self._flat.root, values))


class _Weights:
    """The bytes of the parameters of a recorded graph."""

    def __init__(self, session: Session, method: str, flat: FlatGraph) -> None:
        assert session.record is not None
        self._record, self._flat, self._method = session.record, flat, method
        self._bytes: dict[str, bytes] | None = None

    def has(self, node: FlatNode, constants: Sequence[bytes]) -> bool:
        """Return whether one of the parameters that a node reads has the bytes of a constant."""
        if self._bytes is None:
            held = record_maps.constants(self._record, self._method)
            self._bytes = {name: bytes(one.data) for name, one in held.items() if one.data}
        names = {root[1] for value in node.reads if (root := self._source(value))}
        return any(self._bytes.get(name) in constants for name in names)

    def _source(self, value: Value) -> Value:
        """Return the source of a constant, through nodes of one operand."""
        maker = self._flat.producers.get(value)
        while maker is not None and len(maker[0].reads) == 1:
            value = maker[0].reads[0]
            maker = self._flat.producers.get(value)
        return value


def _moves_alike(node: FlatNode, payload: InsideNode) -> bool:
    """Return whether a slice begins, or a transposition goes, where a recorded node shows it.

    A tensor of four dimensions is ambiguous: the payload may have channels last.
    """
    facts = payload.node.attributes
    given = {argument.name: argument.literal for argument in node.node.args}
    offsets, dim, start = facts.get("offsets"), given.get("dim", 0), given.get("start")
    if not isinstance(offsets, (list, tuple)) or not isinstance(dim, int):
        return True
    begins: list[object] = [*offsets]
    if len(begins) == _IMAGE_DIMS or not isinstance(start, int) or start < 0:
        return True
    return begins[dim] == start


def _count(sizes: object) -> int | None:
    if not isinstance(sizes, tuple):
        return None
    found = [size for size in sizes if isinstance(size, int)]  # pyright: ignore[reportUnknownVariableType]
    return numel(tuple(found)) if len(found) == len(sizes) else None  # pyright: ignore[reportUnknownArgumentType]


def _is_call(instruction: m.Instruction) -> bool:
    return isinstance(instruction.instr_args, m.DelegateCall)


def _tensors(plan: m.ExecutionPlan, call: m.KernelCall) -> list[int]:
    """Return the tensors among the arguments of a kernel call, those in lists in their places."""
    found: list[int] = []
    for index in call.args:
        value = plan.values[index].val if 0 <= index < len(plan.values) else None
        if isinstance(value, (m.TensorList, m.OptionalTensorList)):
            found += [item for item in value.items if item >= 0]
        elif isinstance(value, m.Tensor):
            found.append(index)
    return found
