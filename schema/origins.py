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
_MARKS = {
    EMULATED: ValueOrigin.EMULATED,
    INTERPRETED: ValueOrigin.INTERPRETED,
    b"host emulation": ValueOrigin.INTERPRETED,  # torch's kernels on XNNPACK payloads
    b"measured on real kernels": ValueOrigin.MEASURED,
    b"measured on real kernels, node by node": ValueOrigin.MEASURED,
}


def origin_of_mark(metadata: bytes) -> ValueOrigin | None:
    """Return the origin that an event's metadata states, None for other metadata."""
    return _MARKS.get(metadata)


def weakest(origins: Iterable[ValueOrigin]) -> ValueOrigin | None:
    """Return the least trustworthy of several origins, None without any."""
    order = list(ValueOrigin)
    return max(origins, key=order.index, default=None)
