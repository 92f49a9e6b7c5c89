"""Names of torch without complete types or without a public name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

_torch: Any = torch
aten: Any = torch.ops.aten
parse_schema: Callable[[str], Any] = _torch._C.parse_schema
OpOverload: type[Any] = _torch._ops.OpOverload
is_dispatched: Callable[[str], bool] = _torch._C._dispatch_has_kernel  # of aten::add.Tensor
operator_names: Callable[[], list[str]] = _torch._C._dispatch_get_all_op_names
_frombuffer: Callable[..., torch.Tensor] = _torch.frombuffer


def dtype_named(name: str) -> torch.dtype | None:
    """Return torch's dtype of this name, None if torch does not define it."""
    found = getattr(_torch, name, None)
    return found if isinstance(found, torch.dtype) else None


def from_buffer(buffer: object, dtype: torch.dtype, count: int, offset: int = 0) -> torch.Tensor:
    """Return a one-dimensional tensor of one or more elements over bytes, aligned or not.

    Raises: ValueError if the buffer is too short
    """
    return _frombuffer(buffer, dtype=dtype, count=count, offset=offset)


def _silence_warning() -> None:
    # torch warns about the first read-only buffer of a process; ours are constants, never written
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from_buffer(b"\0", torch.uint8, 1)


_silence_warning()
