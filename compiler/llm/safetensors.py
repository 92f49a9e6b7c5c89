"""Reads safetensors files: a header of JSON, then the bytes of each tensor; no unpickling."""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import torch

from compiler.errors import CompileError

_HEADER_BYTES = 8
_MOST = 100 << 20  # of a header, as the format demands
_MOST_DIMENSIONS = 64  # that torch takes
_MOST_BYTES = 1 << 60
_INDEX = "model.safetensors.index.json"
_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


class CheckpointError(CompileError):
    """A checkpoint that cannot be read, or does not fit the model."""


def read_checkpoint(path: Path) -> dict[str, torch.Tensor]:
    """Return the tensors of a safetensors file, or of those in a folder, mapped into memory.

    Raises: CheckpointError, OSError
    """
    if not path.is_dir():
        return read_safetensors(path)
    index = path / _INDEX
    files = _indexed(index) if index.is_file() else sorted(path.glob("*.safetensors"))
    if not files:
        others = ", ".join(sorted(one.name for one in path.glob("*.bin")))
        more = f"; {others} would have to be unpickled, which runs code" if others else ""
        raise CheckpointError(f"{path}: no safetensors file{more}")
    found: dict[str, torch.Tensor] = {}
    for file in files:
        found.update(read_safetensors(file))
    return found


def _indexed(index: Path) -> list[Path]:
    """Return the files that an index names, those of its own folder."""
    try:
        content: Any = json.loads(index.read_text("utf-8"))
        names = sorted({*content["weight_map"].values()})
        return [index.with_name(Path(one).name) for one in names]
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise CheckpointError(f"{index}: not an index of safetensors files: {error}") from error


def read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    """Return the tensors of one file; their memory is that of the file until they are changed.

    Raises: CheckpointError, OSError
    """
    if path.exists() and not path.is_file():
        raise CheckpointError(f"{path}: not a regular file")
    with path.open("rb") as stream:
        head = stream.read(_HEADER_BYTES)
        size = int.from_bytes(head, "little")
        total = path.stat().st_size
        if len(head) < _HEADER_BYTES or size > min(_MOST, total - _HEADER_BYTES):
            raise CheckpointError(f"{path}: not a safetensors file: the header has {size:,} bytes")
        try:
            header: Any = json.loads(stream.read(size).decode("utf-8"))
        except (RecursionError, ValueError) as error:
            raise CheckpointError(f"{path}: the header is not JSON: {error}") from error
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
    if not isinstance(header, dict):
        raise CheckpointError(f"{path}: the header is not an object")
    start = _HEADER_BYTES + size
    entries = cast("dict[str, Any]", header)
    entries.pop("__metadata__", None)
    found = {
        name: _tensor(path, name, entry, mapped, (start, total)) for name, entry in entries.items()
    }
    _check_apart(path, entries)
    return found


def _check_apart(path: Path, entries: Mapping[str, Any]) -> None:
    """Check that no tensors share bytes, of which each would be changed with the other."""
    spans = sorted((*entry["data_offsets"], name) for name, entry in entries.items())
    held = [span for span in spans if span[0] < span[1]]
    for (_, end, first), (begin, _, second) in pairwise(held):
        if begin < end:
            raise CheckpointError(f"{path}: {first} and {second} share bytes")


def _whole(value: object) -> int:
    """Return an integer of a header.

    Raises: ValueError for anything else
    """
    if type(value) is not int or not -1 <= value < _MOST_BYTES:
        raise ValueError(value)
    return value


def _tensor(
    path: Path, name: str, entry: Mapping[str, Any], data: mmap.mmap, limits: tuple[int, int]
) -> torch.Tensor:
    try:
        dtype, shape = _DTYPES[entry["dtype"]], [_whole(one) for one in entry["shape"]]
        begin, end = (_whole(one) + limits[0] for one in entry["data_offsets"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: {name}: unreadable entry {entry!r:.100}") from error
    count = 1
    for one in shape:
        count *= one
    fits = limits[0] <= begin <= end <= limits[1] and end - begin == count * dtype.itemsize
    if not fits or min(shape, default=0) < 0 or len(shape) > _MOST_DIMENSIONS:
        raise CheckpointError(f"{path}: {name}: shape {shape!s:.80} does not fit its bytes")
    if not count:
        return torch.empty(0, dtype=dtype).as_strided(shape, [0] * len(shape))
    untyped: Any = torch
    return untyped.frombuffer(data, dtype=dtype, count=count, offset=begin).reshape(shape)


def write_safetensors(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """Write tensors as a safetensors file."""
    names = {dtype: name for name, dtype in _DTYPES.items()}
    header: dict[str, Any] = {}
    at = 0
    blobs: list[bytes] = []
    for name, tensor in tensors.items():
        flat: Any = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        blob = bytes(flat.numpy())
        entry = {"dtype": names[tensor.dtype], "shape": list(tensor.shape)}
        header[name] = {**entry, "data_offsets": [at, at + len(blob)]}
        at += len(blob)
        blobs.append(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(_HEADER_BYTES, "little") + text + b"".join(blobs))
