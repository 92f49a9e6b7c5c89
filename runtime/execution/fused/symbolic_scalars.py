"""Scalar prims as operators of TorchScript, which compute with the same 64-bit integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from runtime.execution.fused.scripts import ChangingScalar, ScriptWriter, UnscriptableError

_INTEGERS: Mapping[str, tuple[str, type]] = {
    "executorch_prim::add.Scalar": ("aten::add.int", int),
    "executorch_prim::eq.Scalar": ("aten::eq.int", bool),
    "executorch_prim::ge.Scalar": ("aten::ge.int", bool),
    "executorch_prim::gt.Scalar": ("aten::gt.int", bool),
    "executorch_prim::le.Scalar": ("aten::le.int", bool),
    "executorch_prim::lt.Scalar": ("aten::lt.int", bool),
    "executorch_prim::mul.Scalar": ("aten::mul.int", int),
    "executorch_prim::neg.Scalar": ("aten::neg.int", int),
    "executorch_prim::sub.Scalar": ("aten::sub.int", int),
    "executorch_prim::sym_float.Scalar": ("aten::Float.int", float),
    "executorch_prim::sym_max.Scalar": ("prim::max.int", int),
    "executorch_prim::sym_min.Scalar": ("prim::min.int", int),
}
"""Prims on integers: operator and type of the result."""
_DIVISIONS: Mapping[str, tuple[str, type]] = {
    "executorch_prim::floordiv.Scalar": ("aten::floordiv.int", int),
    "executorch_prim::floordiv.int": ("aten::floordiv.int", int),
    "executorch_prim::mod.Scalar": ("aten::remainder.int", int),
    "executorch_prim::mod.int": ("aten::remainder.int", int),
    "executorch_prim::truediv.Scalar": ("aten::div.int", float),
}
"""Those that are written for constant positive divisors only: the processor traps at others."""
_ITEMS: Mapping[torch.dtype, tuple[str, type]] = {
    torch.bool: ("aten::Bool.Tensor", bool),
    torch.float32: ("aten::Float.Tensor", float),
    torch.float64: ("aten::Float.Tensor", float),
    torch.int32: ("aten::Int.Tensor", int),
    torch.int64: ("aten::Int.Tensor", int),
}


def computed(writer: ScriptWriter, name: str, sources: Sequence[Any], kind: type) -> Any:  # noqa: ANN401
    """Write a scalar prim, and return its value in the graph.

    Args:
        writer: of the graph
        name: of the prim
        sources: tensors, scalars and symbols
        kind: type of its result in the run that was recorded

    Raises: UnscriptableError
    """
    operator, result, given = _operator(writer, name, sources)
    if result is not kind:
        raise UnscriptableError(f"{name} results in a {kind.__name__}")
    return writer.call(operator, given, result)


def _operator(
    writer: ScriptWriter, name: str, sources: Sequence[Any]
) -> tuple[str, type, list[Any]]:
    if name == "aten::_local_scalar_dense":
        tensor = sources[0]
        if not isinstance(tensor, torch.Tensor) or tensor.dtype not in _ITEMS:
            raise UnscriptableError(name)
        return *_ITEMS[tensor.dtype], [writer.operand(tensor)]
    if name == "aten::sym_numel":
        return "aten::numel", int, [writer.operand(sources[0])]
    if name == "aten::sym_size.int":
        tensor, dim = sources
        if type(dim) is not int or dim < 0:
            raise UnscriptableError(f"{name} of a dimension that changes")
        return "aten::size.int", int, [writer.operand(tensor), writer.constant(dim)]
    if not all(_kind(source) is int for source in sources):
        raise UnscriptableError(f"{name} of other types than integers")
    if name in _DIVISIONS:
        divisor = sources[1]
        if isinstance(divisor, ChangingScalar) or divisor <= 0:
            raise UnscriptableError(f"{name} by {divisor}")
    elif name not in _INTEGERS:
        raise UnscriptableError(name)
    operator, result = _INTEGERS.get(name) or _DIVISIONS[name]
    return operator, result, [writer.number(source) for source in sources]


def _kind(source: object) -> type:
    return source.kind if isinstance(source, ChangingScalar) else type(source)
