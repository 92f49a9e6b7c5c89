"""Named data: blobs that payloads look up by key, in the program file or in external files."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.dialect.delegate_call import is_lowered_module
from compiler.dialect.dim_order import dim_order_of
from compiler.interface.file_data import FileBackedData
from compiler.memory.specs import raw_bytes, scalar_type_of

BYTES: Any = (bytes, bytearray, memoryview, FileBackedData)


class HashedBytes(bytes):
    """Bytes that are hashed once, however many stores they pass through.

    Attributes:
        sha256: their digest
    """

    _digest: bytes | None = None

    @property
    def sha256(self) -> bytes:
        """Return the digest of the content."""
        # not a cached_property: those of Python 3.11 share one lock, threads would take turns
        if self._digest is None:
            self._digest = hashlib.sha256(self).digest()
        return self._digest


@dataclass(frozen=True, eq=False)
class TensorLayout:
    """The dtype, sizes and dim order of a blob that is a tensor.

    Attributes:
        scalar_type: scalar type code
        sizes: of each dimension
        dim_order: dimensions, outermost in memory first
    """

    scalar_type: int
    sizes: Sequence[int]
    dim_order: Sequence[int]

    def __eq__(self, other: object) -> bool:
        """Compare with a layout of any class, such as that of a third-party backend."""
        return _layout_of(other) == _layout_of(self)

    def __hash__(self) -> int:
        return hash(_layout_of(self))

    @classmethod
    def from_tensor(cls, tensor: torch.Tensor) -> TensorLayout:
        """Return the layout of a contiguous or channels-last tensor.

        Raises: ValueError for any other dim order
        """
        if not (tensor.is_contiguous() or tensor.is_contiguous(memory_format=torch.channels_last)):
            raise ValueError(
                f"a tensor with strides {tuple(tensor.stride())} is neither contiguous nor "
                "channels-last: call contiguous() on it"
            )
        return cls(scalar_type_of(tensor.dtype), tuple(tensor.shape), dim_order_of(tensor))


@dataclass(frozen=True, eq=False)
class DataEntry:
    """Location of the blob of a key.

    Attributes:
        buffer_index: index among the store's buffers
        alignment: in bytes
        tensor_layout: None for plain bytes
    """

    buffer_index: int
    alignment: int
    tensor_layout: TensorLayout | None = None

    def __eq__(self, other: object) -> bool:
        """Compare with an entry of any class."""
        return _entry_of(other) == _entry_of(self)

    def __hash__(self) -> int:
        return hash(_entry_of(self))


@dataclass
class NamedDataStoreOutput:
    """The content of a store.

    Attributes:
        buffers: each content once, as bytes or as a file
        pte_data: keys stored in the program file
        external_data: keys stored elsewhere, by the name of the file
    """

    buffers: list[Any]
    pte_data: dict[str, DataEntry]
    external_data: dict[str, dict[str, DataEntry]]


@dataclass
class NamedDataStore:
    """Collects blobs by key; equal contents are stored once.

    Attributes:
        buffers: each content once, as bytes or as a file
        pte_data: keys stored in the program file
        external_data: keys stored elsewhere, by the name of the file
    """

    buffers: list[Any] = field(default_factory=list[Any])
    pte_data: dict[str, DataEntry] = field(default_factory=dict[str, DataEntry])
    external_data: dict[str, dict[str, DataEntry]] = field(
        default_factory=dict[str, dict[str, DataEntry]]
    )

    def __post_init__(self) -> None:
        self._by_digest: dict[bytes, int] = {}
        self.key_to_buffer_idx: dict[str, int] = {}

    def add_named_data(
        self,
        key: str,
        data: Any,  # noqa: ANN401
        alignment: int | None = 1,
        external_tag: str | None = None,
        tensor_layout: TensorLayout | None = None,
    ) -> None:
        """Store a blob under a key.

        Args:
            key: unique in the store
            data: bytes, a file, or a tensor whose layout is stored too
            alignment: of the blob, in bytes
            external_tag: name of its file, None for the program file
            tensor_layout: of plain bytes that represent a tensor

        Raises:
            ValueError: the key has different content, the alignment is not a positive integer, or
                the
                layout is not that of the tensor
            TypeError: the data is neither bytes nor a tensor
        """
        step = 1 if alignment is None else alignment
        if step <= 0:
            raise ValueError(f"Alignment must be greater than 0, received {step}.")
        if isinstance(data, torch.Tensor):
            found = TensorLayout.from_tensor(data)
            if tensor_layout not in (None, found):
                raise ValueError(f"tensor {key} has the layout {found}, not {tensor_layout}")
            tensor_layout, data = found, HashedBytes(raw_bytes(data))
        if not isinstance(data, BYTES):
            raise TypeError(f"named data {key} is a {type(data).__name__}, not bytes or a tensor")
        blob = data if isinstance(data, (HashedBytes, FileBackedData)) else HashedBytes(data)
        held = self.key_to_buffer_idx.get(key)
        if held is None:
            home = self.pte_data
            if external_tag is not None:
                home = self.external_data.setdefault(external_tag, {})
            self.key_to_buffer_idx[key] = held = self._keep(blob)
        elif self._by_digest.get(_digest(blob)) != held:
            raise ValueError(
                f"Duplicate key {key} with different data: it has {len(self.buffers[held])} "
                f"bytes, the new data {len(blob)}"
            )
        else:
            home = next(entries for entries in self._entries() if key in entries)
            step = math.lcm(step, home[key].alignment)
        home[key] = DataEntry(held, step, tensor_layout)

    def _entries(self) -> tuple[dict[str, DataEntry], ...]:
        return (self.pte_data, *self.external_data.values())

    def _keep(self, data: HashedBytes | FileBackedData) -> int:
        index = self._by_digest.setdefault(_digest(data), len(self.buffers))
        if index == len(self.buffers):
            self.buffers.append(data)
        return index

    def externalize_pte_data(self, max_data_bytes: int, tag_prefix: str) -> None:
        """Move all blobs of the program file into files of limited size.

        Keys are packed in order of their names; a file is called `tag_prefix` and the digest of
        its keys, so equal stores give equal files.

        Args:
            max_data_bytes: of the contents in one file
            tag_prefix: begins the names of the files

        Raises: ValueError, leaving the store unchanged, for a content that is larger, or a file of
            that name with other content
        """
        if type(max_data_bytes) is not int or max_data_bytes <= 0:
            raise ValueError(
                f"external data shard cap must be a positive integer, found {max_data_bytes!r}"
            )
        if not tag_prefix:
            raise ValueError("external data tag prefix must be nonempty")
        external = {tag: dict(entries) for tag, entries in self.external_data.items()}
        for entries in self._shards(max_data_bytes):
            named = {key: entries[key] for key in sorted(entries)}
            digest = hashlib.sha256("\0".join(named).encode()).hexdigest()
            tag = f"{tag_prefix}_{digest}"
            if external.setdefault(tag, named) != named:
                raise ValueError(f"external data tag collision for {tag}")
        self.external_data, self.pte_data = external, {}

    def _shards(self, max_data_bytes: int) -> list[dict[str, DataEntry]]:
        """Return the keys by file; equal contents are in the same file."""
        by_buffer: dict[int, dict[str, DataEntry]] = {}
        for key in sorted(self.pte_data):
            entry = self.pte_data[key]
            by_buffer.setdefault(entry.buffer_index, {})[key] = entry
        shards: list[dict[str, DataEntry]] = []
        room = 0
        for index, entries in by_buffer.items():
            size = len(self.buffers[index])
            if size > max_data_bytes:
                raise ValueError(
                    f"the data of {', '.join(entries)} has {size} bytes and exceeds external data "
                    f"shard cap {max_data_bytes}"
                )
            if size > room or not shards:
                shards.append({})
                room = max_data_bytes
            shards[-1] |= entries
            room -= size
        return shards

    def get_named_data_store_output(self) -> NamedDataStoreOutput:
        """Return the collected data."""
        external = {tag: dict(entries) for tag, entries in self.external_data.items() if entries}
        return NamedDataStoreOutput(list(self.buffers), dict(self.pte_data), external)

    def merge_named_data_store(self, other: NamedDataStoreOutput) -> None:
        """Add all blobs of another store.

        Raises: ValueError if a key is in both with different content
        """
        groups = [(None, other.pte_data), *other.external_data.items()]
        for tag, entries in groups:
            for key, entry in entries.items():
                data = other.buffers[entry.buffer_index]
                self.add_named_data(key, data, entry.alignment, tag, entry.tensor_layout)


def _digest(data: HashedBytes | FileBackedData) -> bytes:
    return data.sha256() if isinstance(data, FileBackedData) else data.sha256


def _layout_of(layout: Any) -> Any:  # noqa: ANN401
    if layout is None or not hasattr(layout, "dim_order"):
        return None
    return int(layout.scalar_type), tuple(layout.sizes), tuple(layout.dim_order)


def _entry_of(entry: Any) -> Any:  # noqa: ANN401
    if not hasattr(entry, "buffer_index"):
        return None
    return entry.buffer_index, entry.alignment, _layout_of(entry.tensor_layout)


def named_data_store(programs: Iterable[ExportedProgram]) -> NamedDataStore:
    """Return the blobs that the payloads of delegates look up by key, also inside branches.

    Raises: ValueError for two different blobs with one key
    """
    store = NamedDataStore()
    for program in programs:
        modules: Any = program.graph_module.modules()
        for module in [one for one in modules if is_lowered_module(one)]:
            if module.named_data_store_output is not None:
                store.merge_named_data_store(module.named_data_store_output)
    return store
