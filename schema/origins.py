"""The origin of times and values: one list for runs, traces, tables and the window."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Origin(str, Enum):
    """The origin of a time or a value, the most trustworthy first."""

    MEASURED = "measured"
    DEVICE = "device"
    SYNTHESISED = "synthesised"
    INTERPRETED = "interpreted"
    ESTIMATE = "estimate"
    EMULATED = "emulated"

    @property
    def words(self) -> str:
        """Return the meaning, for help and hover texts."""
        return _WORDS[self]


_WORDS = {
    Origin.MEASURED: "measured on real kernels on this machine",
    Origin.DEVICE: "measured on a device",
    Origin.SYNTHESISED: "measured durations, laid one after the other",
    Origin.INTERPRETED: "interpreted: torch ran the payload",
    Origin.ESTIMATE: "an estimate of the vendor's tool",
    Origin.EMULATED: "emulated by the recorded graph: not what the payload computes",
}
# Metadata of events inside of delegates, as our runtime writes it.
EMULATED = b"emulated"
INTERPRETED = b"interpreted"
_MARKS = {
    EMULATED: Origin.EMULATED,
    INTERPRETED: Origin.INTERPRETED,
    b"host emulation": Origin.INTERPRETED,  # torch's kernels on XNNPACK payloads
    b"measured on real kernels": Origin.MEASURED,
    b"measured on real kernels, node by node": Origin.MEASURED,
}


def origin_of_mark(metadata: bytes) -> Origin | None:
    """Return the origin that an event's metadata states, None for other metadata."""
    return _MARKS.get(metadata)


def weakest(origins: Iterable[Origin]) -> Origin | None:
    """Return the least trustworthy of several origins, None without any."""
    order = list(Origin)
    return max(origins, key=order.index, default=None)
