"""Signatures of torch's operators, and the arguments that they were called with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload

from runtime.execution.fused.graph_form import Kind

Tensor = torch.Tensor
_REFUSED_TAGS = frozenset(
    getattr(torch.Tag, name)
    for name in ("data_dependent_output", "dynamic_output_shape", "nondeterministic_seeded")
    if hasattr(torch.Tag, name)
)
_NUMBERED = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def schema_of(operator: Any) -> Any:  # noqa: ANN401 - torch's schema has no type
    """Return the schema of an overload."""
    return operator._schema


@dataclass(frozen=True, slots=True)
class OperatorArgument:
    """An argument of an overload; reading it from torch takes as long as some operators.

    Attributes:
        name: as in the schema
        is_keyword: whether it is passed by name alone
        default: its default value
        type: torch's
        kind: the type as graphs write it
        is_written: whether the operator writes to it
        is_out: whether it is a result
    """

    name: str
    is_keyword: bool
    default: Any
    type: Any
    kind: str
    is_written: bool
    is_out: bool


@dataclass(frozen=True, slots=True)
class OperatorSignature:
    """The schema of an overload.

    Attributes:
        name: of the operator
        text: the schema as a string
        arguments: in order
        requested: types of the arguments
        returns: types of the results
        is_refused: whether graphs cannot repeat it
    """

    name: str
    text: str
    arguments: tuple[OperatorArgument, ...]
    requested: tuple[Kind, ...]
    returns: tuple[Kind, ...]
    is_refused: bool


@cache
def signature_of(operator: OpOverload) -> OperatorSignature:
    """Return what graphs need of the schema of an overload."""
    schema = schema_of(operator)
    arguments = tuple(
        OperatorArgument(
            arg.name,
            bool(arg.kwarg_only),
            arg.default_value,
            arg.type,
            arg.type.str(),
            arg.alias_info is not None and bool(arg.alias_info.is_write),
            bool(arg.is_out),
        )
        for arg in schema.arguments
    )
    requested = tuple(arg.kind for arg in arguments)
    returns = tuple(entry.type.str() for entry in schema.returns)
    refused = not _REFUSED_TAGS.isdisjoint(operator.tags)
    return OperatorSignature(schema.name, str(schema), arguments, requested, returns, refused)


def arguments_of(
    signature: OperatorSignature, args: Sequence[Any], named: dict[str, Any]
) -> list[tuple[OperatorArgument, Any]]:
    """Return each argument with its value."""
    pairs: list[tuple[OperatorArgument, Any]] = []
    for place, arg in enumerate(signature.arguments):
        if place < len(args) and not arg.is_keyword:
            pairs.append((arg, args[place]))
        else:
            pairs.append((arg, named.get(arg.name, arg.default)))
    return _numbers_as_tensors(pairs)


def _numbers_as_tensors(
    pairs: list[tuple[OperatorArgument, Any]],
) -> list[tuple[OperatorArgument, Any]]:
    """Return arguments with tensors without dimensions for numbers that Python gave as tensors.

    They have the dtype that the operator would convert the number to in each run, where it is that
    of a tensor with dimensions beside it.
    """
    tensors = [value for _, value in pairs if isinstance(value, Tensor) and value.dim()]
    dtypes = {tensor.dtype for tensor in tensors}
    return [
        (arg, torch.tensor(value, dtype=next(iter(dtypes))))
        if arg.kind == "Tensor" and len(dtypes) == 1 and _converts(value, *dtypes)
        else (arg, value)
        for arg, value in pairs
    ]


def _converts(value: object, dtype: torch.dtype) -> bool:
    """Return whether an operator on tensors of a dtype converts a number to it."""
    if dtype in (torch.float32, torch.float64):
        return type(value) in (int, float)
    limits = torch.iinfo(dtype) if dtype in _NUMBERED else None
    return limits is not None and type(value) is int and limits.min <= value <= limits.max
