"""Which operators are replaced by others, and by which rule."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import _decomp
from torch._decomp import decompositions
from torch._decomp.decompositions import native_batch_norm_decomposition
from torch.export import default_decompositions

from compiler.edge import attention_fast_path, complex_numbers, kernel_limits, outside_core
from compiler.untyped import aten, native

Rule = Callable[..., Any]


@functools.cache
def _default_table() -> dict[Any, Rule]:
    return dict(cast("Any", default_decompositions()).items())


@functools.cache
def _listed() -> dict[Any, Rule]:
    """Return the explicitly registered part of torch's table.

    The rest are composite operators. To list these torch iterates over every registered operator,
    which took 40 % of a first compile.
    """
    written_out = getattr(_decomp, "_core_aten_decompositions_post_autograd", None)
    return _default_table() if written_out is None else dict(written_out())


def torchs_rule(op: Any) -> Rule | None:  # noqa: ANN401 - an operator overload of torch
    """Return the decomposition that torch's export uses, as an entry of its tables."""
    return _default_table().get(op)


def decomposition_of(op: Any, *, as_package: bool = False) -> Rule | None:  # noqa: ANN401
    """Return the decomposition of an operator, None for one that is not decomposed.

    Args:
        op: an operator overload of torch
        as_package: decompose those too that have kernels and that the package decomposes
    """
    own = _OWN_RULES.get(op) or outside_core.RULES.get(op)
    if own is not None:
        return own
    if torch.Tag.core in op.tags and not (
        as_package and op in PACKAGE_DECOMPOSES
    ):  # the table contains some core operators too
        return None
    listed = _listed().get(op)
    if listed is not None:
        return listed
    return op.decompose if _is_composite(op) else None


@functools.cache
def _is_composite(op: Any) -> bool:  # noqa: ANN401
    key = native.DispatchKey.CompositeImplicitAutograd
    if op.namespace == "aten":
        has = native._dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd")
        return has or key in op.py_kernels
    known = native._dispatch_has_kernel(op.name())  # not so those of TorchScript, prim::device
    return known and _is_pure(op) and op.has_kernel_for_dispatch_key(key)


def _is_pure(op: Any) -> bool:  # noqa: ANN401
    """Return whether a custom operator neither writes to its arguments nor returns views."""
    schema = op._schema
    return not schema.is_mutable and all(one.alias_info is None for one in schema.arguments)


def _batch_norm(  # noqa: PLR0913 - the arguments of the operator
    x: Any,  # noqa: ANN401
    weight: Any,  # noqa: ANN401
    bias: Any,  # noqa: ANN401
    mean: Any,  # noqa: ANN401
    variance: Any,  # noqa: ANN401
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:  # noqa: ANN401
    # Called through C++ it would become native_batch_norm, which has no stock kernel.
    if training:
        return aten.batch_norm.default.decompose(
            x, weight, bias, mean, variance, training, momentum, eps, cudnn_enabled
        )
    inference = aten._native_batch_norm_legit_no_training.default
    return inference(x, weight, bias, mean, variance, momentum, eps)[0]


def _remainder(x: Any, other: Any) -> Any:  # noqa: ANN401
    # The stock kernel uses the sign of the dividend for integers; torch that of the divisor.
    whole = not any(isinstance(v, torch.Tensor) and v.is_floating_point() for v in (x, other))
    if isinstance(other, float) or not whole or x.dtype in (torch.bool, torch.uint8):
        return NotImplemented
    return x - aten.div.Tensor_mode(x, other, rounding_mode="floor") * other


PACKAGE_DECOMPOSES = frozenset(
    (
        aten.reflection_pad1d.default,
        aten.reflection_pad2d.default,
        aten.reflection_pad3d.default,
        aten.replication_pad2d.default,
        aten.replication_pad3d.default,
        aten.select_scatter.default,
    )
)
"""Operators that are one kernel here, and that vendors know in parts only."""


# native_batch_norm's decomposition is a Python kernel for Autograd, below which templates run.
_OWN_RULES: dict[Any, Rule] = {
    **attention_fast_path.RULES,
    **complex_numbers.RULES,
    **kernel_limits.RULES,
    # Core, yet composite: they become their two-dimensional forms, as in the stock compiler.
    aten.adaptive_avg_pool1d.default: aten.adaptive_avg_pool1d.default.decompose,
    aten.avg_pool1d.default: aten.avg_pool1d.default.decompose,
    aten.batch_norm.default: _batch_norm,
    aten._native_batch_norm_legit_functional.default: (
        cast("Any", decompositions)._native_batch_norm_legit_functional
    ),
    # Core, yet without a kernel; torch.export decomposes it.
    aten.col2im.default: cast("Any", _decomp).decomposition_table[aten.col2im.default],
    # Neither core nor in the table of export, and without a kernel.
    aten.linalg_vector_norm.default: (
        cast("Any", _decomp).decomposition_table[aten.linalg_vector_norm.default]
    ),
    aten.native_batch_norm.default: native_batch_norm_decomposition,
    aten.remainder.Scalar: _remainder,
    aten.remainder.Tensor: _remainder,
}
