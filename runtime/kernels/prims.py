"""The kernels built into the runtime: arithmetic on sizes, and the two that move memory.

Integers wrap at 64 bits as they do in C++.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.errors import ErrorCode, ExecutionError, invalid_argument
from runtime.kernels.rule import Rule, Style, number
from runtime.memory.slots import Slot, strides_of

Number = int | float
_SPAN, _HALF = 1 << 64, 1 << 63


def _wrapped(value: Number) -> Number:
    if isinstance(value, float) or -_HALF <= value < _HALF:
        return value
    return (value + _HALF) % _SPAN - _HALF


def _numeric(values: Sequence[Any]) -> None:
    for value in values:
        if not isinstance(value, int | float):
            raise ExecutionError(
                ErrorCode.InvalidType, f"expected numbers, found {type(value).__name__}"
            )


def _two(compute: Callable[[Any, Any], Any]) -> Rule:
    def run(left: Number, right: Number) -> Number:
        _numeric((left, right))
        return _wrapped(compute(left, right))

    return number(run, 2)


def _one(compute: Callable[[Any], Any]) -> Rule:
    def run(value: Number) -> Number:
        _numeric((value,))
        return _wrapped(compute(value))

    return number(run, 1)


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
        raise ExecutionError(ErrorCode.InvalidType, "sym_size takes a tensor and a dimension")
    if not 0 <= dim < tensor.dim():
        raise invalid_argument(f"dimension {dim} of a tensor of {tensor.dim()} dimensions")
    return tensor.shape[dim]


def _sym_numel(tensor: object) -> int:
    if not isinstance(tensor, torch.Tensor):
        raise ExecutionError(ErrorCode.InvalidType, "sym_numel takes a tensor")
    return tensor.numel()


def _local_scalar(tensor: object) -> Number:
    if not isinstance(tensor, torch.Tensor) or tensor.numel() < 1:
        raise ExecutionError(ErrorCode.InvalidType, "a tensor with one element is needed")
    return tensor.flatten()[0].item()


def _whole(value: Number) -> int:
    if isinstance(value, float) and not math.isfinite(value):
        raise invalid_argument(f"{value} has no integer")
    return int(value)


def _not(value: object) -> bool:
    return not value


def _ite(condition: object, yes: Number, no: Number) -> Number:
    return yes if condition else no


def _rounded(value: Number) -> int:
    return _whole(value) if isinstance(value, int) or not math.isfinite(value) else round(value)


def view_into(viewed: Slot, size: Sequence[int], out: Slot) -> None:
    """Let a tensor be another view of the source's memory: `et_view`.

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
    if source.dtype is not out.tensor.dtype or len(sizes) != len(out.dim_order):
        raise invalid_argument("the view has another element type or rank than its plan")
    strides = strides_of(sizes, out.dim_order)
    out.tensor.set_(source.untyped_storage(), source.storage_offset(), sizes, strides)
    out.viewed = viewed


def copy_index(out: Slot, piece: torch.Tensor, index: int) -> None:
    """Write one piece into an accumulator, which grows to hold it: `et_copy_index`.

    Raises: ExecutionError where it does not fit
    """
    if index < 0 or out.tensor.dim() != piece.dim() + 1 or out.tensor.dtype is not piece.dtype:
        raise invalid_argument(f"piece {index} does not fit its accumulator")
    out.resize((index + 1, *piece.shape))
    out.tensor[index].copy_(piece)


TABLE: dict[str, Rule] = {
    "aten::_local_scalar_dense": number(_local_scalar, 1),
    "aten::sym_numel": number(_sym_numel, 1),
    "aten::sym_size.int": number(_sym_size, 2),
    "executorch_prim::add.Scalar": _two(lambda a, b: a + b),
    "executorch_prim::ceil.Scalar": _one(lambda a: math.ceil(_finite(a))),
    "executorch_prim::eq.Scalar": _two(lambda a, b: a == b),
    "executorch_prim::et_copy_index.tensor": Rule(Style.SLOTS, copy_index, "svv", traced=False),
    "executorch_prim::et_view.default": Rule(Style.SLOTS, view_into, "rvs", traced=False),
    "executorch_prim::floordiv.Scalar": _two(_floordiv),
    "executorch_prim::floordiv.int": _two(_floordiv),
    "executorch_prim::ge.Scalar": _two(lambda a, b: a >= b),
    "executorch_prim::gt.Scalar": _two(lambda a, b: a > b),
    "executorch_prim::le.Scalar": _two(lambda a, b: a <= b),
    "executorch_prim::lt.Scalar": _two(lambda a, b: a < b),
    "executorch_prim::mod.Scalar": _two(_mod),
    "executorch_prim::mod.int": _two(_mod),
    "executorch_prim::mul.Scalar": _two(lambda a, b: a * b),
    "executorch_prim::neg.Scalar": _one(lambda a: -a),
    "executorch_prim::round.Scalar": _one(_rounded),
    "executorch_prim::sub.Scalar": _two(lambda a, b: a - b),
    "executorch_prim::sym_float.Scalar": _one(float),
    "executorch_prim::sym_int.Scalar": _one(_whole),
    "executorch_prim::sym_ite.Scalar": number(_ite, 3),
    "executorch_prim::sym_max.Scalar": _two(max),
    "executorch_prim::sym_min.Scalar": _two(min),
    "executorch_prim::sym_not.Scalar": number(_not, 1),
    "executorch_prim::truediv.Scalar": _two(_truediv),
    "executorch_prim::trunc.Scalar": _one(_whole),
}


def _finite(value: Number) -> Number:
    _whole(value)
    return value
