"""The tensors that a record saves, and whether stored bytes are theirs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

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


def differs(tensor: TensorData, data: memoryview | None, bits: int = 0) -> bool | None:
    """Return whether stored values differ, None if they cannot be compared.

    Args:
        tensor: the saved one
        data: what is stored
        bits: of each stored value of a tensor of int8, if several are packed in a byte
    """
    if data is None or tensor.data is None or tensor.big_endian or not tensor.is_contiguous:
        return None
    in_byte = 8 // bits if bits else 1
    if len(data) * in_byte < tensor.nbytes or tensor.nbytes == 0:
        return None
    count = min(tensor.nbytes, _COMPARED_BYTES)
    if not bits:
        return bytes(data[:count]) != bytes(tensor.data[:count])
    stored = _unpacked(data[: -(-count // in_byte)], bits)[:count]
    return not np.array_equal(stored, np.frombuffer(tensor.data, np.int8, count))


def _unpacked(data: memoryview, bits: int) -> NDArray[np.int8]:
    """Return values of 4 or 2 bits as the lookup kernels read them."""
    raw = np.frombuffer(data, np.uint8)[:, None]
    shifts = {4: (4, 0), 2: (0, 2, 4, 6)}[bits]  # the first of four bits is the upper one
    values = (raw >> np.array(shifts, np.uint8)) & ((1 << bits) - 1)
    return (values.astype(np.int8) - (1 << (bits - 1))).ravel()
