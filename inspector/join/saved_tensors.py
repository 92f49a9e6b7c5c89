"""The tensors that a record saves, and whether stored bytes are theirs."""

from __future__ import annotations

from collections.abc import Mapping

from schema.errors import FormatError
from schema.etrecord import RecordFile
from schema.etrecord.torch_file.tensor_data import TensorData
from schema.objects.identity_cache import identity_cache

_COMPARED_BYTES = 1 << 16  # of each tensor: trained weights differ long before


@identity_cache
def saved_tensors(record: RecordFile, name: str) -> Mapping[str, TensorData]:
    """Return the parameters, buffers and constants of a recorded program that can be read."""
    found: dict[str, TensorData] = {}
    for read in (record.state_dict, record.constants):
        try:
            found.update(read(name))
        except FormatError:
            continue
    return found


def differs(tensor: TensorData, data: memoryview | None) -> bool | None:
    """Return whether stored values differ, None if they cannot be compared."""
    if data is None or tensor.data is None or tensor.big_endian or not tensor.is_contiguous:
        return None
    if len(data) < tensor.nbytes or tensor.nbytes == 0:
        return None
    count = min(tensor.nbytes, _COMPARED_BYTES)
    return bytes(data[:count]) != bytes(tensor.data[:count])
