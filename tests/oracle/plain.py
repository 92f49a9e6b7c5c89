"""Turn the stock tool's objects into plain JSON values without losing a digit."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

LARGEST_INLINE_BYTES = 64


def plain(value: Any) -> Any:
    """Return `value` as dicts, lists, strings and numbers; tensors and bytes as their facts."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, torch.Tensor):
        return tensor_facts(value)
    if isinstance(value, (np.generic, np.ndarray)):
        return plain(value.tolist())
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes_facts(bytes(value))
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return _plain_container(value)


def _plain_container(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"type": type(value).__name__, **fields}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return str(value)


def tensor_facts(tensor: torch.Tensor) -> dict[str, Any]:
    """Return shape, dtype and a digest of the elements in row-major order."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):  # a subclass may refuse to be read
        return {"type": type(tensor).__name__, "shape": list(tensor.shape)}
    flat = tensor.detach().contiguous().reshape(-1)
    data = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return {
        "type": "tensor",
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "strides": list(tensor.stride()),
        "nbytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "head": plain(flat[:4].tolist()),
    }


def bytes_facts(data: bytes) -> dict[str, Any]:
    """Return length and digest of a blob, and the bytes themselves while they are few."""
    facts: dict[str, Any] = {
        "type": "bytes",
        "nbytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    if len(data) <= LARGEST_INLINE_BYTES:
        facts["hex"] = data.hex()
    return facts
