"""Dictionaries of tensors as torch.save files, without copying the tensors.

``torch.save`` copies and checksums every element: 1.2 s for 475 MiB of weights, which a record
contains
twice. Here checksums are computed once (0.1 s) and tensors are written from their memory.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import torch

from schema.dtypes.scalar_type import BY_NAME
from schema.etrecord.archive.zip_write import Bytes, Pieces, Sums
from schema.etrecord.torch_file.tensor_data import TensorData
from schema.etrecord.torch_file.torch_write import write_tensors

_PLAIN = (torch.Tensor, torch.nn.Parameter)


class SavedStates:
    """Dictionaries of tensors as files; equal ones are written once.

    Attributes:
        sums: known checksums, including those computed here
    """

    def __init__(self, sums: Sums | None = None) -> None:
        self.sums = Sums() if sums is None else sums
        self._kept: list[tuple[dict[str, Any], Bytes | Pieces]] = []
        self._storages: dict[str, tuple[torch.UntypedStorage, memoryview]] = {}

    def bytes_of(self, state: Mapping[str, Any]) -> Bytes | Pieces:
        """Return the torch.save bytes of a dictionary of tensors."""
        plain = dict(state)
        for other, data in self._kept:
            if list(other) == list(plain) and all(other[k] is plain[k] for k in plain):
                return data
        layouts = self._layouts(plain)
        if layouts is None:
            data = torch_save(plain)
        else:
            storages = {each.storage_key: self._storages[each.storage_key][1] for each in layouts}
            data = write_tensors(dict(zip(plain, layouts, strict=True)), storages, self.sums)
        self._kept.append((plain, data))
        return data

    def _layouts(self, state: Mapping[str, Any]) -> list[TensorData] | None:
        """Return the storage layout of each tensor, None if torch must save them."""
        if not all(_is_plain(value) for value in state.values()):
            return None
        found = [self._layout(value) for value in state.values()]
        kinds = {(each.storage_key, each.scalar_type) for each in found}
        # torch refuses to save one storage under two dtypes; it reports that itself.
        return found if len(kinds) == len({key for key, _ in kinds}) else None

    def _layout(self, tensor: torch.Tensor) -> TensorData:
        code = BY_NAME[_name(tensor)].code
        storage = tensor.untyped_storage()
        key = f"{storage.data_ptr()} {storage.nbytes()}"
        if not storage.nbytes():
            key += f" {code}"
        if key not in self._storages:
            # The storage is kept alive: a new one at the same address would be mistaken for it.
            self._storages[key] = storage, _view(storage)
        return TensorData(
            code,
            tuple(tensor.size()),
            tensor.stride(),
            int(tensor.storage_offset()),
            key,
            self._storages[key][1],
            requires_grad=tensor.requires_grad,
            is_parameter=isinstance(tensor, torch.nn.Parameter),
        )


def torch_save(value: Any) -> memoryview:  # noqa: ANN401
    """Return a torch.save file of anything that torch saves."""
    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getbuffer()


def _is_plain(value: Any) -> bool:  # noqa: ANN401
    """Return whether elements in a storage of the processor are all that a tensor is."""
    return (
        type(value) in _PLAIN
        and value.layout is torch.strided
        and value.device.type == "cpu"
        and _name(value) in BY_NAME
        and BY_NAME[_name(value)].item_bytes == value.element_size()
        and not (value.is_conj() or value.is_neg() or value.is_quantized)
        and not getattr(value, "__dict__", None)
        and not value._backward_hooks
    )


def _name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _view(storage: torch.UntypedStorage) -> memoryview:
    whole = torch.empty(0, dtype=torch.uint8).set_(storage)
    return whole.numpy().data.toreadonly()
