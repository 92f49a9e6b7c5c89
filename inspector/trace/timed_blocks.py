"""The blocks of a session's traces whose times count."""

from __future__ import annotations

from inspector.files.trace_roles import is_repeated
from inspector.trace.blocks import Trace, trace_blocks
from schema.etdump import ETDump
from schema.objects.identity_cache import identity_cache


@identity_cache
def timed_blocks(dumps: tuple[ETDump, ...]) -> Trace:
    """Return the blocks of traces without the runs of methods that a trace of more methods has.

    Args:
        dumps: traces whose times count, as a session gives them
    """
    whole = trace_blocks(dumps)
    if len(dumps) < 2:
        return whole
    kept = (
        block
        for block in whole.blocks
        if not is_repeated(dumps, block.dump, block.runs[0], block.ran)
    )
    return Trace(tuple(kept), whole.issues)
