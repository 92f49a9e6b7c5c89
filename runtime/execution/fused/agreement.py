"""Whether a graph gives the bits of the calls that it is to stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from runtime.execution.fused.scripts import ScriptWriter

Tensor = torch.Tensor
_torch: Any = torch
_c: Any = _torch._C


class Unoptimized:
    """Runs graphs as they are written; the setting is that of this thread."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        """Set it."""
        self._before = _c._get_graph_executor_optimize()
        _c._set_graph_executor_optimize(False)

    def __exit__(self, *_: object) -> None:
        """Set it back."""
        _c._set_graph_executor_optimize(self._before)


def gives_same_bits(run_graph: Callable[[], bool], writer: ScriptWriter) -> bool:
    """Return whether a graph gives the bits that its calls gave, which have just run.

    Args:
        run_graph: returns whether the graph could be run
        writer: of the graph
    """
    written = writer.written
    if any(_overlap(one, other) for one in written.values() for other in writer.read.values()):
        return True  # it overwrites what it reads, so it cannot be run twice
    written = {key: _stored_once(tensor) for key, tensor in written.items()}
    before = {key: tensor.clone() for key, tensor in written.items()}
    try:
        with Unoptimized():
            same = run_graph()
    except RuntimeError:
        same = False
    same = same and all(_same_bits(before[key], tensor) for key, tensor in written.items())
    if not same:
        for key, tensor in written.items():
            tensor.resize_(before[key].shape).copy_(before[key])
    return same


def _stored_once(tensor: Tensor) -> Tensor:
    """Return the elements of a tensor that have memory of their own: those that repeat, once."""
    strides = tensor.stride() if tensor.layout is torch.strided else ()
    for dim, stride in enumerate(strides):
        if stride == 0 and tensor.shape[dim] > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def _overlap(one: Tensor, other: Tensor) -> bool:
    if one.layout is not torch.strided or other.layout is not torch.strided:
        return False  # packed weights are no planned memory
    first, second = one.untyped_storage(), other.untyped_storage()
    start, begin = first.data_ptr(), second.data_ptr()
    return start < begin + second.nbytes() and begin < start + first.nbytes()


def _same_bits(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype is not other.dtype:
        return False
    left, right = (each.contiguous().reshape(-1).view(torch.uint8) for each in (one, other))
    return torch.equal(left, right)
