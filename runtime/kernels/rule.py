"""The lines of a kernel table, and the kernels they become once their schema is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from runtime.errors import ErrorCode, ExecutionError
from runtime.memory.slots import dtype_of
from runtime.untyped import parse_schema

_torch_ops: Any = torch.ops


class Style(Enum):
    """How a kernel returns its result.

    Attributes:
        RESULT: it returns tensors, which are stored in the out arguments
        OUT: it takes the slots of the out arguments after its inputs and fills them
        IN_PLACE: it writes to its first input and has no out argument
        SCALAR: it returns a scalar
        SLOTS: it takes values and slots, by its operands
    """

    RESULT = "result"
    OUT = "out"
    IN_PLACE = "in place"
    SCALAR = "scalar"
    SLOTS = "slots"


class Operand(Enum):
    """How an operand of a prim is passed: its value, or its slot to be read or written."""

    VALUE = "value"
    READ = "read"
    WRITTEN = "written"


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a kernel table.

    Attributes:
        style: how the result is returned
        run: the kernel
        schema: schema of the out variant if torch does not define one, else empty
        operands: of a prim, which has no schema
        traced: whether the stock runtime logs this kernel as native_call; prims are not
    """

    style: Style
    run: Callable[..., Any]
    schema: str = ""
    operands: tuple[Operand, ...] = ()
    traced: bool = True


def result(run: Callable[..., Any], schema: str = "") -> Rule:
    """Return the rule of a kernel that returns its results."""
    return Rule(Style.RESULT, run, schema)


def fills(run: Callable[..., Any], schema: str = "") -> Rule:
    """Return the rule of a kernel that fills the slots of its results."""
    return Rule(Style.OUT, run, schema)


def in_place(run: Callable[..., Any]) -> Rule:
    """Return the rule of a kernel that writes to its first input."""
    return Rule(Style.IN_PLACE, run)


def scalar(run: Callable[..., Any], arguments: int) -> Rule:
    """Return the rule of a prim on that many values, which returns a scalar."""
    return prim(Style.SCALAR, run, *[Operand.VALUE] * arguments)


def prim(style: Style, run: Callable[..., Any], *operands: Operand) -> Rule:
    """Return the rule of a prim."""
    return Rule(style, run, operands=operands, traced=False)


Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """An input of a kernel.

    Attributes:
        name: as in the schema
        keyword: whether it is passed by name
        convert: converts the value of the program for torch, None if torch accepts it unchanged
        tensor: whether it is one tensor
        tensor_list: whether it is a list of tensors
    """

    name: str
    keyword: bool
    convert: Convert | None
    tensor: bool
    tensor_list: bool


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel ready to be bound.

    Attributes:
        name: full name of the operator
        rule: its line of the kernel table
        inputs: its inputs in the order of the schema
        outs: number of out arguments
        out_is_list: whether the one out argument is a list of tensors
        writes: indices of the inputs that a custom kernel writes to
        silent: whether it returns nothing, so that the arguments of a call end with its inputs
    """

    name: str
    rule: Rule
    inputs: tuple[KernelArgument, ...]
    outs: int
    out_is_list: bool
    writes: tuple[int, ...] = ()
    silent: bool = False

    @property
    def event_name(self) -> str:
        """Return the name of its event in a trace, empty for prims."""
        return f"native_call_{self.name.partition('::')[2]}" if self.rule.traced else ""


def kernel_of(name: str, rule: Rule) -> Kernel:
    """Return the kernel of a rule.

    Raises: ExecutionError InvalidArgument for an unsupported schema
    """
    if rule.style in (Style.SCALAR, Style.SLOTS):
        inputs = tuple(
            KernelArgument(str(place), False, None, operand is Operand.WRITTEN, False)
            for place, operand in enumerate(rule.operands)
        )
        return Kernel(name, rule, inputs, 0, False)
    schema = schema_of(name, rule)
    arguments: list[Any] = list(schema.arguments)
    outs = [entry for entry in arguments if entry.is_out]
    inputs = tuple(_argument(entry) for entry in arguments if not entry.is_out)
    is_list = len(outs) == 1 and str(outs[0].type) == "List[Tensor]"
    writes: tuple[int, ...] = ()
    if rule.style is Style.RESULT:
        given = [entry for entry in arguments if not entry.is_out]
        writes = tuple(place for place, entry in enumerate(given) if is_written(entry))
    silent = bool(writes) and not outs
    return Kernel(name, rule, inputs, len(outs), is_list, writes, silent)


def is_written(entry: Any) -> bool:  # noqa: ANN401 - torch's argument has no type
    """Return whether a kernel writes to an argument."""
    return entry.alias_info is not None and bool(entry.alias_info.is_write)


def schema_of(name: str, rule: Rule) -> Any:  # noqa: ANN401 - torch's schema has no type
    """Return the schema of an operator: the rule's, else torch's."""
    if rule.schema:
        return parse_schema(name + rule.schema)
    namespace, _, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    packet = getattr(getattr(_torch_ops, namespace), operator)
    return getattr(packet, overload or "default")._schema


def _argument(entry: Any) -> KernelArgument:  # noqa: ANN401 - torch's argument has no type
    kind = str(entry.real_type if hasattr(entry, "real_type") else entry.type)
    return KernelArgument(
        entry.name,
        bool(entry.kwarg_only),
        _CONVERT.get(kind.removeprefix("Optional[").removesuffix("]").removesuffix("?")),
        kind in ("Tensor", "Optional[Tensor]", "Tensor?"),
        kind.startswith(("List[Tensor", "List[Optional[Tensor", "Tensor[]", "Tensor?[]")),
    )


_MEMORY_FORMATS = {
    0: torch.contiguous_format,
    1: torch.preserve_format,
    2: torch.channels_last,
    3: torch.channels_last_3d,
}


def _memory_format(value: int) -> torch.memory_format:
    if value not in _MEMORY_FORMATS:
        raise ExecutionError(ErrorCode.InvalidArgument, f"unknown memory format {value}")
    return _MEMORY_FORMATS[value]


def _nothing(_value: object) -> None:
    return None


_CONVERT: dict[str, Convert] = {
    "ScalarType": dtype_of,
    "MemoryFormat": _memory_format,
    "Layout": _nothing,
    "Device": _nothing,
}
