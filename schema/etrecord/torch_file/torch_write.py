"""Writes torch.save files of named tensors, with their elements or with zeros, without torch.

Source: torch/serialization.py (members, persistent ids), torch/_utils.py (``_rebuild_*``), pickle
protocol 2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from schema.dtypes.scalar_type import scalar_type
from schema.etrecord.archive.zip_write import (
    Bytes,
    Content,
    Pieces,
    Sums,
    archive_chunks,
    write_archive,
)
from schema.etrecord.graph.dtypes import STORAGE_TYPES
from schema.etrecord.torch_file.tensor_data import TensorData, span_elements

Key: TypeAlias = "tuple[int, str | None]"  # dtype and name
_PREFIX = "archive"
_UNTYPED = "UntypedStorage"
_STORAGES = {code: name for name, code in STORAGE_TYPES.items() if name != _UNTYPED}
_MARK, _TUPLE, _EMPTY_TUPLE, _REDUCE, _PERSISTENT = b"(", b"t", b")", b"R", b"Q"
_PROTOCOL, _STOP, _EMPTY_DICT, _SET_ITEMS = b"\x80\x02", b".", b"}", b"u"


def write_tensors(
    tensors: Mapping[str, TensorData], storages: Mapping[str, memoryview], sums: Sums
) -> Pieces:
    """Return a torch.save file of a dictionary of tensors; the bytes of storages are not copied.

    Args:
        tensors: their layouts, each with the key of its storage
        storages: the bytes of the storages in order; tensors of one key have one dtype
        sums: checksums of storages written before

    Raises: ValueError if torch has no storage for the type of a tensor
    """
    kinds = {tensor.storage_key: _item_bytes(tensor) for tensor in tensors.values()}
    elements = {key: len(data) // kinds[key] for key, data in storages.items()}
    numbers = {key: number for number, key in enumerate(storages)}
    body = b"".join(
        _text(name) + _tensor(tensor, numbers[tensor.storage_key], elements[tensor.storage_key])
        for name, tensor in tensors.items()
    )
    return Pieces(archive_chunks(_members(body, storages.values()), sums), sums)


def write_zeros(tensors: Mapping[str, TensorData]) -> bytes:
    """Return a torch.save file of a dictionary of tensors of the same layout, full of zeros.

    Tensors that share a storage still share it. A tensor saved without bytes is written as
    one repeated zero, so that it costs nothing either.

    Raises: ValueError if torch has no storage for the type of a tensor
    """
    storages = _storages(tensors.values())
    numbers = {key: number for number, key in enumerate(storages)}
    body = b"".join(
        _text(name) + _tensor(tensor, numbers[_key(tensor)], storages[_key(tensor)])
        for name, tensor in tensors.items()
    )
    zeros = (
        bytes(elements * scalar_type(code).item_bytes) for (code, _), elements in storages.items()
    )
    return write_archive(_members(body, zeros))


def _members(items: bytes, storages: Iterable[Bytes]) -> Iterator[Content]:
    """Return the members of a file of a dictionary with these items."""
    pickled = _PROTOCOL + _EMPTY_DICT + _MARK + items + _SET_ITEMS + _STOP
    yield Content(f"{_PREFIX}/data.pkl", pickled)
    yield Content(f"{_PREFIX}/byteorder", b"little")
    for number, data in enumerate(storages):
        yield Content(f"{_PREFIX}/data/{number}", data)
    yield Content(f"{_PREFIX}/version", b"3\n")


def _item_bytes(tensor: TensorData) -> int:
    size = scalar_type(tensor.scalar_type).item_bytes
    if not size:
        raise ValueError(f"no storage holds elements of type {tensor.dtype}")
    return size


def _key(tensor: TensorData) -> Key:
    """Return the key of the storage that tensors share, None if a tensor has no bytes."""
    shared = tensor.data is not None and tensor.storage_key
    return tensor.scalar_type, tensor.storage_key if shared else None


def _storages(tensors: Iterable[TensorData]) -> dict[Key, int]:
    """Return the elements of each storage."""
    found: dict[Key, int] = {}
    for tensor in tensors:
        _item_bytes(tensor)
        offset, strides = _place(tensor)
        elements = offset + span_elements(tensor.sizes, strides)
        found[_key(tensor)] = max(found.get(_key(tensor), 0), elements)
    return found


def _place(tensor: TensorData) -> tuple[int, tuple[int, ...]]:
    if tensor.data is None or not tensor.storage_key:
        return 0, (0,) * len(tensor.sizes)
    return tensor.storage_offset, tensor.strides


def _tensor(tensor: TensorData, number: int, elements: int) -> bytes:
    """Return the opcodes that create a tensor or parameter."""
    offset, strides = _place(tensor)
    layout = _number(offset) + _numbers(tensor.sizes) + _numbers(strides)
    layout += _flag(tensor.requires_grad) + _hooks()
    kind = scalar_type(tensor.scalar_type)
    name = _STORAGES.get(kind.code, "")
    if name:
        storage = _storage(_global("torch", name), number, elements)
        built = _call("torch._utils", "_rebuild_tensor_v2", storage + layout)
    else:
        untyped = _global("torch.storage", _UNTYPED)
        storage = _storage(untyped, number, elements * kind.item_bytes)
        dtype = _global("torch", kind.name)
        built = _call("torch._utils", "_rebuild_tensor_v3", storage + layout + dtype)
    if not tensor.is_parameter:
        return built
    grad = _flag(tensor.requires_grad) + _hooks()
    return _call("torch._utils", "_rebuild_parameter", built + grad)


def _storage(kind: bytes, number: int, count: int) -> bytes:
    identity = _text("storage") + kind + _text(str(number)) + _text("cpu") + _number(count)
    return _MARK + identity + _TUPLE + _PERSISTENT


def _call(module: str, name: str, arguments: bytes) -> bytes:
    return _global(module, name) + _MARK + arguments + _TUPLE + _REDUCE


def _global(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode("ascii")


def _hooks() -> bytes:
    return _global("collections", "OrderedDict") + _EMPTY_TUPLE + _REDUCE


def _flag(value: bool) -> bytes:
    return b"\x88" if value else b"\x89"


def _text(text: str) -> bytes:
    raw = text.encode("utf-8", "replace")
    return b"X" + struct.pack("<I", len(raw)) + raw


def _number(value: int) -> bytes:
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes((len(raw),)) + raw


def _numbers(values: tuple[int, ...]) -> bytes:
    return _MARK + b"".join(map(_number, values)) + _TUPLE
