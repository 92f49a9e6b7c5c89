"""Weights of an exported program: a member for each, and a configuration that names them.

Source: torch/export/pt2_archive/_package.py and constants.py (``data/weights``,
``data/constants``); torch/_export/serde/schema.py (TensorMeta, PayloadMeta).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from schema.dtypes.scalar_type import numel, scalar_type
from schema.errors import FormatError
from schema.etrecord.archive.container import Archive
from schema.etrecord.graph.dtypes import (
    FIRST_TORCH_MAJOR,
    UNKNOWN_TYPE,
    scalar_type_number,
    serde_dtype_names,
)
from schema.etrecord.graph.json_text import parse_json
from schema.etrecord.torch_file.tensor_data import TensorData

_KINDS = ("weights", "constants")
_MOST = 1 << 40  # elements, or elements from one to the next; nothing stored has more
_DTYPES = serde_dtype_names(FIRST_TORCH_MAJOR)


@dataclass(frozen=True, slots=True)
class StoredWeights:
    """The weights and constants of a program.

    Attributes:
        archive: the file
        root: folder of the archive in it, with its slash, or an empty string
        model: name of the program
    """

    archive: Archive
    root: str
    model: str

    def tensors(self) -> dict[str, TensorData]:
        """Return the tensors by name; what cannot be read is left out.

        Raises: FormatError if a configuration is not JSON
        """
        return {name: tensor for name, _, tensor in self._entries()}

    def members(self) -> dict[str, tuple[str, ...]]:
        """Return member -> the names of the tensors in it.

        Raises: FormatError if a configuration is not JSON
        """
        found: dict[str, tuple[str, ...]] = {}
        for name, member, _ in self._entries():
            found[member] = (*found.get(member, ()), name)
        return found

    def _entries(self) -> Iterator[tuple[str, str, TensorData]]:
        for kind in _KINDS:
            folder = f"{self.root}data/{kind}/"
            yield from _of_kind(self.archive, folder, f"{folder}{self.model}_{kind}_config.json")


def _of_kind(archive: Archive, folder: str, path: str) -> Iterator[tuple[str, str, TensorData]]:
    if path not in archive:
        return
    content = parse_json(archive.read(path), archive.budget, path)
    config = cast("dict[str, Any]", content).get("config") if isinstance(content, dict) else None
    for key, each in cast("dict[str, Any]", config).items() if isinstance(config, dict) else ():
        entry = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
        member, tensor = entry.get("path_name"), _tensor(entry)
        if tensor is None or not isinstance(member, str):
            continue
        yield key, folder + member, _with_bytes(archive, folder + member, tensor)


def _tensor(entry: Mapping[str, Any]) -> TensorData | None:
    """Return the layout of a weight, None for objects that are pickled and for unknown types."""
    meta = entry.get("tensor_meta")
    if not isinstance(meta, dict) or entry.get("use_pickle"):
        return None
    known = cast("dict[str, Any]", meta)
    dtype = known.get("dtype")
    code = scalar_type_number(_DTYPES.get(dtype, "")) if isinstance(dtype, int) else UNKNOWN_TYPE
    sizes, strides = (_numbers(known.get(key)) for key in ("sizes", "strides"))
    start = _numbers([known.get("storage_offset", 0)])
    if code == UNKNOWN_TYPE or sizes is None or strides is None or start is None:
        return None
    if len(sizes) != len(strides) or numel(sizes) > _MOST:
        return None
    return TensorData(code, sizes, strides, start[0], is_parameter=bool(entry.get("is_param")))


def _numbers(values: object) -> tuple[int, ...] | None:
    if not isinstance(values, list):
        return None
    found: list[int] = []
    for one in cast("list[object]", values):
        number = cast("dict[str, object]", one).get("as_int") if isinstance(one, dict) else one
        if not isinstance(number, int) or not 0 <= number <= _MOST:
            return None
        found.append(number)
    return tuple(found)


def _with_bytes(archive: Archive, member: str, tensor: TensorData) -> TensorData:
    width = scalar_type(tensor.scalar_type).item_bytes
    last = sum(
        (size - 1) * stride for size, stride in zip(tensor.sizes, tensor.strides, strict=True)
    )
    count = 0 if 0 in tensor.sizes else last + 1
    try:
        data = archive.read(member)
    except FormatError:
        return tensor
    first = tensor.storage_offset * width
    end = first + count * width
    return _placed(tensor, member, data[first:end] if end <= len(data) else None)


def _placed(tensor: TensorData, member: str, data: memoryview | None) -> TensorData:
    return TensorData(
        tensor.scalar_type,
        tensor.sizes,
        tensor.strides,
        tensor.storage_offset,
        member,
        data,
        is_parameter=tensor.is_parameter,
    )
