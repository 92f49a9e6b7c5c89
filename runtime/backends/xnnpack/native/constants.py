"""Constants in memory shared with the process of the kernels."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from runtime.backends.xnnpack.model import Datatype, PartitionPlan, Value
from runtime.backends.xnnpack.native.c_calls import Place
from runtime.backends.xnnpack.native.process import ALIGNMENT, SPARE, Kernels, SharedRegion


class ConstantStore:
    """The constants of one partition, copied once.

    Args:
        process: the kernels
        plan: whose constants are copied
    """

    def __init__(self, process: Kernels, plan: PartitionPlan) -> None:
        requested = dict(_blobs(plan.values.values()))
        self._places: dict[tuple[int, str], int] = {}
        offset, seen = 0, dict[bytes, int]()
        for key, data in requested.items():
            mark = _mark(data)
            if mark not in seen:
                seen[mark] = offset
                offset += -(-(len(data) + SPARE) // ALIGNMENT) * ALIGNMENT
            self._places[key] = seen[mark]
        self.region: SharedRegion = process.region(offset)
        self.close = weakref.finalize(self, process.discard, [], [self.region.number])
        """Frees the memory, as does the end of this object."""
        for key, data in requested.items():
            self.region.bytes_at(self._places[key], len(data))[:] = data

    def place(self, value: Value, what: str) -> Place:
        """Return the location of ``data`` or ``scales`` of a value."""
        return [self.region.number, self._places[value.ident, what]]


def _blobs(values: Iterable[Value]) -> Iterable[tuple[tuple[int, str], memoryview]]:
    for value in values:
        if value.data is not None:
            yield (value.ident, "data"), value.data.cast("B")
        quantization = value.quantization
        if quantization is not None and not quantization.row_dims:
            if value.datatype == Datatype.QBINT4:
                scales: Any = quantization.scales
                bits = (scales.view(np.uint32) >> 16).astype(np.uint16)
                yield (value.ident, "scales"), memoryview(bits.tobytes())
            elif len(quantization.scales) > 1 or value.datatype.name.startswith("QC"):
                yield (value.ident, "scales"), memoryview(quantization.scales.tobytes())


def _mark(data: memoryview) -> bytes:
    """Return an identity of a memory range, without reading it."""
    if not len(data):
        return b""
    flat = np.frombuffer(data, np.uint8)
    return f"{flat.__array_interface__['data'][0]}:{len(data)}".encode()
