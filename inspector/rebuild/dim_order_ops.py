"""The three operators of ExecuTorch that copy by dim order, as custom torch operators.

They accept any dim order. They have their own namespace, because ExecuTorch registers its own
under another name in a process that imports it.
"""

from __future__ import annotations

from functools import lru_cache

from inspector.rebuild.serde_rewrite import OWN_NAMESPACE
from inspector.rebuild.torch_bridge import Torch, load_torch

_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


@lru_cache(maxsize=1)
def register() -> Torch:
    """Register the operators once; the result keeps them registered."""
    library = load_torch().library.Library(OWN_NAMESPACE, "DEF")
    library.define(
        f"_to_dim_order_copy(Tensor self, *, {_OPTIONS}, bool non_blocking=False,"
        " int[]? dim_order=None) -> Tensor"
    )
    library.define(f"_empty_dim_order(int[] size, *, {_OPTIONS}, int[]? dim_order=None) -> Tensor")
    library.define(
        "_clone_dim_order(Tensor self, *, bool non_blocking=False, int[]? dim_order=None) -> Tensor"
    )
    kind = "CompositeImplicitAutograd"
    library.impl("_to_dim_order_copy", _to_copy, kind)
    library.impl("_empty_dim_order", _empty, kind)
    library.impl("_clone_dim_order", _clone, kind)
    return library


def _to_copy(tensor: Torch, *, dim_order: list[int] | None = None, **options: Torch) -> Torch:
    return _ordered(load_torch().ops.aten._to_copy.default(tensor, **options), dim_order)


def _empty(size: list[int], *, dim_order: list[int] | None = None, **options: Torch) -> Torch:
    return _ordered(load_torch().empty(size, **options), dim_order)


def _clone(
    tensor: Torch, *, non_blocking: bool = False, dim_order: list[int] | None = None
) -> Torch:
    del non_blocking  # copies on one device are synchronous
    return _ordered(tensor.clone(), dim_order)


def _ordered(tensor: Torch, dim_order: list[int] | None) -> Torch:
    if dim_order is None:
        return tensor
    back = [dim_order.index(axis) for axis in range(len(dim_order))]
    return tensor.permute(dim_order).contiguous().permute(back)
