"""Which debug buffer has the values of which trace: offsets of one mean nothing in another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath

from schema.etdump import ETDump
from schema.etdump.debug_buffer import DebugBuffer

BUFFER_SUFFIX = ".debug"


def buffer_of(
    dump: ETDump, dumps: Sequence[ETDump], buffers: Sequence[DebugBuffer]
) -> DebugBuffer | None:
    """Return the debug buffer of a trace, None where it is not among these or not known.

    Args:
        dump: the trace
        dumps: traces with values, it among them
        buffers: all debug buffers
    """
    if len(dumps) <= 1 and len(buffers) <= 1:
        return next(iter(buffers), None)
    own = [one for one in buffers if _folder(one) == _folder(dump)]
    peers = [one for one in dumps if _folder(one) == _folder(dump)]
    if not own:
        folders = {_folder(one) for one in dumps}
        own = [one for one in buffers if _folder(one) not in folders]
        kept = {_folder(one) for one in buffers}
        peers = [one for one in dumps if _folder(one) not in kept]
    if len(own) == len(peers) == 1:
        return own[0]
    named = [one for one in own if PurePath(one.file).stem == PurePath(dump.file).stem]
    return named[0] if len(named) == 1 else None


def expected_buffer(dump: ETDump) -> str:
    """Return the path at which a run writes the debug buffer of a trace."""
    return str(Path(dump.file).with_suffix(BUFFER_SUFFIX))


def _folder(one: ETDump | DebugBuffer) -> Path:
    return Path(one.file).absolute().parent
