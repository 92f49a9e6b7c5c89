"""When each value of an edge program is written and last read, as blocks of memory."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from compiler.dialect.memory_ops import IN_PLACE_OF
from compiler.dialect.ops import edge_op
from compiler.dialect.outputs import TRAINED, is_user_output
from compiler.dialect.templates import nodes_in
from compiler.errors import CompileError, at
from compiler.memory.blocks import MemoryBlock, Role
from compiler.memory.instructions import (
    Jump,
    Move,
    OperatorCall,
    PlannedView,
    Raw,
    SizedView,
    Slot,
    Step,
    Write,
    is_instruction,
    results_of,
    slot_of,
)
from compiler.memory.specs import DYNAMIC_BOUND, FrozenSpec, spec_of
from compiler.untyped import HigherOrderOperator, aten, ranges_of

_VIEW = edge_op(aten.view_copy.default)
SAME_BYTES = frozenset(
    edge_op(op)
    for op in (
        aten.view_copy.default,
        aten.unsqueeze_copy.default,
        aten.squeeze_copy.dim,
        aten.squeeze_copy.dims,
        aten.alias_copy.default,
    )
)


@dataclass(frozen=True)
class Schedule:
    """The instructions of a method in order, and the memory they need.

    Attributes:
        steps: the instructions, bodies of control flow inlined
        stands_for: operand of each input of a body
        written: placeholder and the value copied into it by an instruction after all steps
        outputs: the results of the user
        blocks: memory blocks with their lifetimes
        block_of: block of each tensor that has one; constants have none
        specs: shape and type of each tensor
    """

    steps: tuple[Step, ...]
    stands_for: Mapping[Slot, Any]
    written: Mapping[torch.fx.Node, Any]
    outputs: tuple[Any, ...]
    blocks: tuple[MemoryBlock, ...]
    block_of: Mapping[Slot, int]
    specs: Mapping[Slot, FrozenSpec]

    def resolve(self, leaf: Any) -> Any:  # noqa: ANN401
        """Return the slot of a node, resolving inputs of bodies; other leaves unchanged."""
        return _resolve(self.stands_for, leaf)

    def is_state(self, node: torch.fx.Node) -> bool:
        """Return whether a placeholder is a buffer that this or another method writes."""
        block = self.block_of.get((node, 0))
        return node in self.written or (
            block is not None and self.blocks[block].role is Role.BUFFER
        )


def _resolve(stands_for: Mapping[Slot, Any], leaf: Any) -> Any:  # noqa: ANN401
    if not isinstance(leaf, torch.fx.Node):
        return leaf
    slot = slot_of(leaf)
    return stands_for.get(slot, slot)


Flow = Callable[["Scheduling", torch.fx.Node, torch.fx.GraphModule], None]
"""Adds the steps of a call; the last argument is the graph module that the call is in."""


class Scheduling:
    """Collects the steps and blocks of one method; control flow adds its own through it."""

    elide_views = True
    not_viewed: frozenset[str] = frozenset()
    state: frozenset[str] = frozenset()

    def __init__(
        self,
        program: ExportedProgram,
        options: Any,  # noqa: ANN401 - a MemoryPlanningPass, or a pass with some of its attributes
        flows: Mapping[str, Flow],
    ) -> None:
        """Take the program, which values are planned, and the steps of higher-order operators.

        Args:
            program: the edge program
            options: which values are planned
            flows: by name of a higher-order operator, what adds the steps of its calls
        """
        self.program = program
        self.options = options
        self.flows = flows
        self.ranges = ranges_of(program)
        self.nodes = list(program.graph.nodes)
        self.by_name = {node.name: node for node in self.nodes}
        self.written, self.outputs = _results(program, self.by_name)
        self.ends = {n for n in (*self.written.values(), *self.outputs) if _is_node(n)}
        lends = not getattr(options, "alloc_graph_output", True)
        self.lent = set(filter(_is_node, self.outputs)) if lends else set[torch.fx.Node]()
        self.steps: list[Step] = []
        self.now = 1  # inputs are there at 0, before the first instruction
        self.stands_for: dict[Slot, Any] = {}
        self.blocks: list[MemoryBlock] = []
        self.block_of: dict[Slot, int] = {}
        self.specs: dict[Slot, FrozenSpec] = {}
        self.order: dict[torch.fx.Graph, dict[torch.fx.Node, int]] = {}  # of graphs with writes

    def run(self) -> Schedule:
        """Return the complete schedule."""
        inputs = {s.arg.name: s for s in self.program.graph_signature.input_specs}
        for node in self.nodes:
            if node.op == "placeholder":
                self._with_node(node, self._placeholder, inputs[node.name])
        self.calls(self.program.graph_module)
        self._keep_to_the_end()
        return Schedule(
            tuple(self.steps),
            self.stands_for,
            self.written,
            self.outputs,
            tuple(self.blocks),
            self.block_of,
            self.specs,
        )

    def calls(self, owner: torch.fx.GraphModule) -> None:
        """Add the steps of all calls of a graph."""
        for node in owner.graph.nodes:
            if node.op == "call_function" and node.target is not operator.getitem:
                self._with_node(node, self._call, owner)

    def resolve(self, leaf: Any) -> Any:  # noqa: ANN401
        """Return the slot of a node; other leaves are returned unchanged."""
        return _resolve(self.stands_for, leaf)

    def add(self, step: Step) -> None:
        """Add a step; the lifetimes of its inputs are extended to it."""
        for slot in _reads(step):
            self.use(slot, self.now)
        self.steps.append(step)
        self.now += is_instruction(step)

    def body(
        self, owner: torch.fx.GraphModule, operands: Iterable[Any], into: Iterable[Slot | None] = ()
    ) -> list[Any]:
        """Add the steps of a body and return the slots, or scalars, of its results.

        Args:
            owner: the body
            operands: nodes, slots or scalars of its inputs, in order
            into: slots whose memory its results are written to; they are moved there later
        """
        inputs = [node for node in owner.graph.nodes if node.op == "placeholder"]
        for node, operand in zip(inputs, operands, strict=True):
            found = self.resolve(operand)
            self.stands_for[node, 0] = found
        last: Any = next(reversed(owner.graph.nodes))
        given = last.args[0]
        results: list[Any] = [*given] if isinstance(given, (list, tuple)) else [given]
        self.ends.update(filter(_is_node, results))
        for result, slot in zip(results, into, strict=False):
            if slot in self.block_of and _is_node(result):
                self.block_of[slot_of(result)] = self.block_of[slot]
        self.calls(owner)
        return [self.resolve(result) for result in results]

    def results(
        self,
        node: torch.fx.Node,
        *,
        resized: frozenset[int] = frozenset(),
        without: frozenset[int] = frozenset(),
    ) -> None:
        """Start the lifetimes of a node's results.

        Args:
            node: the node
            resized: results that grow while they are computed
            without: results that have memory already
        """
        for index, value in enumerate(results_of(node)):
            if isinstance(value, torch.Tensor) and index not in without:
                spec = self._spec((node, index), value)
                if index in resized:
                    self.specs[node, index] = replace(spec, dynamism=DYNAMIC_BOUND)
                self._block((node, index), spec, Role.TEMPORARY, at=self.now)

    def helper(self, slot: Slot, spec: FrozenSpec) -> None:
        """Start the lifetime of a tensor without a node."""
        self.specs[slot] = spec
        self._block(slot, spec, Role.TEMPORARY, at=self.now)

    def use(self, slot: Any, now: int) -> None:  # noqa: ANN401
        """Extend the lifetime of a slot to an instruction."""
        index = self.block_of.get(cast("Slot", slot)) if isinstance(slot, tuple) else None
        if index is not None and self.blocks[index].last < now:
            self.blocks[index] = replace(self.blocks[index], last=now)

    def repeat(self, first: int) -> None:
        """Extend the lifetime of values that a loop reads from outside to its last instruction."""
        end = self.now - 1  # the next instruction is behind the loop
        for index, block in enumerate(self.blocks):
            if block.first < first <= block.last < end:
                self.blocks[index] = replace(block, last=end)

    def _with_node(self, node: torch.fx.Node, act: Any, given: Any) -> None:  # noqa: ANN401
        try:
            act(node, given)
        except CompileError as error:
            if ": node " in str(error):  # raised for a node of a body
                raise
            raise type(error)(f"{error}: {at(node)}") from error

    def _placeholder(self, node: torch.fx.Node, given: Any) -> None:  # noqa: ANN401
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            return
        spec = self._spec((node, 0), value)
        if given.kind == InputKind.USER_INPUT:
            planned = bool(getattr(self.options, "alloc_graph_input", True))
            self._block((node, 0), spec, Role.INPUT, planned=planned, at=0)
        elif node in self.written or (node.users and given.target in self.state):
            planned = bool(getattr(self.options, "alloc_mutable_buffers", True))
            self._block((node, 0), spec, Role.BUFFER, planned=planned, at=0)

    def _call(self, node: torch.fx.Node, owner: torch.fx.GraphModule) -> None:
        flow = self.flows.get(getattr(node.target, "__name__", ""))
        if flow is not None and isinstance(node.target, HigherOrderOperator):
            flow(self, node, owner)
            return
        for index, value in enumerate(results_of(node)):
            if isinstance(value, torch.Tensor):
                self._spec((node, index), value)
        for used in nodes_in((node.args, node.kwargs)):
            self.use(self.resolve(used), self.now)
        if self._shares_memory(node):
            base = self.resolve(node.args[0])
            sizes = _sizes_of_run(node) if self._is_dynamic(node) else None
            self.add(PlannedView(node) if sizes is None else SizedView(node, sizes))
            if base in self.block_of:
                self.block_of[node, 0] = self.block_of[base]
            return
        shared = self._place_of_input(node)
        if shared is not None:
            self.block_of[node, 0] = shared
        for index, value in enumerate(results_of(node)):
            if isinstance(value, torch.Tensor):
                self._block((node, index), self.specs[node, index], Role.TEMPORARY, at=self.now)
        self.add(OperatorCall(node))

    def _place_of_input(self, node: torch.fx.Node) -> int | None:
        """Return the block of the argument that a node is marked to be written over."""
        place = node.meta.get(IN_PLACE_OF)
        if place is None or node in filter(_is_node, self.outputs):
            return None
        base = self.resolve(node.args[place])
        block = self.block_of.get(base) if isinstance(base, tuple) else None  # pyright: ignore[reportUnknownArgumentType]
        if block is None or not self.blocks[block].planned:
            return None
        return block if self.specs[base] == self.specs[node, 0] else None

    def _is_dynamic(self, node: torch.fx.Node) -> bool:
        """Return whether a view or its base has dynamic sizes."""
        return bool(self.specs[self.resolve(node.args[0])].dynamism or self.specs[node, 0].dynamism)

    def _shares_memory(self, node: torch.fx.Node) -> bool:
        """Return whether a node is a view in the memory of its first argument, not a copy."""
        base = self.resolve(node.args[0]) if node.args else None
        if node.target not in SAME_BYTES or node in self.ends or not isinstance(base, tuple):
            return False
        if not self.elide_views or base[0].name in self.not_viewed:  # pyright: ignore[reportUnknownMemberType]
            return False
        given, built = self.specs[base], self.specs[node, 0]
        if not given.is_contiguous or not built.is_contiguous or given.nbytes != built.nbytes:
            return False
        if self._is_dynamic(node) and _sizes_of_run(node) is None:
            return False
        block = self.block_of.get(base)  # pyright: ignore[reportUnknownArgumentType]
        return block is None or (self.blocks[block].planned and not self._is_lent(block))

    def _is_lent(self, block: int) -> bool:
        """Return whether the caller provides the memory of a block, which only the output uses."""
        return any(self.block_of.get(self.resolve(node)) == block for node in self.lent)

    def _spec(self, slot: Slot, value: torch.Tensor) -> FrozenSpec:
        spec = self.specs[slot] = spec_of(value, self.ranges)
        return spec

    def _block(
        self,
        slot: Slot,
        spec: FrozenSpec,
        role: Role,
        *,
        at: int,
        planned: bool = True,
    ) -> None:
        if slot in self.block_of:  # the memory of a result of the call whose body this is
            return
        self.block_of[slot] = len(self.blocks)
        name = slot[0].name if slot[1] == 0 else f"{slot[0].name}[{slot[1]}]"
        self.blocks.append(MemoryBlock(name, spec.nbytes, at, at, role, planned))

    def _keep_to_the_end(self) -> None:
        # Written placeholders too: their memory is overwritten after the last call.
        end = self.now + len(self.written)
        ends = (*self.written, *self.written.values(), *filter(_is_node, self.outputs))
        for node in ends:
            self.use(self.resolve(node), end)
        results = {self.resolve(node) for node in self.lent}
        # Results of branches are moved to an output: they are other values, and have memory.
        moved = {block for slot, block in self.block_of.items() if slot not in results}
        for slot in results:
            index = self.block_of.get(slot)
            if index is None or index in moved:
                continue
            if self.blocks[index].role is Role.TEMPORARY:
                self.blocks[index] = replace(self.blocks[index], role=Role.OUTPUT, planned=False)


def _reads(step: Step) -> tuple[Any, ...]:
    if isinstance(step, Raw):
        return step.args
    if isinstance(step, Write):
        return tuple(step.targets.values())
    if isinstance(step, Move):
        return (step.source, step.target)
    return (step.condition,) if isinstance(step, Jump) else ()


def _results(
    program: ExportedProgram, by_name: Mapping[str, torch.fx.Node]
) -> tuple[dict[torch.fx.Node, Any], tuple[Any, ...]]:
    signature = program.graph_signature
    placeholders = {s.target or s.arg.name: s.arg.name for s in signature.input_specs}
    results: Any = by_name["output"].args[0]
    written: dict[torch.fx.Node, Any] = {}
    outputs: list[Any] = []
    for value, spec in zip(results, signature.output_specs, strict=True):
        if is_user_output(spec):
            outputs.append(value)
            if spec.kind == TRAINED:  # state that somebody else changes
                written[value] = value
        else:
            written[by_name[placeholders[spec.target or ""]]] = value
    return written, tuple(outputs)


def _sizes_of_run(node: torch.fx.Node) -> tuple[int | torch.fx.Node, ...] | None:
    """Return the sizes of a view as a program can express them, None if it cannot."""
    if node.target == _VIEW:
        given: Any = node.args[1]
        return tuple(given)
    shape: Any = node.meta["val"].shape
    sizes = tuple(size if isinstance(size, int) else -1 for size in shape)
    return sizes if sizes.count(-1) <= 1 else None


def _is_node(value: object) -> bool:
    return isinstance(value, torch.fx.Node)
