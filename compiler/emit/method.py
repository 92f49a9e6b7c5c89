"""One edge program as an execution plan: values, operators, and a chain of instructions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from compiler.dialect.delegate_call import executorch_call_delegate
from compiler.dialect.mutating_ops import writer_of
from compiler.dialect.ops import EdgeOp
from compiler.dialect.out_variants import Formal, OutVariant, find_out_variant, formals_of
from compiler.emit.constants import TensorSegment, on_cpu
from compiler.emit.containers import tree_spec_string
from compiler.emit.delegates import DelegateMaps, DelegateStore, called_module
from compiler.emit.external import ExternalStore, external_name
from compiler.emit.frames import frames_of
from compiler.emit.origins import Homes, note_delegate
from compiler.emit.values import ValueBuilder, scalar_value
from compiler.errors import CompileError, PlanError, UnsupportedError, at
from compiler.memory.blocks import BlockPlacement
from compiler.memory.instructions import (
    Jump,
    Label,
    Move,
    OperatorCall,
    PlannedView,
    Raw,
    SizedView,
    Slot,
    Write,
    results_of,
)
from compiler.memory.lifetimes import Schedule
from compiler.memory.specs import STATIC, FrozenSpec, scalar_type_of
from compiler.untyped import NUMBER_OPERATORS, SYMBOLIC, aten
from schema.objects.cyclic_gc import gc_suspended
from schema.program import model as m

_NO_RESULT = FrozenSpec(scalar_type_of(torch.uint8), (0,), (0,), STATIC)
_SEGMENT, _EXTERNAL = 0, 1  # program.fbs TensorDataLocation
_NUMBER_KERNELS: dict[Any, tuple[str, str]] = {
    aten.sym_size.int: ("aten::sym_size", "int"),
    aten._local_scalar_dense.default: ("aten::_local_scalar_dense", ""),
}


@dataclass(frozen=True)
class EmittedMethod:
    """An execution plan and the origins of its instructions.

    Attributes:
        plan: the tables of the method
        debug_handles: debug handle of each instruction that has one, several for a delegate
        delegates: facts about its delegate instructions
    """

    plan: m.ExecutionPlan
    debug_handles: Mapping[int, int | list[int]]
    delegates: DelegateMaps


@dataclass(frozen=True, slots=True)
class _Written:
    """A slot as an argument: the value that an operator writes may have no node."""

    slot: Slot


@dataclass(frozen=True)
class Stores:
    """The segments of tensor bytes, shared by all methods of a program."""

    constants: TensorSegment
    states: TensorSegment
    external: ExternalStore = field(default_factory=ExternalStore)
    delegates: DelegateStore = field(default_factory=DelegateStore)


@dataclass(frozen=True)
class EmitOptions:
    """Options of the execution plan.

    Attributes:
        stack_traces: the source lines of each instruction
        tags: file of a constant that is stored elsewhere, by placeholder
        buffer_names: names of the buffers that are written
        zero_state: initial bytes of buffers that are written where all are zero
    """

    stack_traces: bool = False
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    buffer_names: bool = False
    zero_state: bool = True


@gc_suspended()
def emit_method(
    name: str,
    program: ExportedProgram,
    steps: Schedule,
    memory: BlockPlacement,
    stores: Stores,
    options: EmitOptions,
) -> EmittedMethod:
    """Return the plan of a method.

    Raises: UnsupportedError naming the node the runtime has no value or operator for
    """
    emission = _Emission(program, steps, memory, stores, options)
    emission.run()
    chain = m.Chain(
        inputs=(),
        outputs=(),
        instructions=tuple(emission.instructions),
        stacktrace=tuple(map(frames_of, emission.sources)) if options.stack_traces else None,
    )
    plan = m.ExecutionPlan(
        name=name,
        container_meta_type=_containers(program),
        values=tuple(emission.table.values),
        inputs=tuple(emission.inputs),
        outputs=tuple(emission.outputs),
        chains=(chain,),
        operators=tuple(m.Operator(*key) for key in emission.operators),
        delegates=tuple(emission.delegates),
        non_const_buffer_sizes=(0, *memory.arena_sizes),
        non_const_buffer_device=None,
    )
    handles = {**emission.debug_handles, **emission.delegate_maps.handles}
    in_order = dict(sorted(handles.items()))
    return EmittedMethod(plan, in_order, emission.delegate_maps)


def _containers(program: ExportedProgram) -> m.ContainerMetadata:
    specs = program.call_spec
    return m.ContainerMetadata(tree_spec_string(specs.in_spec), tree_spec_string(specs.out_spec))


class _Emission:
    def __init__(
        self,
        program: ExportedProgram,
        steps: Schedule,
        memory: BlockPlacement,
        stores: Stores,
        options: EmitOptions,
    ) -> None:
        self.options = options
        self.program = program
        self.steps = steps
        self.memory = memory
        self.stores = stores
        self.specs: dict[str, Any] = {
            spec.arg.name: spec for spec in program.graph_signature.input_specs
        }
        self.index: dict[Any, int] = {}
        self.viewed: dict[Slot, Slot] = {}  # a view: its base
        self.table = ValueBuilder(self._index_of)
        self.operators: dict[tuple[str, str], int] = {}
        self.instructions: list[m.Instruction] = []
        self.sources: list[torch.fx.Node] = []
        self.debug_handles: dict[int, int] = {}
        self.delegates: list[m.BackendDelegate] = []
        self.delegate_maps = DelegateMaps()
        self.homes = Homes(program.graph_module)
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.labels: dict[Label, int] = {}
        self.jumps: list[tuple[int, Label]] = []

    def run(self) -> None:
        act: dict[type[Any], Any] = {
            OperatorCall: self._call,
            PlannedView: self._view,
            SizedView: self._sized_view,
            Raw: self._raw,
            Write: self._write,
            Move: self._move,
            Jump: self._jump,
            Label: self._label,
        }
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                self._with_node(node, self._placeholder, node)
        for step in self.steps.steps:
            node = step.name[0] if isinstance(step, Label) else step.node
            self._with_node(node, act[type(step)], step)
        for target, value in self.steps.written.items():
            if self.steps.resolve(value) != self.steps.resolve(target):
                self._write_back(target, value)
        self.outputs += [self.table.literal(value) for value in self.steps.outputs]
        for place, label in self.jumps:
            jump = self.instructions[place].instr_args
            assert isinstance(jump, m.JumpFalseCall)
            landed = m.JumpFalseCall(jump.cond_value_index, self.labels[label])
            self.instructions[place] = m.Instruction(landed)

    def _with_node(self, node: torch.fx.Node, act: Any, given: Any) -> None:  # noqa: ANN401
        try:
            act(given)
        except CompileError as error:
            raise type(error)(f"{error}: {at(node)}") from error

    def _index_of(self, node: torch.fx.Node) -> int:
        return self._value(self.steps.resolve(node))

    def _value(self, leaf: Any) -> int:  # noqa: ANN401
        """Return the value index of a slot, or of a scalar."""
        if not isinstance(leaf, tuple):
            return self.table.literal(leaf)
        slot: Slot = leaf  # pyright: ignore[reportUnknownVariableType]
        if slot not in self.index:
            if slot in self.viewed:
                self._tensor(slot, self._constant_of(slot))
            elif slot in self.steps.specs:
                self._tensor(slot)
            else:
                self.index[slot] = self.table.add(m.Int(0))
        return self.index[slot]

    def _raw(self, step: Raw) -> None:
        args = [self._value(arg) for arg in step.args]
        self._instruction(step.name, step.overload, args, step.node)

    def _move(self, step: Move) -> None:
        move = m.MoveCall(self._value(step.source), self._value(step.target))
        self._add(move, step.node)

    def _jump(self, step: Jump) -> None:
        self.jumps.append((len(self.instructions), step.target))
        self._add(m.JumpFalseCall(self._value(step.condition), 0), step.node)

    def _label(self, step: Label) -> None:
        self.labels[step] = len(self.instructions)

    def _place(self, slot: Any) -> tuple[int, int] | None:  # noqa: ANN401
        block = self.steps.block_of.get(slot)
        if block is None or not self.steps.blocks[block].planned:
            return None
        return self.memory.place(block)

    def _tensor(
        self,
        slot: Any,  # noqa: ANN401
        buffer: int = 0,
        extra: m.ExtraTensorInfo | None = None,
    ) -> int:
        index = self.table.tensor(self.steps.specs[slot], buffer, self._place(slot), extra)
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
        if not node.users:
            return  # such as the count of batches in a batch norm
        data = on_cpu(self._data(spec), spec.target)
        tag = self.options.tags.get(node.name)
        if self.steps.is_state(node):
            self._state(node, spec.target, data)
        elif tag is not None:
            name = external_name(spec, data)
            self.stores.external.add(tag, name, data)
            self._tensor((node, 0), 0, _extra(name, _EXTERNAL))
        else:
            self._tensor((node, 0), self.stores.constants.add(data))

    def _state(self, node: torch.fx.Node, name: str, data: torch.Tensor) -> None:
        planned = self._place((node, 0)) is not None
        tag = self.options.tags.get(node.name)
        trained = self.specs[node.name].kind == InputKind.PARAMETER
        if tag is not None and planned and trained:
            self.stores.external.add(tag, name, data)
            self._tensor((node, 0), 0, _extra(name, _EXTERNAL))
            return
        named = self.options.buffer_names
        if not named and not planned:  # without a name nothing can assign memory to it
            raise PlanError(
                f'Mutable buffer "{name}" must have a memory id and offset if it is emitted '
                "without a name: plan its memory (alloc_mutable_buffers), or set "
                "emit_mutable_buffer_names=True and assign memory to it before the method runs"
            )
        stored = planned and (self.options.zero_state or bool(data.any()))
        buffer = self.stores.states.add(data) if stored else 0
        self._tensor((node, 0), buffer, _extra(name, _SEGMENT) if named else None)

    def _data(self, spec: Any) -> torch.Tensor:  # noqa: ANN401
        if spec.target in self.program.state_dict:
            return self.program.state_dict[spec.target]
        held = self.program.constants.get(spec.target)
        if not isinstance(held, torch.Tensor):
            raise UnsupportedError(f"{spec.target} is not a tensor")
        return held

    def _view(self, step: PlannedView) -> None:
        """Record a view; it becomes a value at its first use."""
        self.viewed[step.node, 0] = self.steps.resolve(step.node.args[0])

    def _constant_of(self, slot: Slot) -> int:
        """Return the constant that a view shows, 0 for one of planned memory."""
        while slot in self.viewed:
            slot = self.viewed[slot]
        base = self.table.values[self._value(slot)].val
        assert isinstance(base, m.Tensor)
        return base.data_buffer_idx if base.allocation_info is None else 0

    def _sized_view(self, step: SizedView) -> None:
        """Emit a view with sizes known at run time; the instruction assigns its memory."""
        node = step.node
        base = self._value(self.steps.resolve(node.args[0]))
        sizes = self.table.literal(list(step.sizes), "SymInt[]")
        built = self.index[node, 0] = self.table.tensor(self.steps.specs[node, 0], 0, None, None)
        self._instruction("executorch_prim::et_view", "default", [base, sizes, built], node)

    def _call(self, step: OperatorCall) -> None:
        node = step.node
        target = node.target
        if isinstance(target, EdgeOp):
            variant = find_out_variant(target.op)
            assert variant is not None  # checked before, for all operators together
            args = self._kernel_arguments(node, target, variant)
            self._instruction(variant.name, variant.overload, args, node)
            return
        if target is executorch_call_delegate:
            self._delegate(node)
            return
        built = self.index[node, 0] = self.table.add(m.Int(0))
        args = [*(self.table.literal(a) for a in node.args), built]
        if target in _NUMBER_KERNELS:
            self._instruction(*_NUMBER_KERNELS[target], args, node)
        elif target in NUMBER_OPERATORS:
            self._instruction(f"executorch_prim::{NUMBER_OPERATORS[target]}", "Scalar", args, node)
        else:
            raise UnsupportedError(f"{target} has no operator in the runtime")

    def _delegate(self, node: torch.fx.Node) -> None:
        module = called_module(node)
        args = [self.table.literal(argument) for argument in node.args[1:]]
        for place, value in enumerate(results_of(node)):
            if isinstance(value, torch.Tensor):
                args.append(self._tensor((node, place)))
            else:
                self.index[node, place] = self.table.add(m.Int(0))
                args.append(self.index[node, place])
        self.delegate_maps.note(len(self.instructions), node, module, len(results_of(node)))
        if not node.meta.get("composed"):  # its names belong to a separate program
            origins, prefix = self.delegate_maps.origins, self.homes.inside(node)
            note_delegate(origins, len(self.instructions), prefix, module)
        self.delegates.append(self.stores.delegates.add(module))
        self._add(m.DelegateCall(len(self.delegates) - 1, tuple(args)), node)

    def _kernel_arguments(
        self, node: torch.fx.Node, target: EdgeOp, variant: OutVariant
    ) -> list[int]:
        names = [argument.name for argument in target.op._schema.arguments]
        given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
        built = [
            self._nothing() if value is None else self._tensor((node, place))
            for place, value in enumerate(results_of(node))
        ]
        args = self._with_results(given, variant, built)
        single = isinstance(node.meta["val"], torch.Tensor)
        return [*args, built[0] if single else self.table.literal_indices(built)]

    def _nothing(self) -> int:
        """Return an empty tensor for a result that a mask omits.

        Upstream: exir/emit/_emitter.py, `_get_empty_tensor_evalue`.
        """
        return self.table.tensor(_NO_RESULT, 0, None)

    def _with_results(
        self, given: Mapping[str, Any], variant: OutVariant, built: list[int]
    ) -> list[int]:
        outs = iter(built)
        args: list[int] = []
        for formal in variant.arguments:
            if not formal.is_out:
                args.append(self._argument(given, formal))
            elif "List" in formal.kind:
                args.append(self.table.literal_indices(built))
            else:
                args.append(next(outs))
        return args

    def _write(self, step: Write) -> None:
        """Call an operator with its arguments; one without results has no out argument."""
        node = step.node
        op = writer_of(node)
        slots = {name: _Written(slot) for name, slot in step.targets.items()}
        given = {**node.kwargs, **slots}
        count = len(op.op._schema.returns)
        variant = find_out_variant(op.op)
        if variant is None:
            args = [self._argument(given, formal) for formal in formals_of(op.op)]
            self._instruction(op.schema_name, op.op._schema.overload_name, args, node)
            return
        built = [self._tensor((node, place)) for place in range(count)]
        args = self._with_results(given, variant, built)
        args.append(built[0] if count == 1 else self.table.literal_indices(built))
        self._instruction(variant.name, variant.overload, args, node)

    def _argument(self, given: Mapping[str, Any], formal: Formal) -> int:
        value = given.get(formal.name, formal.default)
        if isinstance(value, _Written):
            return self._value(value.slot)
        return self.table.literal(value, formal.kind)

    def _write_back(self, target: torch.fx.Node, value: Any) -> None:  # noqa: ANN401
        to = self._index_of(target)
        args = [to, self.table.literal(value), self.table.literal(False), to]
        place = self.operators.setdefault(("aten::copy_", ""), len(self.operators))
        self._add(m.KernelCall(place, tuple(args)), value)

    def _instruction(self, name: str, overload: str, args: list[int], node: torch.fx.Node) -> None:
        self._is_node(node)
        place = self.operators.setdefault((name, overload), len(self.operators))
        self._add(m.KernelCall(place, tuple(args)), node)

    def _add(self, call: m.InstructionArgs, node: torch.fx.Node) -> None:
        self.instructions.append(m.Instruction(call))
        self.sources.append(node)

    def _is_node(self, node: torch.fx.Node) -> None:
        """Record the node of the next instruction; jumps, moves and state updates have none."""
        handle = node.meta.get("debug_handle", 0)
        if handle:
            self.debug_handles[len(self.instructions)] = handle
            self.delegate_maps.origins.nodes[len(self.instructions)] = self.homes(node)


def _extra(name: str, location: int) -> m.ExtraTensorInfo:
    return m.ExtraTensorInfo(0, name, location, 0, 0)


def _example(value: Any) -> m.KernelType:  # noqa: ANN401
    if isinstance(value, SYMBOLIC):
        hint = value.node.hint
        return scalar_value(0 if hint is None else hint)
    return scalar_value(value)
