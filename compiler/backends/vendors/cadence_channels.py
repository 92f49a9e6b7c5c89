"""Scales for each channel that a pass of Cadence would apply along another dimension.

The pass of release 1.5 that moves a `dequantize` behind the permutations, views and slices that
read it leaves the axis of its scales as it was: those of a linear layer's rows would scale its
columns, unseen where the weight is square.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

import torch

from compiler.backends.vendors.package import backend_part

_PASS, _ASKED = "PostponeDequantizeOpBelowUseChainPass", "postponing_feasible"
_AXIS = 3  # place of the axis among the arguments of `dequantize_per_channel`


@contextlib.contextmanager
def channels_kept() -> Generator[None, None, None]:
    """Let the pass move only what leaves the channels of the scales where they are."""
    moving: Any = getattr(backend_part("cadence.aot.reorder_ops"), _PASS, None)
    feasible: Any = getattr(moving, _ASKED, None)
    if feasible is None:  # another release, which moves in another way
        yield
        return

    def keeping(own: Any, node: torch.fx.Node) -> bool:  # noqa: ANN401 - the pass
        return keeps_channels(node) and feasible(own, node)

    setattr(moving, _ASKED, keeping)
    try:
        yield
    finally:
        setattr(moving, _ASKED, feasible)


def keeps_channels(node: torch.fx.Node) -> bool:
    """Return whether a `dequantize` behind each of its readers has the same axis as before them."""
    if "dequantize_per_channel" not in str(node.target):
        return True
    value, axis = node.meta.get("val"), node.args[_AXIS]
    if not isinstance(value, torch.Tensor) or not isinstance(axis, int):
        return False
    return all(_stays(user, axis % value.dim(), value.dim()) for user in node.users)


def _stays(user: torch.fx.Node, axis: int, rank: int) -> bool:
    """Return whether a node moves or cuts no dimension that is the axis."""
    name, args = str(user.target), [*user.args[1:]]
    if "permute" in name:
        order: Any = user.kwargs.get("dims", args[0] if args else ())
        return [dim % rank for dim in order].index(axis) == axis
    if "transpose" in name:
        return axis not in [int(dim) % rank for dim in args if isinstance(dim, int)]
    if "slice" in name:
        along: Any = user.kwargs.get("dim", args[0] if args else 0)
        return int(along) % rank != axis
    return False  # a view may split or merge dimensions
