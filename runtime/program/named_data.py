"""Named data: blobs inside a program and in ``.ptd`` files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from runtime.errors import ErrorCode, ExecutionError
from schema import flat_tensor
from schema.program import ProgramFile
from schema.program import model as m


class NamedDataMap:
    """Bytes by key; a key of an earlier file hides that of a later one and of the program."""

    def __init__(self, files: Iterable[flat_tensor.FlatTensor], inside: ProgramFile) -> None:
        self._entries: dict[str, flat_tensor.Entry] = {}
        for file in files:
            for entry in file.entries:
                self._entries.setdefault(entry.key, entry)
        self._inside: Mapping[str, memoryview] = inside.named_data_map()

    def __contains__(self, key: str) -> bool:
        return key in self._entries or key in self._inside

    def keys(self) -> tuple[str, ...]:
        """Return all keys, those of files first."""
        return tuple({**dict.fromkeys(self._entries), **dict.fromkeys(self._inside)})

    def data(self, key: str) -> memoryview:
        """Return the bytes of a key.

        Raises: ExecutionError InvalidExternalData naming the key that is missing
        """
        if key in self._entries:
            return self._entries[key].data
        if key in self._inside:
            return self._inside[key]
        raise _bad(f"no external data has the key {key!r}")

    def tensor_data(self, tensor: m.Tensor, key: str, nbytes: int) -> memoryview:
        """Return the bytes of an external tensor, whose layout must match the program's.

        Raises: ExecutionError InvalidExternalData
        """
        data = self.data(key)
        entry = self._entries.get(key)
        layout = entry.layout if entry is not None else None
        if layout is not None:
            found = (layout.scalar_type, layout.sizes, layout.dim_order)
            requested = (tensor.scalar_type, tensor.sizes, tensor.dim_order)
            if found != requested:
                raise _bad(
                    f"external tensor {key!r} has type {found[0]}, sizes {list(found[1])} and "
                    f"dim_order {list(found[2])}; the program expects type {requested[0]}, sizes "
                    f"{list(requested[1])} and dim_order {list(requested[2])}"
                )
        if len(data) < nbytes:
            raise _bad(f"external tensor {key!r} has {len(data)} bytes, expected {nbytes}")
        return data[:nbytes]


def _bad(reason: str) -> ExecutionError:
    return ExecutionError(ErrorCode.InvalidExternalData, reason)
