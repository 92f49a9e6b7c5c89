"""Checks results that can be far larger than their inputs before they are computed.

A program may request any padding or size, and torch would allocate it before it is compared with
the plan. So the shape is computed first, once for each input shape: by a formula where torch's own
shape inference takes a second to import, otherwise with meta tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from runtime.memory.slots import TensorSlot

Shape = tuple[int, ...]


def _each(entries: Sequence[int], count: int) -> Sequence[int]:
    return entries if len(entries) == count else [*entries] * count


def _convolved(  # noqa: PLR0913 - the arguments of the operator
    values: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Shape | None:
    """Return the shape of a convolution, None if torch rejects the arguments."""
    del bias
    kernel = weight.shape[2:]
    count = len(kernel)
    lists = (stride, padding, dilation, output_padding)
    batched = values.dim() == count + 2
    if not count or not batched or min(stride, default=0) < 1:
        return None
    if any(len(entries) not in (1, count) for entries in lists):
        return None
    sizes: list[int] = []
    steps = zip(values.shape[2:], kernel, *(_each(n, count) for n in lists), strict=True)
    for size, wide, step, pad, apart, more in steps:
        reach = apart * (wide - 1) + 1
        if transposed:
            sizes.append((size - 1) * step - 2 * pad + reach + more)
        else:
            sizes.append((size + 2 * pad - reach) // step + 1)
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    return None if min(sizes) < 0 else (values.shape[0], channels, *sizes)


def _resampled(
    values: torch.Tensor,
    output_size: Sequence[int] | None,
    *rest: Any,  # noqa: ANN401
) -> Shape | None:
    """Return the shape of a resized image, None if torch rejects the arguments."""
    scales = rest[-1]
    if values.dim() != 4 or (output_size is None) == (scales is None):
        return None
    if output_size is None:
        sizes = [int(size * by) for size, by in zip(values.shape[2:], scales, strict=False)]
    else:
        sizes = list(output_size)
    if len(sizes) != 2 or min(sizes) < 0:
        return None
    return (values.shape[0], values.shape[1], *sizes)


def _embedding_gradient(
    gradient: torch.Tensor,
    indices: torch.Tensor,
    rows: int,
    *rest: Any,  # noqa: ANN401
) -> Shape | None:
    del indices, rest
    return (rows, gradient.shape[-1]) if gradient.dim() else None


FORMULAS: dict[str, Callable[..., Shape | None]] = {
    "aten::convolution.out": _convolved,
    "aten::embedding_dense_backward.out": _embedding_gradient,
    "aten::upsample_bilinear2d.vec_out": _resampled,
    "aten::upsample_nearest2d.vec_out": _resampled,
}
GROWING = frozenset(
    {
        "aten::_adaptive_avg_pool2d.out",
        "aten::_adaptive_avg_pool3d.out",
        "aten::_fft_c2r.out",
        "aten::_upsample_bilinear2d_aa.out",
        "aten::avg_pool2d.out",
        "aten::avg_pool3d.out",
        "aten::constant_pad_nd.out",
        "aten::convolution.out",
        "aten::embedding_dense_backward.out",
        "aten::upsample_bilinear2d.vec_out",
        "aten::upsample_nearest2d.vec_out",
        *(
            f"aten::{kind}_pad{dims}d.out"
            for kind in ("reflection", "replication")
            for dims in (1, 2, 3)
        ),
    }
)


class GrowthGuard:
    """A kernel that fails before it runs if its result does not fit its slot.

    Args:
        name: full name of the operator
        run: the kernel
        arguments: returns its current arguments
        fixed: whether the scalars among them cannot change
        slot: of the result
    """

    def __init__(
        self,
        name: str,
        run: Callable[..., Any],
        arguments: Callable[[], tuple[Sequence[Any], Mapping[str, Any]]],
        fixed: bool,
        slot: TensorSlot,
    ) -> None:
        self._formula = FORMULAS.get(name)
        self._run = run
        self._arguments = arguments
        self._fixed = fixed
        self._slot = slot
        self._seen: list[torch.Size] | None = None

    def __call__(self) -> Any:  # noqa: ANN401 - the kernel's result
        """Run the kernel.

        Raises: ExecutionError NotSupported if its result does not fit
        """
        positional, named = self._arguments()
        shapes = [value.shape for value in positional if isinstance(value, torch.Tensor)]
        if not self._fixed or shapes != self._seen:
            self._check(positional, named)
            self._seen = shapes
        return self._run(*positional, **named)

    def _check(self, positional: Sequence[Any], named: Mapping[str, Any]) -> None:
        if self._formula is not None:
            shape = self._formula(*positional, **named)
            if shape is not None:
                self._slot.resize(shape)
            return
        given = [
            value.to("meta") if isinstance(value, torch.Tensor) else value for value in positional
        ]
        self._slot.resize(self._run(*given, **named).shape)
