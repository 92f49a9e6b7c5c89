"""Prims: scalar arithmetic on sizes, `et_view` and `et_copy_index`.

Integers wrap at 64 bits as in C++.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.errors import ErrorCode, ExecutionError, invalid_argument
from runtime.kernels.rule import Operand, Rule, Style, prim, scalar
from runtime.memory.slots import TensorSlot, strides_of

Number = int | float
_SPAN, _HALF = 1 << 64, 1 << 63  # of 64-bit integers


def _wrapped(value: Number) -> Number:
    if isinstance(value, float) or -_HALF <= value < _HALF:
        return value
    return (value + _HALF) % _SPAN - _HALF


def _numeric(values: Sequence[Any]) -> None:
    for value in values:
        if not isinstance(value, int | float):
            raise ExecutionError(
                ErrorCode.InvalidType, f"expected scalars, found {type(value).__name__}"
            )


def _binary(compute: Callable[[Any, Any], Any]) -> Rule:
    def run(left: Number, right: Number) -> Number:
        _numeric((left, right))
        return _wrapped(compute(left, right))

    return scalar(run, 2)


def _unary(compute: Callable[[Any], Any]) -> Rule:
    def run(value: Number) -> Number:
        _numeric((value,))
        return _wrapped(compute(value))

    return scalar(run, 1)


def _floordiv(left: Number, right: Number) -> Number:
    if right == 0:
        raise invalid_argument(f"division of {left} by zero")
    return left // right


def _truediv(left: Number, right: Number) -> float:
    if right == 0:
        raise invalid_argument(f"division of {left} by zero")
    return left / right


def _mod(left: Number, right: Number) -> Number:
    if right == 0:
        raise invalid_argument(f"remainder of {left} by zero")
    return left % right


def _sym_size(tensor: object, dim: int) -> int:
    if not isinstance(tensor, torch.Tensor) or isinstance(dim, bool):
        raise ExecutionError(ErrorCode.InvalidType, "sym_size expects a tensor and a dimension")
    if not 0 <= dim < tensor.dim():
        raise invalid_argument(f"dimension {dim} of a tensor of {tensor.dim()} dimensions")
    return tensor.shape[dim]


def _sym_numel(tensor: object) -> int:
    if not isinstance(tensor, torch.Tensor):
        raise ExecutionError(ErrorCode.InvalidType, "sym_numel expects a tensor")
    return tensor.numel()


def _local_scalar(tensor: object) -> Number:
    if not isinstance(tensor, torch.Tensor) or tensor.numel() < 1:
        raise ExecutionError(ErrorCode.InvalidType, "expected a tensor with one element")
    return tensor.flatten()[0].item()


def _integer(value: Number) -> int:
    if isinstance(value, float) and not math.isfinite(value):
        raise invalid_argument(f"{value} cannot be converted to an integer")
    return int(value)


def _not(value: object) -> bool:
    return not value


def _ite(condition: object, yes: Number, no: Number) -> Number:
    return yes if condition else no


def _rounded(value: Number) -> int:
    return _integer(value) if isinstance(value, int) or not math.isfinite(value) else round(value)


def view_into(viewed: TensorSlot, size: Sequence[int], out: TensorSlot) -> None:
    """Point a tensor at the memory of another one, with different sizes: `et_view`.

    Raises: ExecutionError InvalidArgument if the sizes do not fit the source
    """
    source = viewed.tensor
    sizes = list(size)
    if sizes.count(-1) == 1:
        rest = math.prod(entry for entry in sizes if entry != -1)
        if rest <= 0 or source.numel() % rest:
            raise invalid_argument(f"sizes {sizes} do not fit {source.numel()} elements")
        sizes[sizes.index(-1)] = source.numel() // rest
    if min(sizes, default=0) < 0 or math.prod(sizes) != source.numel():
        raise invalid_argument(f"sizes {sizes} do not fit {source.numel()} elements")
    tensor = out.tensor
    same = out.viewed is viewed and tensor.data_ptr() == source.data_ptr() != 0
    if same and tensor.shape == tuple(sizes):
        return
    if source.dtype is not tensor.dtype or len(sizes) != len(out.dim_order):
        raise invalid_argument("dtype or rank of the view differ from its plan")
    strides = strides_of(sizes, out.dim_order)
    tensor.set_(source.untyped_storage(), source.storage_offset(), sizes, strides)
    out.viewed = viewed


def copy_index(out: TensorSlot, piece: torch.Tensor, index: int) -> None:
    """Write one slice into an accumulator, which is resized for it: `et_copy_index`.

    Raises: ExecutionError if it does not fit
    """
    if index < 0 or out.tensor.dim() != piece.dim() + 1 or out.tensor.dtype is not piece.dtype:
        raise invalid_argument(f"piece {index} does not fit its accumulator")
    out.resize((index + 1, *piece.shape))
    out.tensor[index].copy_(piece)


TABLE: dict[str, Rule] = {
    "aten::_local_scalar_dense": scalar(_local_scalar, 1),
    "aten::sym_numel": scalar(_sym_numel, 1),
    "aten::sym_size.int": scalar(_sym_size, 2),
    "executorch_prim::add.Scalar": _binary(lambda a, b: a + b),
    "executorch_prim::ceil.Scalar": _unary(lambda a: math.ceil(_finite(a))),
    "executorch_prim::eq.Scalar": _binary(lambda a, b: a == b),
    "executorch_prim::et_copy_index.tensor": prim(
        Style.SLOTS, copy_index, Operand.WRITTEN, Operand.VALUE, Operand.VALUE
    ),
    "executorch_prim::et_view.default": prim(
        Style.SLOTS, view_into, Operand.READ, Operand.VALUE, Operand.WRITTEN
    ),
    "executorch_prim::floordiv.Scalar": _binary(_floordiv),
    "executorch_prim::floordiv.int": _binary(_floordiv),
    "executorch_prim::ge.Scalar": _binary(lambda a, b: a >= b),
    "executorch_prim::gt.Scalar": _binary(lambda a, b: a > b),
    "executorch_prim::le.Scalar": _binary(lambda a, b: a <= b),
    "executorch_prim::lt.Scalar": _binary(lambda a, b: a < b),
    "executorch_prim::mod.Scalar": _binary(_mod),
    "executorch_prim::mod.int": _binary(_mod),
    "executorch_prim::mul.Scalar": _binary(lambda a, b: a * b),
    "executorch_prim::neg.Scalar": _unary(lambda a: -a),
    "executorch_prim::round.Scalar": _unary(_rounded),
    "executorch_prim::sub.Scalar": _binary(lambda a, b: a - b),
    "executorch_prim::sym_float.Scalar": _unary(float),
    "executorch_prim::sym_int.Scalar": _unary(_integer),
    "executorch_prim::sym_ite.Scalar": scalar(_ite, 3),
    "executorch_prim::sym_max.Scalar": _binary(max),
    "executorch_prim::sym_min.Scalar": _binary(min),
    "executorch_prim::sym_not.Scalar": scalar(_not, 1),
    "executorch_prim::truediv.Scalar": _binary(_truediv),
    "executorch_prim::trunc.Scalar": _unary(_integer),
}


def _finite(value: Number) -> Number:
    _integer(value)
    return value
