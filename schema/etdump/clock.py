"""The clock of a trace, which its writer may name.

The format has no field for it. Our runtime adds an allocator of this name to the first block: no
event refers to it, so other readers ignore it.
"""

from __future__ import annotations

from schema.etdump.model import ETDump

_MARKER = "etscope:clock="
NANOSECONDS = "ns"


def clock_marker(unit: str = NANOSECONDS) -> str:
    """Return the name of the allocator that names the unit of the ticks."""
    return f"{_MARKER}{unit}"


def marked_clock(dump: ETDump) -> str:
    """Return the unit of the ticks that a trace names, empty if it names none."""
    names = dump.run_data[0].allocators if dump.run_data else ()
    return next((name[len(_MARKER) :] for name in names if name.startswith(_MARKER)), "")
