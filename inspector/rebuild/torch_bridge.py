"""The only module of this package that loads torch, when a caller requests torch objects."""

from __future__ import annotations

import contextlib
import re
from typing import Any, TypeAlias

import numpy as np

from schema.dtypes.scalar_type import scalar_type
from schema.etrecord import TensorData

Torch: TypeAlias = Any  # the module, or an object of it
_PACKAGES = {"torchao": "torchao.quantization"}
_NAMED = 64 << 20  # bytes
_ALIASES = {
    "bits16": "uint16",
    "bits8": "uint8",
    "qint8": "int8",
    "quint8": "uint8",
    "qint32": "int32",
}


def load_torch() -> Torch:
    """Return torch; the first call imports it, which takes a second or two."""
    import torch

    return torch


def load_packages(data: bytes | memoryview) -> None:
    """Import the packages of operators and tensors that recorded bytes name, where installed.

    Args:
        data: a recorded program, or saved tensors, which name their classes at the beginning
    """
    for name, module in _PACKAGES.items():
        if re.search(name.encode() + rb"\W", data[:_NAMED]) is None:
            continue
        from compiler.quantize.quiet_imports import import_quietly

        with contextlib.suppress(ImportError):
            import_quietly(module)


def torch_dtype(code: int) -> Torch | None:
    """Return the torch dtype of a dtype, None when torch has none."""
    name = scalar_type(code).name
    return getattr(load_torch(), _ALIASES.get(name, name), None)


def tensor_over(
    memory: memoryview, code: int, sizes: tuple[int, ...], strides: tuple[int, ...]
) -> Torch | None:
    """Return a tensor that shares this memory, or None for a dtype that torch does not have.

    The memory must be writable: the caller's in-place changes are written to it. Memory
    at an address torch cannot use is copied.

    Shapes: sizes, with strides in elements
    """
    torch = load_torch()
    dtype = torch_dtype(code)
    if dtype is None:
        return None
    if not len(memory):
        return torch.empty(sizes, dtype=dtype)
    address = np.frombuffer(memory, dtype=np.uint8).ctypes.data
    usable = memory if address % scalar_type(code).item_bytes == 0 else bytearray(memory)
    return torch.frombuffer(usable, dtype=dtype).as_strided(sizes, strides)


def saved_tensor(saved: TensorData) -> Torch | None:
    """Return a tensor with a copy of saved elements, or None."""
    if saved.data is None:
        return None
    if saved.big_endian:
        values = saved.to_numpy()
        return None if values is None else load_torch().from_numpy(np.array(values))
    memory = memoryview(bytearray(saved.data))
    return tensor_over(memory, saved.scalar_type, saved.sizes, saved.strides)


def later_copy(tensor: Torch) -> Torch:
    """Return an independent tensor; elements are copied on the first write to either one.

    Tensors over foreign memory, and views of much larger ones, are copied immediately.
    """
    tensor = tensor.detach()
    try:
        if tensor.untyped_storage().nbytes() <= 2 * tensor.nbytes:
            return load_torch()._lazy_clone(tensor)
    except (AttributeError, RuntimeError, NotImplementedError, TypeError):
        pass  # not in this release, or not for this kind of tensor
    return tensor.clone()
