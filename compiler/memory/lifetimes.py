"""When each value of an edge program is written and last read, as blocks of memory."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from compiler.edge.ops import edge_op
from compiler.edge.templates import nodes_in
from compiler.errors import CompileError, at
from compiler.memory.blocks import Block, Role
from compiler.memory.options import MemoryPlanningPass
from compiler.memory.specs import TensorSpec, spec_of
from compiler.untyped import aten, ranges_of

Slot = tuple[torch.fx.Node, int]  # a result of a node; 0 for its only one
_SAME_BYTES = frozenset(
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
        calls: nodes that become instructions
        views: nodes that become another view of a value's memory instead, and that value
        written: placeholder and the value copied into it by an instruction after all calls
        outputs: the results of the user
        blocks: pieces of memory with their lifetimes
        block_of: block of each tensor that has one; constants have none
        specs: shape and type of each tensor
    """

    calls: tuple[torch.fx.Node, ...]
    views: Mapping[torch.fx.Node, torch.fx.Node]
    written: Mapping[torch.fx.Node, Any]
    outputs: tuple[Any, ...]
    blocks: tuple[Block, ...]
    block_of: Mapping[Slot, int]
    specs: Mapping[Slot, TensorSpec]


def slot_of(node: torch.fx.Node) -> Slot:
    """Return the result a node stands for: ``getitem`` stands for one of its source's."""
    if node.op == "call_function" and node.target is operator.getitem:
        source, index = node.args
        assert isinstance(source, torch.fx.Node)  # the graph is flat
        assert isinstance(index, int)
        return source, index
    return node, 0


def results_of(node: torch.fx.Node) -> tuple[Any, ...]:
    """Return the fake results of a node."""
    value = node.meta.get("val")
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def schedule(program: ExportedProgram, options: MemoryPlanningPass) -> Schedule:
    """Return the instructions and blocks of an edge program.

    Raises: CompileError naming the node whose shape cannot be planned
    """
    return _Scheduling(program, options).run()


class _Scheduling:
    def __init__(self, program: ExportedProgram, options: MemoryPlanningPass) -> None:
        self.program = program
        self.options = options
        self.ranges = ranges_of(program)
        self.nodes = list(program.graph.nodes)
        self.by_name = {node.name: node for node in self.nodes}
        self.written, self.outputs = _results(program, self.by_name)
        self.ends = {n for n in (*self.written.values(), *self.outputs) if _is_node(n)}
        self.calls: list[torch.fx.Node] = []
        self.views: dict[torch.fx.Node, torch.fx.Node] = {}
        self.blocks: list[Block] = []
        self.block_of: dict[Slot, int] = {}
        self.specs: dict[Slot, TensorSpec] = {}

    def run(self) -> Schedule:
        kinds = {s.arg.name: s.kind for s in self.program.graph_signature.input_specs}
        for node in self.nodes:
            try:
                if node.op == "placeholder":
                    self._placeholder(node, kinds[node.name])
                elif node.op == "call_function" and node.target is not operator.getitem:
                    self._call(node)
            except CompileError as error:
                raise type(error)(f"{error}: {at(node)}") from error
        self._keep_to_the_end()
        return Schedule(
            tuple(self.calls),
            self.views,
            self.written,
            self.outputs,
            tuple(self.blocks),
            self.block_of,
            self.specs,
        )

    def _placeholder(self, node: torch.fx.Node, kind: InputKind) -> None:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            return
        spec = self.specs[node, 0] = spec_of(value, self.ranges)
        if kind == InputKind.USER_INPUT:
            planned = self.options.alloc_graph_input
            self._block((node, 0), spec, Role.INPUT, planned=planned, at=0)
        elif node in self.written:
            planned = self.options.alloc_mutable_buffers
            self._block((node, 0), spec, Role.BUFFER, planned=planned, at=0)

    def _call(self, node: torch.fx.Node) -> None:
        for index, value in enumerate(results_of(node)):
            if isinstance(value, torch.Tensor):
                self.specs[node, index] = spec_of(value, self.ranges)
        now = len(self.calls)
        for used in nodes_in((node.args, node.kwargs)):
            self._use(slot_of(used), now)
        if self._is_static_view(node):
            base = node.args[0]
            assert isinstance(base, torch.fx.Node)
            self.views[node] = base
            if slot_of(base) in self.block_of:
                self.block_of[node, 0] = self.block_of[slot_of(base)]
            return
        self.calls.append(node)
        for index, value in enumerate(results_of(node)):
            if isinstance(value, torch.Tensor):
                self._block((node, index), self.specs[node, index], Role.TEMPORARY, at=now)

    def _is_static_view(self, node: torch.fx.Node) -> bool:
        base = node.args[0] if node.args else None
        if (
            node.target not in _SAME_BYTES
            or node in self.ends
            or not isinstance(base, torch.fx.Node)
        ):
            return False
        given, made = self.specs[slot_of(base)], self.specs[node, 0]
        if given.dynamism or made.dynamism or not given.is_contiguous or not made.is_contiguous:
            return False
        block = self.block_of.get(slot_of(base))
        return block is None or self.blocks[block].planned

    def _block(
        self,
        slot: Slot,
        spec: TensorSpec,
        role: Role,
        *,
        at: int,
        planned: bool = True,
    ) -> None:
        self.block_of[slot] = len(self.blocks)
        name = slot[0].name if slot[1] == 0 else f"{slot[0].name}[{slot[1]}]"
        self.blocks.append(Block(name, spec.nbytes, at, at, role, planned))

    def _use(self, slot: Slot, now: int) -> None:
        index = self.block_of.get(slot)
        if index is not None and self.blocks[index].last < now:
            self.blocks[index] = replace(self.blocks[index], last=now)

    def _keep_to_the_end(self) -> None:
        # Written placeholders too: their memory is overwritten after the last call.
        end = len(self.calls) + len(self.written)
        for node in (*self.written, *self.ends):
            self._use(slot_of(node), end)
        if self.options.alloc_graph_output:
            return
        for node in filter(_is_node, self.outputs):
            index = self.block_of.get(slot_of(node))
            if index is not None and self.blocks[index].role is Role.TEMPORARY:
                self.blocks[index] = replace(self.blocks[index], role=Role.OUTPUT, planned=False)


def _results(
    program: ExportedProgram, by_name: Mapping[str, torch.fx.Node]
) -> tuple[dict[torch.fx.Node, Any], tuple[Any, ...]]:
    signature = program.graph_signature
    placeholders = {s.target or s.arg.name: s.arg.name for s in signature.input_specs}
    results: Any = by_name["output"].args[0]
    written: dict[torch.fx.Node, Any] = {}
    outputs: list[Any] = []
    for value, spec in zip(results, signature.output_specs, strict=True):
        if spec.kind == OutputKind.USER_OUTPUT:
            outputs.append(value)
        else:
            written[by_name[placeholders[spec.target or ""]]] = value
    return written, tuple(outputs)


def _is_node(value: object) -> bool:
    return isinstance(value, torch.fx.Node)
