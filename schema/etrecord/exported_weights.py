"""Weights of an exported program: a member for each, and a configuration that names them.

Source: torch/export/pt2_archive/_package.py and constants.py (``data/weights``,
``data/constants``); torch/_export/serde/schema.py (TensorMeta, PayloadMeta).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from schema.dtypes.scalar_type import numel, scalar_type
from schema.errors import FormatError, Issue, Notes, Severity
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

    def issues(self) -> tuple[Issue, ...]:
        """Return why weights or constants are missing, one issue a member.

        Members that are packed are not unpacked for it.
        """
        notes = Notes("")
        damaged: set[str] = set()
        for kind in _KINDS:
            try:
                entries = tuple(self._of_kind(kind))
            except FormatError as error:
                notes.add(f"{error}; the {kind} it names are missing", Severity.ERROR)
                continue
            for name, member, tensor in entries:
                held = self.archive.get(member)
                packed = held is not None and held.compressed
                if tensor.data is None and not packed and member not in damaged:
                    damaged.add(member)
                    size = f"{held.size} bytes" if held else "no readable member of this name"
                    place = f"expected {_end(tensor)} bytes, found {size}"
                    notes.add(f"in {member}: {place}; {name} is missing", Severity.ERROR)
        return notes.all()

    def _entries(self) -> Iterator[tuple[str, str, TensorData]]:
        for kind in _KINDS:
            yield from self._of_kind(kind)

    def _of_kind(self, kind: str) -> Iterator[tuple[str, str, TensorData]]:
        folder = f"{self.root}data/{kind}/"
        return _listed(self.archive, folder, f"{folder}{self.model}_{kind}_config.json")


def _listed(archive: Archive, folder: str, path: str) -> Iterator[tuple[str, str, TensorData]]:
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


def _end(tensor: TensorData) -> int:
    """Return the bytes of a member that end with the last element of a tensor."""
    steps = zip(tensor.sizes, tensor.strides, strict=True)
    last = sum((size - 1) * stride for size, stride in steps)
    count = 0 if 0 in tensor.sizes else last + 1
    return (tensor.storage_offset + count) * scalar_type(tensor.scalar_type).item_bytes


def _with_bytes(archive: Archive, member: str, tensor: TensorData) -> TensorData:
    try:
        data = archive.read(member)
    except FormatError:
        return tensor
    first = tensor.storage_offset * scalar_type(tensor.scalar_type).item_bytes
    end = _end(tensor)
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
