"""Random and edge inputs of an element type, the same in each run."""

from __future__ import annotations

import torch

DTYPES = (
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.bool,
)
_EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3e4, -3e4)


class Maker:
    """Makes tensors of one element type.

    Attributes:
        dtype: the element type
    """

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self._generator = torch.Generator().manual_seed(7)

    def __call__(self, *shape: int, low: int = -4, high: int = 6) -> torch.Tensor:
        generator = self._generator
        if self.dtype is torch.bool:
            return torch.rand(shape, generator=generator) > 0.5
        if self.dtype.is_floating_point:
            drawn = torch.rand(shape, generator=generator, dtype=torch.float64)
            return (low + drawn * (high - low)).to(self.dtype)
        low = max(low, 0) if self.dtype is torch.uint8 else low
        return torch.randint(low, high, shape, generator=generator).to(self.dtype)

    def positive(self, *shape: int) -> torch.Tensor:
        return self(*shape, low=1)

    def edge(self) -> torch.Tensor:
        """NaN, infinities, zeros of both signs, halves; the bounds of integers."""
        if self.dtype is torch.bool:
            return torch.tensor([True, False])
        if self.dtype.is_floating_point:
            special = (float("nan"), float("inf"), float("-inf"))
            return torch.tensor((*special, *_EDGES)).to(self.dtype)
        bounds = torch.iinfo(self.dtype)
        return torch.tensor([bounds.min, bounds.max, 0, 1, 2], dtype=self.dtype)

    def index(self, *shape: int, below: int) -> torch.Tensor:
        return torch.randint(0, below, shape, generator=self._generator)

    def flags(self, *shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=self._generator) > 0.5
