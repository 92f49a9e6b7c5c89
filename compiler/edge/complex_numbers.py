"""Decompositions of complex operators into those with stock kernels.

These kernels move complex values and add, subtract and multiply tensors of equal sizes with more
than one element; they neither divide nor broadcast them nor create them from pairs of floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from compiler.untyped import aten

_torch = cast("Any", torch)


def _of_parts(real: Any, imaginary: Any) -> Any:  # noqa: ANN401
    """Return ``real + imaginary * 1j``; an infinite imaginary part makes the real one NaN."""
    dtype = torch.complex128 if real.dtype == torch.float64 else torch.complex64
    turned = aten._to_copy.default(imaginary, dtype=dtype)
    turned = aten.mul.Tensor(turned, _filled(1j, turned.dtype, turned.shape))
    return aten.add.Tensor(aten._to_copy.default(real, dtype=dtype), turned)


def _filled(value: complex, dtype: torch.dtype, sizes: Sequence[Any]) -> Any:  # noqa: ANN401
    """Return a tensor filled with a complex scalar, for which ``full`` has no kernel."""
    nothing = aten._to_copy.default(aten.scalar_tensor.default(0.0), dtype=dtype)
    return aten.expand.default(aten.add.Tensor(nothing, value), [*sizes])


def _view_as_complex(x: Any) -> Any:  # noqa: ANN401
    return _of_parts(aten.select.int(x, -1, 0), aten.select.int(x, -1, 1))


def _complex(real: Any, imaginary: Any) -> Any:  # noqa: ANN401
    return _of_parts(*_torch.broadcast_tensors(real, imaginary))


def _polar(length: Any, angle: Any) -> Any:  # noqa: ANN401
    turned = aten.mul.Tensor(length, aten.cos.default(angle))
    return _of_parts(turned, aten.mul.Tensor(length, aten.sin.default(angle)))


def _conj(x: Any) -> Any:  # noqa: ANN401
    if not x.is_complex():
        return NotImplemented
    pair = aten.view_as_real.default(x)
    return _of_parts(aten.select.int(pair, -1, 0), aten.neg.default(aten.select.int(pair, -1, 1)))


def _neg(x: Any) -> Any:  # noqa: ANN401
    if not x.is_complex():
        return NotImplemented
    return aten.sub.Tensor(_filled(0j, x.dtype, x.shape), x)


def _mm(a: Any, b: Any) -> Any:  # noqa: ANN401
    if not a.is_complex():
        return NotImplemented
    batched = aten.bmm.default(aten.unsqueeze.default(a, 0), aten.unsqueeze.default(b, 0))
    return aten.squeeze.dim(batched, 0)


def _split(x: Any, sizes: Sequence[Any], dim: int = 0) -> Any:  # noqa: ANN401
    """Return slices: the split kernel does not support complex dtypes."""
    if not x.is_complex():
        return NotImplemented
    parts: list[Any] = []
    start: Any = 0
    for size in sizes:
        parts.append(aten.slice.Tensor(x, dim, start, start + size))
        start = start + size
    return parts


def _spread(op: Any) -> Callable[..., Any]:  # noqa: ANN401
    """Return a rule that gives both operands of an operator the sizes of its result."""

    def rule(a: Any, b: Any, **options: Any) -> Any:  # noqa: ANN401
        dtype, both = torch.result_type(a, b), (a, b)
        shapes = [one.shape for one in both if isinstance(one, torch.Tensor)]
        sizes: list[Any] = [*_torch.broadcast_shapes(*shapes)]
        shown = [str(size) for size in sizes]
        alike = [[str(n) for n in shape] == shown for shape in shapes]
        if not dtype.is_complex:
            return NotImplemented
        if op is not aten.add.Tensor and not any(size != "1" for size in shown):
            more, told = [2, *sizes], ["2", *shown]  # one element has no kernel, two have
            twice = op(*(_expanded(one, dtype, more, told) for one in both), **options)
            return aten.select.int(twice, 0, 0)
        if not sizes or (len(alike) == len(both) and all(alike)):
            return NotImplemented
        return op(*(_expanded(one, dtype, sizes, shown) for one in both), **options)

    return rule


def _expanded(x: Any, dtype: torch.dtype, sizes: Sequence[Any], shown: Sequence[str]) -> Any:  # noqa: ANN401
    if not isinstance(x, torch.Tensor):
        return _filled(x, dtype, sizes)
    if x.dtype != dtype:  # as a tensor with dimensions it would count for the type of the result
        x = aten._to_copy.default(x, dtype=dtype)
    return x if [str(n) for n in x.shape] == shown else aten.expand.default(x, sizes)


def _div(a: Any, b: Any) -> Any:  # noqa: ANN401
    """Divide by real numbers: the divisor is brought to a magnitude of one, then conjugated."""
    dtype = torch.result_type(a, b)
    if not dtype.is_complex:
        return NotImplemented
    if not isinstance(b, torch.Tensor):
        b = _filled(b, dtype, []) if isinstance(b, complex) else aten.scalar_tensor.default(b)
    if not b.is_complex():
        return _divided(aten._to_copy.default(a, dtype=dtype), b)
    pair = aten.abs.default(aten.view_as_real.default(b))
    size = aten.amax.default(pair, [-1])
    b = _divided(b, size)
    pair = aten.view_as_real.default(b)
    length = aten.sum.dim_IntList(aten.mul.Tensor(pair, pair), [-1])
    return _divided(_divided(aten.mul.Tensor(a, _conj(b)), length), size)


def _divided(x: Any, by: Any) -> Any:  # noqa: ANN401
    """Return a complex tensor, whose sizes may grow, divided by a real one."""
    pair = aten.view_as_real.default(x)
    parts = (aten.div.Tensor(aten.select.int(pair, -1, at), by) for at in (0, 1))
    return _of_parts(*parts)


def _reciprocal(x: Any) -> Any:  # noqa: ANN401
    if not x.is_complex():
        return NotImplemented
    return _div(_filled(1.0, x.dtype, x.shape), x)


RULES: dict[Any, Callable[..., Any]] = {
    aten._conj.default: _conj,
    aten.add.Tensor: _spread(aten.add.Tensor),
    aten.complex.default: _complex,
    aten.div.Tensor: _div,
    aten.mm.default: _mm,
    aten.mul.Tensor: _spread(aten.mul.Tensor),
    aten.neg.default: _neg,
    aten.polar.default: _polar,
    aten.reciprocal.default: _reciprocal,
    aten.split_with_sizes.default: _split,
    aten.sub.Tensor: _spread(aten.sub.Tensor),
    aten.view_as_complex.default: _view_as_complex,
}
