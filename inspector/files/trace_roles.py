"""Which traces of a session show its times, and which only the values that runs logged.

Logging a value takes longer than most operators do, so that the times of a run that logged values
are not the program's. Such a trace lends its times only where no other one has any.
"""

from __future__ import annotations

import numpy as np

from schema.etdump import ETDump, EventKind
from schema.objects.identity_cache import identity_cache

_CALLS = "OPERATOR_CALL", "DELEGATE_CALL"


@identity_cache
def logs_values(dump: ETDump) -> bool:
    """Return whether runs of a trace logged values."""
    return any(bool(np.any(run.events.kind == EventKind.DEBUG)) for run in dump.run_data)


@identity_cache
def timed_traces(dumps: tuple[ETDump, ...]) -> tuple[ETDump, ...]:
    """Return the traces whose times count.

    These are the ones without values, and of the others those with runs that no other trace has.
    """
    clean = [dump for dump in dumps if not logs_values(dump)]
    if len(clean) in (0, len(dumps)):
        return dumps
    known = frozenset[bytes]().union(*map(_call_sequences, clean))
    return tuple(
        dump for dump in dumps if not logs_values(dump) or not _call_sequences(dump) <= known
    )


def value_traces(dumps: tuple[ETDump, ...]) -> tuple[ETDump, ...]:
    """Return the traces with logged values; all of them where none has any."""
    return tuple(filter(logs_values, dumps)) or dumps


@identity_cache
def in_order(dumps: tuple[ETDump, ...]) -> tuple[ETDump, ...]:
    """Return traces whose times count before the others, each in the order given."""
    timed = timed_traces(dumps)
    return (*timed, *(dump for dump in dumps if not any(dump is one for one in timed)))


@identity_cache
def _call_sequences(dump: ETDump) -> frozenset[bytes]:
    """Return the different sequences of calls in the runs: their chains and instructions.

    The names of kernels are left out: a runtime need not time them.
    """
    found: set[bytes] = set()
    for run in dump.run_data:
        events = run.events
        names = [at for at, text in enumerate(events.strings) if text in _CALLS]
        rows = np.flatnonzero((events.kind == EventKind.PROFILE) & np.isin(events.name, names))
        places = np.stack([events.chain_index[rows], events.instruction_id[rows]])
        if len(rows):
            found.add(places.astype(np.int64).tobytes())
    return frozenset(found)
