"""Which value of the recorded graph each instruction output is: by debug handle, then by flow.

A compiler may have recorded the node of each instruction. Otherwise there is the debug handle, the
operator of the user's it came from, and several nodes and several instructions may share one. Among
those, an instruction is the only node of its operator with the same inputs. Where
several do, the next one is taken, and everything that follows from it is as uncertain as that.
Unknown ones are omitted, with a reason.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace

from inspector.files.session import Session
from inspector.join import record_maps
from inspector.numerics.flat_graph import FlatNode, Value, is_unread, one_spelling
from inspector.numerics.grades import FLOW, HANDLE, INSTRUCTION, ORDER
from inspector.numerics.join_facts import Join, JoinTarget, MethodFacts, delegate_members, innermost
from inspector.numerics.loop_copies import CLONE, loop_copies
from inspector.numerics.payload_flow import outputs_by_flow
from inspector.numerics.payload_values import DEQUANTIZE, is_dequantized
from inspector.numerics.traced import COPY_INDEX, VIEW, InstructionOutput, instruction_outputs
from schema.objects.identity_cache import identity_cache
from schema.program import instructions, operator_name
from schema.program import model as m

WRITE_BACK = "aten::copy_"
NO_NODE = "no node of the recorded graph is known to be this instruction"
UNREAD = "nothing reads this result of an operator that writes to its arguments"
_ROUNDS = 4


@identity_cache
def join_method(session: Session, method: str) -> Join:
    """Return the joins of a method with the recorded edge graph."""
    program, record = session.program, session.record
    assert program is not None
    graph = record_maps.edge_graph(record, method) if record is not None else None
    if graph is None:
        reason = "no ETRecord" if record is None else "the record has no such graph"
        outputs = instruction_outputs(program, method)
        reasons = {(each.instruction, each.slot): reason for each in outputs}
        return Join(None, {}, reasons, {})
    return _Joining(MethodFacts(session, method, graph)).join()


class _Joining:
    """Walks the instructions of a method in order, as often as that finds something new."""

    def __init__(self, facts: MethodFacts) -> None:
        self.facts = facts
        self.flat, self.plan = facts.flat, facts.plan
        self.outputs, self.handles = facts.outputs, facts.handles
        self.boundaries: dict[tuple[int, int], tuple[Value, str]] = {}
        self.copies = self._loop_copies()
        self._reset()

    def _reset(self) -> None:
        self.known: dict[int, Value] = {}
        self.definer: dict[int, tuple[int, int]] = {}
        self.used: set[int] = set()
        self.surely: set[int] = set()  # of those, the ones that are so for certain
        self.doubted: set[int] = set()  # values of the plan that are known by order only
        self.uses: dict[tuple[int, int], dict[Value, bool]] = {}  # and whether that is certain
        self.targets: dict[tuple[int, int], JoinTarget] = {}
        self.unread: set[tuple[int, int]] = set()
        self.joined: set[Value] = set()
        inputs = self.flat.inputs
        if len(inputs) == len(self.plan.inputs):
            self.known.update(zip(self.plan.inputs, inputs, strict=True))

    def join(self) -> Join:
        """Return the joins."""
        before = -1
        for _ in range(_ROUNDS):
            self._reset()
            self._walk()
            if len(self.targets) == before:
                break
            before = len(self.targets)
            self._join_boundaries()
            self._join_by_use()
        reasons = {
            place: UNREAD if place in self.unread else NO_NODE
            for outputs in self.outputs.values()
            for output in outputs
            if (place := (output.instruction, output.slot)) not in self.targets
        }
        inputs: dict[int, str] = {}
        if len(self.flat.inputs) == len(self.plan.inputs):
            pairs = zip(self.plan.inputs, self.flat.inputs, strict=True)
            inputs = {index: name for index, (_, name) in pairs}
        calls, unsure = self.facts.calls, self.facts.unsure
        return Join(self.flat, self.targets, reasons, inputs, calls, unsure)

    # ---- one walk
    def _walk(self) -> None:
        self.waiting = self.facts.waiting()
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
        recorded = self.facts.recorded(step, one_spelling(name))
        if recorded is not None and step in self.outputs and recorded.place not in self.used:
            self.waiting[self.facts.key(step, one_spelling(name))] -= 1
            if recorded.operator == one_spelling(name):
                self._take(step, recorded, INSTRUCTION)
            else:
                self._stand(step, recorded)
        elif name == VIEW and call.args:
            self._view(step, call.args[0])
        elif name == WRITE_BACK and not self.facts.candidates(step, WRITE_BACK):
            self._alike(step, call.args[1] if len(call.args) > 1 else -1)
        elif step in self.copies:
            self._copied(step, self.copies[step])
        elif step in self.outputs and name != COPY_INDEX:
            operator = one_spelling(name)
            node = self._node(step, operator)
            self.waiting[self.facts.key(step, operator)] -= 1
            moved = self.facts.layouts.moved(step)
            if node is not None:
                self._take(step, *node)
            elif moved is not None:
                self._alike(step, moved)
            else:
                self._forget(step)
        else:
            self._forget(step)

    def _loop_copies(self) -> Mapping[int, Value]:
        clones = [
            step
            for step, (_, _, instruction) in enumerate(instructions(self.plan))
            if isinstance(args := instruction.instr_args, m.KernelCall)
            and operator_name(self.plan, args) == CLONE
            and not self.facts.candidates(step, one_spelling(CLONE))
        ]
        found = loop_copies(self.flat, self.handles, clones)
        return {
            step: value
            for step, value in found.items()
            if all(self.facts.alike(output, value) for output in self.outputs.get(step, ()))
        }

    def _copied(self, step: int, value: Value) -> None:
        handles = tuple(self.handles.get(step, ()))
        for output in self.outputs.get(step, ()):
            self._define(output, JoinTarget(value, value[1], (), handles, FLOW, same=False))

    def _node(self, step: int, operator: str) -> tuple[FlatNode, str] | None:
        """Return the node an instruction is, and how that is known."""
        free = [
            node for node in self.facts.candidates(step, operator) if node.place not in self.used
        ]
        fitting = [node for node in free if self._fits(step, node)]
        if not free:
            sole = self.facts.only_one(step)
            return (sole, HANDLE) if sole is not None and self._fits(step, sole) else None
        if not fitting:
            return None
        if len(fitting) == 1:
            sole = len(self.facts.rivals(step, operator)) == 1 and step in self.handles
            return fitting[0], HANDLE if sole else self._grade_of(step, operator, fitting[0])
        evident = [node for node in fitting if self._evidence(step, node)]
        if len(evident) == 1:
            return evident[0], self._grade_of(step, operator, evident[0])
        if all(self._same_call(fitting[0], node) for node in fitting):
            return fitting[0], self._grade_of(step, operator, *fitting)
        # Several left: in order, where there are as many instructions as nodes.
        if self.waiting[self.facts.key(step, operator)] == len(free):
            return fitting[0], ORDER
        return None

    def _grade_of(self, step: int, operator: str, *nodes: FlatNode) -> str:
        """Return FLOW if certain joins exclude all but some nodes of one value, else ORDER."""
        places = {node.place for node in nodes}
        others = (
            node
            for node in self.facts.rivals(step, operator)
            if node.place not in places and node.place not in self.surely
        )
        return ORDER if any(self._fits(step, node, certain=True) for node in others) else FLOW

    def _same_call(self, one: FlatNode, other: FlatNode) -> bool:
        """Return whether two nodes have equal operands, so that they are interchangeable."""
        reads = [[self.flat.root(value) for value in node.reads] for node in (one, other)]
        given = [[(a.name, a.literal) for a in node.node.args] for node in (one, other)]
        return one.scope == other.scope and reads[0] == reads[1] and given[0] == given[1]

    def _fits(self, step: int, node: FlatNode, *, certain: bool = False) -> bool:
        """Return whether shapes, types and inputs are consistent with a match, as far as known."""
        outputs = self.outputs[step]
        for output, value in zip(outputs, self.facts.made_by(step, node), strict=False):
            if not self.facts.alike(output, value):
                return False
        pairs = self._pairs(step, node, certain=certain)
        return self.facts.moves_alike(step, node) and all(
            self.flat.root(known) == self.flat.root(requested) for known, requested in pairs
        )

    def _evidence(self, step: int, node: FlatNode) -> bool:
        return any(True for _ in self._pairs(step, node))

    def _pairs(
        self, step: int, node: FlatNode, *, certain: bool = False
    ) -> Iterator[tuple[Value, Value]]:
        """Yield known operands of an instruction beside the operands of the node."""
        reads = self.facts.tensor_reads(step)
        if len(reads) != len(node.reads):
            return
        for index, requested in zip(reads, node.reads, strict=True):
            known = self.known.get(index)
            if certain and index in self.doubted:
                continue
            if known is not None and known[0] == requested[0]:
                yield known, requested

    def _take(self, step: int, node: FlatNode, grade: str) -> None:
        self.used.add(node.place)
        if grade != ORDER:
            self.surely.add(node.place)
        handle = node.node.debug_handle
        handles = self.handles.get(step, ()) or ((handle,) if handle else ())
        outputs, writes = self.outputs[step], self.facts.made_by(step, node)
        for index, requested in zip(self.facts.tensor_reads(step), node.reads, strict=False):
            if len(self.facts.tensor_reads(step)) == len(node.reads):
                self._use(index, requested, certain=grade != ORDER)
        for output in outputs:
            if output.slot < len(writes):
                value = writes[output.slot]
                if is_unread(node.node, value[1]):
                    # Such operators may leave it as it was: llama::update_cache.out does.
                    self.unread.add((step, output.slot))
                    self._define(output, None)
                    continue
                name = node.node.name
                target = JoinTarget(value, name, (name,), tuple(handles), grade)
                self._define(output, target)
            else:
                self._define(output, None)

    def _stand(self, step: int, node: FlatNode) -> None:
        """Join an instruction of another operator with the node whose value it has.

        It stands for all nodes of its handles, as passes fuse them; what it reads is unknown.
        """
        self.used.add(node.place)
        self.surely.add(node.place)
        name, values = node.node.name, self.facts.made_by(step, node)
        handles, covers = tuple(self.handles.get(step, ())), self.facts.covered(step)
        for output in self.outputs[step]:
            value = values[output.slot] if output.slot < len(values) else None
            if value is not None and is_unread(node.node, value[1]):
                value = None
            target = JoinTarget(value, name, covers, handles, INSTRUCTION) if value else None
            self._define(output, target)

    def _use(self, index: int, requested: Value, *, certain: bool = True) -> None:
        definer = self.definer.get(index)
        if definer is not None:
            known = self.uses.setdefault(definer, {})
            known[requested] = known.get(requested, False) or certain

    def _define(
        self, output: InstructionOutput, target: JoinTarget | None, flow: Value | None = None
    ) -> None:
        place = (output.instruction, output.slot)
        self.definer[output.value] = place
        self.known.pop(output.value, None)
        boundary = self.boundaries.get(place)
        if target is None and boundary is not None:
            maker = self.flat.producers.get(boundary[0])
            name = maker[0].node.name if maker is not None else boundary[0][1]
            handles = tuple(self.handles.get(output.instruction, ()))
            target = JoinTarget(
                boundary[0], name, (), handles, boundary[1], same=boundary[0] not in self.joined
            )
        if target is not None:
            target = replace(target, order=self.facts.layouts.of(output))
            self.joined.add(target.value)
            self.targets[place] = target
            self.known[output.value] = target.value if flow is None else flow
            self.doubted.discard(output.value)
            if target.grade == ORDER:
                self.doubted.add(output.value)

    def _forget(self, step: int) -> None:
        for output in self.outputs.get(step, ()):
            self._define(output, None)

    def _alike(self, step: int, source: int) -> None:
        """Join a move or a write-back: its output is its operand."""
        value, came = self.known.get(source), self.definer.get(source)
        for output in self.outputs.get(step, ()):
            if value is None:
                self._define(output, None)
                continue
            given = self.targets.get(came) if came is not None else None
            name = given.node if given is not None else value[1]
            covers = given.covers if given is not None else ()
            handles = given.handles if given is not None else ()
            grade = ORDER if source in self.doubted else FLOW
            self._define(output, JoinTarget(value, name, covers, handles, grade, same=False))

    def _view(self, step: int, source: int) -> None:
        """Join a view with a recorded view, or with its source."""
        value = self.known.get(source)
        outputs = self.outputs.get(step, ())
        if value is None or len(outputs) != 1:
            self._forget(step)
            return
        output, root = outputs[0], self.flat.root(value)
        for node in self.facts.views:
            if node.place in self.used:
                continue
            alike = self.flat.root(node.writes[0]) == root
            if alike and self.facts.alike(output, node.writes[0]):
                self._take(step, node, ORDER if source in self.doubted else FLOW)
                return
        self._alike(step, source)

    # ---- delegates
    def _delegate(self, step: int) -> None:
        nodes = self.facts.calls.get(step, ())
        names = tuple(node.node.name for node in delegate_members(self.flat, nodes))
        handles = tuple(self.handles.get(step, ()))
        outputs = self.outputs.get(step, ())
        recorded = self.facts.returned(step)
        exact = {
            output.value: (value, INSTRUCTION)
            for output, value in zip(outputs, recorded, strict=False)
        }
        flowing = exact or self._flowing(step)
        for output in outputs:
            joined = (
                flowing.get(output.value)
                or self.boundaries.get((step, output.slot))
                or self._sole(step, output)
            )
            if joined is None:
                self._define(output, None)
                continue
            flow, grade = joined
            grade = ORDER if step in self.facts.unsure and grade != INSTRUCTION else grade
            value = innermost(self.flat, nodes, flow)
            maker = self.flat.producers.get(value)
            name = maker[0].node.name if maker is not None else value[1]
            target = JoinTarget(value, name, names or (name,), handles, grade)
            self._define(output, target, flow)

    def _flowing(self, step: int) -> Mapping[int, tuple[Value, str]]:
        """Return the outputs of a call that its payload declares, where handles leave them open."""
        members, own = self.facts.calls.get(step, ()), self.handles.get(step, ())
        several = len(self.outputs.get(step, ())) > 1 and len(set(own)) < len(members)
        args = instructions(self.plan)[step][2].instr_args
        if not several or not isinstance(args, m.DelegateCall):
            return {}
        facts = self.facts
        known = {index: value for index, value in self.known.items() if index not in self.doubted}
        found = outputs_by_flow(facts.session, facts.method, args, members, known)
        alike = {output.value: output for output in self.outputs[step]}
        return {
            index: pair
            for index, pair in found.items()
            if index in alike and facts.alike(alike[index], pair[0])
        }

    def _sole(self, step: int, output: InstructionOutput) -> tuple[Value, str] | None:
        """Return the value that leaves a delegate of one output."""
        leaving = self.facts.leaving(step)
        if len(leaving) == len(self.outputs[step]) == 1 and self.facts.alike(output, leaving[0]):
            return leaving[0], HANDLE
        return None

    def _join_boundaries(self) -> None:
        """Join the outputs of delegates by their readers, then by shape, then by order."""
        for step in self.facts.calls:
            leaving = self.facts.leaving(step)
            outputs = self.outputs.get(step, [])
            left = {output.slot: output for output in outputs}
            sure = True
            inside = self.facts.inside(step)
            for slot in list(left):
                requested = self.uses.get((step, slot), {})
                inner = ((inside(value), certain) for value, certain in requested.items())
                value, certain = next((found for found in inner if found[0]), (None, True))
                if value in leaving and self.facts.alike(left[slot], value):
                    sure = sure and certain
                    self.boundaries[step, slot] = value, FLOW if certain else ORDER
                    leaving.remove(value)
                    del left[slot]
            if len(leaving) == len(left):
                pairs = list(zip(left.values(), leaving, strict=True))
                if all(self.facts.alike(output, value) for output, value in pairs):
                    grade = FLOW if sure and len(pairs) == 1 else ORDER
                    for output, value in pairs:
                        self.boundaries.setdefault((step, output.slot), (value, grade))

    def _join_by_use(self) -> None:
        """Join outputs without a node by their readers: the slice of a loop pass, a copy."""
        for step, outputs in self.outputs.items():
            for output in outputs:
                place = (step, output.slot)
                if place in self.targets or place in self.boundaries:
                    continue
                requested = self.uses.get(place, {})
                value = _one_value(set(requested))
                if value is None or not self.facts.alike(output, value):
                    continue
                if DEQUANTIZE in output.operator and not is_dequantized(self.flat, value):
                    continue  # passes moved a factor into the scale of who reads it
                grade = FLOW if all(requested.values()) else ORDER
                self.boundaries[place] = value, grade


def _one_value(requested: set[Value]) -> Value | None:
    """Return the only value that is read, also by both graphs of a loop; None for several."""
    asked = min(requested, default=None)
    if asked is None or len(requested) == 1:
        return asked
    outer = min(requested, key=lambda value: len(value[0]))
    depth = len(outer[0])
    if all(
        value == outer or len(value[0]) > depth == len(_shared(value, outer)) for value in requested
    ):
        return outer  # the others are what branches inside of it were given
    inner = {(scope[:-1], scope[-1].rpartition("/")[0], name) for scope, name in requested if scope}
    return asked if len(inner) == 1 and all(scope for scope, _ in requested) else None


def _shared(one: Value, other: Value) -> list[str]:
    """Return the nested graphs that both values are in, outermost first."""
    pairs = zip(one[0], other[0], strict=False)
    return [a for a, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)]
