"""Programs of one operator, written with the schema's encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from runtime.kernels import built_in
from runtime.kernels.rule import Style
from runtime.memory.slots import CODE_OF, dim_order_of
from schema.program import ProgramFile, encode
from schema.program import model as m

Meta = tuple[torch.dtype, tuple[int, ...]]
"""Element type and sizes of an out argument."""


@dataclass
class Builder:
    """Collects values of a plan; tensors are inputs, planned one behind the other."""

    values: list[m.EValue] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    given: list[torch.Tensor] = field(default_factory=list)
    arena: int = 0

    def add(self, value: m.KernelType) -> int:
        self.values.append(m.EValue(value))
        return len(self.values) - 1

    def tensor(
        self, dtype: torch.dtype, sizes: Sequence[int], order: Sequence[int] = (), dynamism: int = 0
    ) -> int:
        count = 1
        for size in sizes:
            count *= size
        place = m.AllocationDetails(1, self.arena, 0)
        self.arena += -(-count * dtype.itemsize // 16) * 16
        return self.add(
            m.Tensor(
                CODE_OF[dtype],
                0,
                tuple(sizes),
                tuple(order or range(len(sizes))),
                False,
                0,
                place,
                0,
                dynamism,
                None,
            )
        )

    def input(self, tensor: torch.Tensor) -> int:
        index = self.tensor(tensor.dtype, tensor.shape, dim_order_of(tensor))
        self.inputs.append(index)
        self.given.append(tensor)
        return index

    def value(self, value: Any, kind: str = "") -> int:
        if isinstance(value, torch.Tensor):
            return self.input(value)
        if isinstance(value, torch.dtype):
            return self.add(m.Int(CODE_OF[value]))
        if isinstance(value, bool):
            return self.add(m.Bool(value))
        if isinstance(value, int):
            return self.add(m.Double(float(value)) if kind == "float" else m.Int(value))
        if isinstance(value, float):
            return self.add(m.Double(value))
        if isinstance(value, str):
            return self.add(m.String(value))
        if isinstance(value, list):
            return self._list(value, kind)
        return self.add(m.Null())

    def _list(self, value: list[Any], kind: str) -> int:
        if "Tensor" in kind:
            items = tuple(-1 if item is None else self.input(item) for item in value)
            optional = "Optional" in kind
            return self.add(m.OptionalTensorList(items) if optional else m.TensorList(items))
        if "float" in kind:
            return self.add(m.DoubleList(tuple(map(float, value))))
        return self.add(m.IntList(tuple(self.add(m.Int(item)) for item in value)))

    def plan(
        self,
        instructions: Sequence[m.InstructionArgs],
        outputs: Sequence[int],
        operators: Sequence[str],
    ) -> m.ExecutionPlan:
        return m.ExecutionPlan(
            name="forward",
            container_meta_type=None,
            values=tuple(self.values),
            inputs=tuple(self.inputs),
            outputs=tuple(outputs),
            chains=(m.Chain((), (), tuple(map(m.Instruction, instructions)), None),),
            operators=tuple(operator(name) for name in operators),
            delegates=(),
            non_const_buffer_sizes=(0, max(self.arena, 16)),
            non_const_buffer_device=None,
        )


def operator(name: str) -> m.Operator:
    base, _, overload = name.partition(".")
    return m.Operator(base, overload)


def program_of(*plans: m.ExecutionPlan) -> ProgramFile:
    constants = m.SubsegmentOffsets(0, (0,))  # stock needs one entry, used or not
    table = m.ProgramTable(0, plans, (), (), (m.DataSegment(0, 16),), constants, (), ())
    return ProgramFile(table, None, (memoryview(bytes(16)),))


def encoded(plan: m.ExecutionPlan) -> bytes:
    return encode(program_of(plan))


def changed(plan: m.ExecutionPlan, **fields: Any) -> m.ExecutionPlan:
    return replace(plan, **fields)


def one_operator(
    name: str, arguments: Sequence[Any], outs: Sequence[Meta]
) -> tuple[bytes, list[Any]]:
    """Return a program that calls an operator once, and what to give it."""
    kernel = built_in(name)
    assert kernel is not None
    build = Builder()
    kinds = kinds_of(name)
    if kernel.rule.style in (Style.SCALAR, Style.SLOTS):
        kinds = [""] * len(arguments)
    args = [build.value(value, kind) for value, kind in zip(arguments, kinds, strict=True)]
    targets = [build.tensor(dtype, sizes) for dtype, sizes in outs]
    if kernel.rule.style is Style.IN_PLACE:
        tail, outputs = [args[0]], [args[0]]
    elif kernel.rule.style is Style.SCALAR:
        tail = outputs = [build.value(0)]
    elif kernel.out_is_list:
        tail = [build.add(m.TensorList(tuple(targets))), build.add(m.TensorList(tuple(targets)))]
        outputs = targets
    elif len(targets) == 1:
        tail, outputs = [targets[0], targets[0]], targets
    else:
        tail, outputs = [*targets, build.add(m.TensorList(tuple(targets)))], targets
    plan = build.plan([m.KernelCall(0, (*args, *tail))], outputs, [name])
    return encoded(plan), build.given


def kinds_of(name: str) -> list[str]:
    """Return the types of an operator's inputs, as torch's schema names them."""
    from runtime.kernels import TABLE
    from runtime.kernels.rule import schema_of

    rule = TABLE[name]
    if rule.style in (Style.SCALAR, Style.SLOTS):
        return []
    arguments = schema_of(name, rule).arguments
    return [str(entry.type) for entry in arguments if not entry.is_out]
