"""The origin of times and values: one list for runs, traces, tables and the window."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class ValueOrigin(str, Enum):
    """The origin of a time or a value, the most trustworthy first."""

    MEASURED = "measured"
    DEVICE = "device"
    SYNTHESISED = "synthesised"
    INTERPRETED = "interpreted"
    ESTIMATE = "estimate"
    EMULATED = "emulated"

    @property
    def words(self) -> str:
        """Return the meaning, for help and tooltips."""
        return _WORDS[self]


_WORDS = {
    ValueOrigin.MEASURED: "measured on real kernels on this machine",
    ValueOrigin.DEVICE: "measured on a device",
    ValueOrigin.SYNTHESISED: "measured durations, laid one after the other",
    ValueOrigin.INTERPRETED: "interpreted: torch ran the payload",
    ValueOrigin.ESTIMATE: "an estimate of the vendor's tool",
    ValueOrigin.EMULATED: "emulated by the recorded graph: not what the payload computes",
}
# Metadata of events inside of delegates, as our runtime writes it.
EMULATED = b"emulated"
INTERPRETED = b"interpreted"
_KERNELS = b"measured on real kernels"
_MARKS = {
    EMULATED: ValueOrigin.EMULATED,
    INTERPRETED: ValueOrigin.INTERPRETED,
    b"host emulation": ValueOrigin.INTERPRETED,  # torch's kernels on XNNPACK payloads
    _KERNELS: ValueOrigin.MEASURED,
    b"measured on real kernels, node by node": ValueOrigin.MEASURED,
}


def origin_of_mark(metadata: bytes) -> ValueOrigin | None:
    """Return the origin that an event's metadata states, None for other metadata."""
    return _MARKS.get(metadata.partition(b":")[0])


_NAMED = _KERNELS + b": "
SHORTEST_NAMED = len(_NAMED) + 1
"""Bytes of the shortest metadata that names a kernel."""


def measured_by(kernel: str) -> bytes:
    """Return the metadata of an event of a kernel that has a name of its own."""
    return _NAMED + kernel.encode()


def kernel_of_mark(metadata: bytes) -> str:
    """Return the name of the kernel that an event's metadata states, empty without one."""
    mark, _, kernel = metadata.partition(b": ")
    return kernel.decode("utf-8", "replace") if mark == _KERNELS else ""


def weakest(origins: Iterable[ValueOrigin]) -> ValueOrigin | None:
    """Return the least trustworthy of several origins, None without any."""
    order = list(ValueOrigin)
    return max(origins, key=order.index, default=None)
