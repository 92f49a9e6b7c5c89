"""Means over the last dimension, as in a norm: each row is an image of one channel.

A payload has one node that takes a mean, that of whole images.
"""

from __future__ import annotations

from typing import Any

import torch

from compiler.backends.xnnpack.facts import (
    argument,
    is_symbolic,
    numbers,
    op_of,
    rank_of,
    shape_of,
    unknown_sizes,
)
from compiler.backends.xnnpack.quantization import affine_of
from compiler.untyped import aten

Node = torch.fx.Node


def is_row_mean(node: Node) -> bool:
    """Return whether a node is a mean over the last dimension alone."""
    if op_of(node) is not aten.mean.dim:
        return False
    given: Any = node.args[0]
    rank = rank_of(given)
    return rank > 1 and [dim % rank for dim in numbers(argument(node, "dim"), 1)] == [rank - 1]


def why_no_row_mean(node: Node) -> str:
    """Return why the mean of rows has no payload, empty if it has one."""
    given: Any = node.args[0]
    if affine_of(given) is not None:
        return "the mean of the last dimension is not supported quantized"
    size = shape_of(given)[-1]
    if is_symbolic(size):
        return f"the last dimension has the size {size}, which is only known at run time"
    unknown = unknown_sizes(shape_of(node))
    if len(unknown) > 1:
        return f"sizes {', '.join(unknown)} are only known at run time, one can be inferred"
    return ""
