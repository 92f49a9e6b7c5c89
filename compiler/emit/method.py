"""One edge program as an execution plan: values, operators, and a chain of instructions."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from compiler.edge.ops import EdgeOp
from compiler.emit.constants import Segment
from compiler.emit.frames import frames_of
from compiler.emit.out_variants import Formal, OutVariant, find_out_variant
from compiler.emit.values import ValueTable, scalar_value
from compiler.errors import CompileError, UnsupportedError, at
from compiler.memory.blocks import MemoryPlan
from compiler.memory.lifetimes import Schedule, results_of, slot_of
from compiler.untyped import floordiv
from schema.program import model as m

_ARENA = 1
_PRIMS: dict[Any, str] = {
    operator.add: "add",
    operator.sub: "sub",
    operator.mul: "mul",
    floordiv: "floordiv",
    operator.mod: "mod",
}


@dataclass(frozen=True)
class EmittedMethod:
    """A plan and what its instructions came from.

    Attributes:
        plan: the tables of the method
        debug_handles: debug handle of each instruction that has one
    """

    plan: m.ExecutionPlan
    debug_handles: Mapping[int, int]


@dataclass(frozen=True)
class Stores:
    """Where the bytes of tensors go, shared by all methods of a program."""

    constants: Segment
    states: Segment


def emit_method(
    name: str,
    program: ExportedProgram,
    steps: Schedule,
    memory: MemoryPlan,
    stores: Stores,
    *,
    stack_traces: bool = False,
) -> EmittedMethod:
    """Return the plan of a method.

    Raises: UnsupportedError naming the node the runtime has no value or operator for
    """
    emission = _Emission(program, steps, memory, stores)
    emission.run()
    chain = m.Chain(
        inputs=(),
        outputs=(),
        instructions=tuple(emission.instructions),
        stacktrace=tuple(map(frames_of, emission.sources)) if stack_traces else None,
    )
    plan = m.ExecutionPlan(
        name=name,
        container_meta_type=_containers(program),
        values=tuple(emission.table.values),
        inputs=tuple(emission.inputs),
        outputs=tuple(emission.outputs),
        chains=(chain,),
        operators=tuple(m.Operator(*key) for key in emission.operators),
        delegates=(),
        non_const_buffer_sizes=(0, memory.nbytes),
        non_const_buffer_device=None,
    )
    return EmittedMethod(plan, emission.debug_handles)


def _containers(program: ExportedProgram) -> m.ContainerMetadata:
    specs = program.call_spec
    encoded = [pytree.treespec_dumps(s) if s else "" for s in (specs.in_spec, specs.out_spec)]
    return m.ContainerMetadata(encoded[0], encoded[1])


class _Emission:
    def __init__(
        self, program: ExportedProgram, steps: Schedule, memory: MemoryPlan, stores: Stores
    ) -> None:
        self.program = program
        self.steps = steps
        self.memory = memory
        self.stores = stores
        self.specs: dict[str, Any] = {
            spec.arg.name: spec for spec in program.graph_signature.input_specs
        }
        self.index: dict[Any, int] = {}
        self.table = ValueTable(self._index_of)
        self.operators: dict[tuple[str, str], int] = {}
        self.instructions: list[m.Instruction] = []
        self.sources: list[torch.fx.Node] = []
        self.debug_handles: dict[int, int] = {}
        self.inputs: list[int] = []
        self.outputs: list[int] = []

    def run(self) -> None:
        for node in self.program.graph.nodes:
            try:
                if node.op == "placeholder":
                    self._placeholder(node)
                elif node in self.steps.views:
                    self._view(node)
                elif node.op == "call_function" and node.target is not operator.getitem:
                    self._call(node)
            except CompileError as error:
                raise type(error)(f"{error}: {at(node)}") from error
        for target, value in self.steps.written.items():
            self._write_back(target, value)
        self.outputs += [self.table.literal(value) for value in self.steps.outputs]

    def _index_of(self, node: torch.fx.Node) -> int:
        return self.index[slot_of(node)]

    def _place(self, slot: Any) -> tuple[int, int] | None:  # noqa: ANN401
        block = self.steps.block_of.get(slot)
        if block is None or not self.steps.blocks[block].planned:
            return None
        return _ARENA, self.memory.offsets[block]

    def _tensor(self, slot: Any, buffer: int = 0) -> int:  # noqa: ANN401
        index = self.table.tensor(self.steps.specs[slot], buffer, self._place(slot))
        self.index[slot] = index
        return index

    def _placeholder(self, node: torch.fx.Node) -> None:
        spec = self.specs[node.name]
        if spec.kind == InputKind.USER_INPUT:
            if isinstance(node.meta["val"], torch.Tensor):
                index = self._tensor((node, 0))
            else:  # the caller has to pass this very value, so it is not shared
                index = self.index[node, 0] = self.table.add(_example(node.meta["val"]))
            self.inputs.append(index)
            return
        data = self._data(spec)
        if node in self.steps.written:
            self._tensor((node, 0), self.stores.states.add(data, share=False))
        else:
            self._tensor((node, 0), self.stores.constants.add(data))

    def _data(self, spec: Any) -> torch.Tensor:  # noqa: ANN401
        if spec.target in self.program.state_dict:
            return self.program.state_dict[spec.target]
        held = self.program.constants.get(spec.target)
        if not isinstance(held, torch.Tensor):
            raise UnsupportedError(f"{spec.target} is no tensor")
        return held

    def _view(self, node: torch.fx.Node) -> None:
        base = self.table.values[self._index_of(self.steps.views[node])].val
        assert isinstance(base, m.Tensor)
        constant = base.data_buffer_idx if base.allocation_info is None else 0
        self._tensor((node, 0), constant)

    def _call(self, node: torch.fx.Node) -> None:
        target = node.target
        if isinstance(target, EdgeOp):
            variant = find_out_variant(target)
            assert variant is not None  # checked for all at once, before
            args = self._kernel_arguments(node, target, variant)
            self._instruction(variant.name, variant.overload, args, node)
            return
        made = self.index[node, 0] = self.table.add(m.Int(0))
        args = [*(self.table.literal(a) for a in node.args), made]
        if target is torch.ops.aten.sym_size.int:
            self._instruction("aten::sym_size", "int", args, node)
        elif target in _PRIMS:
            self._instruction(f"executorch_prim::{_PRIMS[target]}", "Scalar", args, node)
        else:
            raise UnsupportedError(f"{target} has no operator of the runtime")

    def _kernel_arguments(
        self, node: torch.fx.Node, target: EdgeOp, variant: OutVariant
    ) -> list[int]:
        names = [argument.name for argument in target.op._schema.arguments]
        given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
        made = [self._tensor((node, i)) for i, _ in enumerate(results_of(node))]
        outs = iter(made)
        args: list[int] = []
        for formal in variant.arguments:
            if not formal.is_out:
                args.append(self._argument(given, formal))
            elif "List" in formal.kind:
                args.append(self.table.literal_indices(made))
            else:
                args.append(next(outs))
        single = isinstance(node.meta["val"], torch.Tensor)
        args.append(made[0] if single else self.table.literal_indices(made))
        return args

    def _argument(self, given: Mapping[str, Any], formal: Formal) -> int:
        value = given.get(formal.name, formal.default)
        return self.table.literal(value, formal.kind)

    def _write_back(self, target: torch.fx.Node, value: Any) -> None:  # noqa: ANN401
        to = self._index_of(target)
        args = [to, self.table.literal(value), self.table.literal(False), to]
        self._instruction("aten::copy_", "", args, value)

    def _instruction(self, name: str, overload: str, args: list[int], node: torch.fx.Node) -> None:
        place = self.operators.setdefault((name, overload), len(self.operators))
        handle = node.meta.get("debug_handle", 0)
        if handle:
            self.debug_handles[len(self.instructions)] = handle
        self.instructions.append(m.Instruction(m.KernelCall(place, tuple(args))))
        self.sources.append(node)


def _example(value: Any) -> m.KernelType:  # noqa: ANN401
    if isinstance(value, torch.SymInt):
        return m.Int(int(cast("Any", value).node.hint or 0))
    return scalar_value(value)
