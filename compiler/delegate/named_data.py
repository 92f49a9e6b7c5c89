"""Blobs that payloads look up by key, in the program file or in a file beside it."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from compiler.edge.dim_order import dim_order_of
from compiler.emit.constants import raw_bytes
from compiler.memory.specs import scalar_type_of

_BYTES: Any = (bytes, bytearray, memoryview)


class Blob(bytes):
    """Bytes that are hashed once, however many stores they pass through.

    Attributes:
        sha256: their digest
    """

    @cached_property
    def sha256(self) -> bytes:
        """Return the digest of the content."""
        return hashlib.sha256(self).digest()


@dataclass(frozen=True)
class TensorLayout:
    """What a blob is when it is a tensor.

    Attributes:
        scalar_type: number of the element type
        sizes: of each dimension
        dim_order: dimensions, outermost in memory first
    """

    scalar_type: int
    sizes: tuple[int, ...]
    dim_order: tuple[int, ...]

    @classmethod
    def from_tensor(cls, tensor: torch.Tensor) -> TensorLayout:
        """Return the layout of a dense tensor."""
        return cls(scalar_type_of(tensor.dtype), tuple(tensor.shape), dim_order_of(tensor))


@dataclass(frozen=True)
class DataEntry:
    """Where the blob of a key is.

    Attributes:
        buffer_index: which of the store's buffers
        alignment: bytes
        tensor_layout: None for plain bytes
    """

    buffer_index: int
    alignment: int
    tensor_layout: TensorLayout | None = None


@dataclass
class NamedDataStoreOutput:
    """The content of a store.

    Attributes:
        buffers: each content once
        pte_data: keys stored in the program file
        external_data: keys stored elsewhere, by the name of the file
    """

    buffers: list[bytes]
    pte_data: dict[str, DataEntry]
    external_data: dict[str, dict[str, DataEntry]]


@dataclass
class NamedDataStore:
    """Collects blobs by key; equal contents are kept once, a key has one content.

    Attributes:
        buffers: each content once
        pte_data: keys stored in the program file
        external_data: keys stored elsewhere, by the name of the file
    """

    buffers: list[bytes] = field(default_factory=list[bytes])
    pte_data: dict[str, DataEntry] = field(default_factory=dict[str, DataEntry])
    external_data: dict[str, dict[str, DataEntry]] = field(
        default_factory=dict[str, dict[str, DataEntry]]
    )

    def __post_init__(self) -> None:
        self._by_digest: dict[bytes, int] = {}
        self._places: dict[str, dict[str, DataEntry]] = {}

    def add_named_data(
        self,
        key: str,
        data: Any,  # noqa: ANN401
        alignment: int | None = 1,
        external_tag: str | None = None,
        tensor_layout: TensorLayout | None = None,
    ) -> None:
        """Keep a blob under a key.

        Args:
            key: the only one of this name in the store
            data: bytes, or a tensor whose layout is kept too
            alignment: bytes; where it may start
            external_tag: name of the file it goes to, None for the program file
            tensor_layout: of plain bytes that are a tensor's

        Raises:
            ValueError: the key has other content, the alignment is no positive number, or the
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
            tensor_layout, data = found, Blob(raw_bytes(data))
        if not isinstance(data, _BYTES):
            raise TypeError(f"named data {key} is a {type(data).__name__}, not bytes or a tensor")
        index = self._keep(data if isinstance(data, Blob) else Blob(data))
        home = self._places.get(key)
        if home is not None:
            if home[key].buffer_index != index:
                raise ValueError(f"Duplicate key {key} with different data.")
            step = math.lcm(step, home[key].alignment)
        else:
            home = self.pte_data
            if external_tag is not None:
                home = self.external_data.setdefault(external_tag, {})
            self._places[key] = home
        home[key] = DataEntry(index, step, tensor_layout)

    def _keep(self, data: Blob) -> int:
        index = self._by_digest.setdefault(data.sha256, len(self.buffers))
        if index == len(self.buffers):
            self.buffers.append(data)
        return index

    def get_named_data_store_output(self) -> NamedDataStoreOutput:
        """Return what has been kept."""
        external = {tag: dict(entries) for tag, entries in self.external_data.items() if entries}
        return NamedDataStoreOutput(list(self.buffers), dict(self.pte_data), external)

    def merge_named_data_store(self, other: NamedDataStoreOutput) -> None:
        """Keep all of another store.

        Raises: ValueError if a key is in both with different content
        """
        groups = [(None, other.pte_data), *other.external_data.items()]
        for tag, entries in groups:
            for key, entry in entries.items():
                data = other.buffers[entry.buffer_index]
                self.add_named_data(key, data, entry.alignment, tag, entry.tensor_layout)
