"""The registers of a payload before a run: the dtype of each value, constants and literals."""

from __future__ import annotations

from typing import Any, cast

import torch

from runtime.backends.graph.operation import OperatorTable
from runtime.delegates.errors import DelegateError
from runtime.errors import ErrorCode, ExecutionError
from runtime.memory.slots import dtype_of
from runtime.untyped import from_buffer
from schema.dtypes.scalar_type import numel
from schema.graph import GraphValue
from schema.payloads import Payload


def dtype_of_value(value: GraphValue, table: OperatorTable, partition: int) -> torch.dtype | None:
    """Return the torch dtype of a value, None for one that is not a tensor.

    Raises: DelegateError for a dtype that torch lacks
    """
    if value.tensor is None or value.kind == "str":
        return None
    try:
        return table.dtypes.get(value.tensor.dtype) or dtype_of(value.tensor.scalar_type)
    except ExecutionError:
        why = f"value {value.name} has dtype {value.tensor.dtype}, which is not supported"
        raise refused(why, partition) from None


def first_registers(payload: Payload, table: OperatorTable, partition: int) -> list[Any]:
    """Return constants and literals in the order of the values, None for computed ones.

    Raises: DelegateError for a constant whose bytes are missing or do not fit
    """
    assert payload.graph is not None
    bytes_of = {one.name: one.data for one in payload.constants}
    found: list[Any] = []
    for value in payload.graph.values.values():
        if not value.constant:
            found.append(_literal(value, table, partition))
            continue
        data = bytes_of.get(value.constant)
        if data is None:
            why = f"the bytes of constant {value.constant} are missing"
            raise DelegateError(ErrorCode.InvalidExternalData, why, partition=partition)
        found.append(
            value.literal if value.tensor is None else constant(value, data, table, partition)
        )
    return found


def constant(
    value: GraphValue, data: memoryview, table: OperatorTable, partition: int
) -> torch.Tensor:
    """Return a constant as a tensor of its own.

    Raises: DelegateError for bytes that do not fit its shape
    """
    try:
        return _stored(value, data, table)
    except (RuntimeError, ValueError) as error:
        why = f"constant {value.name} of {len(data)} bytes does not fit its shape"
        raise refused(f"{why}: {str(error).splitlines()[0]}", partition) from error


def _stored(value: GraphValue, data: memoryview, table: OperatorTable) -> torch.Tensor:
    assert value.tensor is not None
    unpack = table.unpack.get(value.tensor.dtype)
    if unpack is not None:
        return unpack(value, data)
    sizes = tuple(int(size) for size in value.tensor.sizes)
    dtype = dtype_of(value.tensor.scalar_type)
    if not numel(sizes):
        return torch.empty(sizes, dtype=dtype)
    # A copy: operators may write to it, and payloads lie at any address
    return from_buffer(data, dtype, numel(sizes)).clone().reshape(sizes)


def _literal(value: GraphValue, table: OperatorTable, partition: int) -> Any:  # noqa: ANN401
    """Return a literal as the payload has it, the elements of a tensor as one."""
    literal: Any = value.literal
    if value.tensor is None or not isinstance(literal, tuple):
        return literal
    dtype = dtype_of_value(value, table, partition)
    try:
        sizes = tuple(int(size) for size in value.tensor.sizes)
        return torch.tensor(cast(Any, literal), dtype=dtype).reshape(sizes)
    except (RuntimeError, TypeError, ValueError) as error:
        why = f"the elements of {value.name} do not fit its shape"
        raise refused(f"{why}: {str(error).splitlines()[0]}", partition) from error


def refused(reason: str, partition: int) -> DelegateError:
    """Return the error of a payload that cannot be run."""
    return DelegateError(ErrorCode.DelegateInvalidCompatibility, reason, partition=partition)
