"""Activations of hidden layers by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

_functional: Any = torch.nn.functional
ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "silu": _functional.silu,
    "gelu": _functional.gelu,
    "gelu_tanh": partial(_functional.gelu, approximate="tanh"),
}
