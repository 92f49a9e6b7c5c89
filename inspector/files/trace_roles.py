"""Which traces of a session show its times, and which only the values that runs logged.

Logging a value takes longer than most operators do, so that the times of a run that logged values
are not the program's. Such a trace lends its times only where no other one has any. Of several
traces of one method only one counts: the mean of runs that were not measured together would be the
time of nothing. Of a trace that shares some of its methods with another one, the rest counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from inspector.files.run_report import ran_method
from schema.etdump import ETDump, EventKind, EventTable
from schema.objects.identity_cache import identity_cache

Dumps: TypeAlias = tuple[ETDump, ...]
Numbers: TypeAlias = NDArray[np.int64]
TIMES, VALUES, BOTH, REPEATED = "times", "values", "times and values", "another run, not shown"
_CALLS = "OPERATOR_CALL", "DELEGATE_CALL"
_JUMP = "JF_CALL"


@dataclass(frozen=True, slots=True)
class _Run:
    """What is known of a run without its program.

    Attributes:
        method: that the report of the run names, empty without one
        calls: digest of the sequence of calls: chains, instructions and kinds
        kernels: digest of the kernels of operators; empty if none is timed
        inside: digest of the kernels inside of delegates; empty if none is timed
        jumps: whether another run may take another way
        logged: whether the trace has values; they may be of an engine with kernels of its own
    """

    method: str
    calls: bytes
    kernels: bytes
    inside: bytes
    jumps: bool
    logged: bool

    def may_be(self, other: _Run) -> bool:
        """Return whether two runs are of one method, as far as that is known."""
        named = bool(self.method and other.method)
        if named and (self.method != other.method or self.jumps or other.jumps):
            return self.method == other.method
        pairs = [(self.kernels, other.kernels)]
        if not named:  # other kernels of one delegate may come from another runtime
            pairs.append((self.inside, other.inside))
        if self.logged != other.logged:
            pairs = []
        return self.calls == other.calls and all(one == two for one, two in pairs if one and two)


@identity_cache
def logs_values(dump: ETDump) -> bool:
    """Return whether runs of a trace logged values."""
    return any(bool(np.any(run.events.kind == EventKind.DEBUG)) for run in dump.run_data)


@identity_cache
def timed_traces(dumps: Dumps) -> Dumps:
    """Return the traces whose times count, in the order given.

    Those without values come before the others, those of more methods before those of fewer, and
    a trace whose methods all have one already does not count.
    """
    clean = [dump for dump in dumps if not logs_values(dump)]
    logged = [dump for dump in dumps if logs_values(dump)]
    return _without_repeated(dumps, (*_widest(clean), *_widest(logged)))


@identity_cache
def value_traces(dumps: Dumps) -> Dumps:
    """Return the traces whose logged values are shown, one a method; all where none has any."""
    logged = tuple(filter(logs_values, dumps))
    return _without_repeated(dumps, _widest(logged)) if logged else dumps


@identity_cache
def in_order(dumps: Dumps) -> Dumps:
    """Return traces whose times count before the others, each in the order given."""
    timed = timed_traces(dumps)
    return (*timed, *(dump for dump in dumps if not _has(timed, dump)))


def trace_role(dumps: Dumps, dump: ETDump) -> str:
    """Return what a trace of a session is shown for, in words."""
    is_timed = _has(timed_traces(dumps), dump)
    if logs_values(dump) and _has(value_traces(dumps), dump):
        return BOTH if is_timed else VALUES
    return TIMES if is_timed else REPEATED


def is_repeated(dumps: Dumps, number: int, events: EventTable, ran: str) -> bool:
    """Return whether a run of a trace is of a method that an earlier one of several shows.

    Args:
        dumps: the traces whose times count
        number: of the trace among them
        events: of the run
        ran: its method as the report of the trace names it, empty without one
    """
    run = _run(events, ran, logged=logs_values(dumps[number]))
    return run is not None and run in _repeated(dumps)[number]


def partly_shown(dumps: Dumps, dump: ETDump) -> tuple[ETDump, ...]:
    """Return the traces that show a method which a trace that counts has as well."""
    timed = timed_traces(dumps)
    own = next((number for number, one in enumerate(timed) if one is dump), -1)
    again = _repeated(timed)[own] if own >= 0 else ()
    return tuple(
        other
        for number, other in enumerate(timed)
        if any(run.may_be(one) for run in again for one in _runs(other) - _repeated(timed)[number])
    )


@identity_cache
def _repeated(dumps: Dumps) -> tuple[frozenset[_Run], ...]:
    """Return the runs of each trace whose method is shown by one that comes before it."""
    clean = [dump for dump in dumps if not logs_values(dump)]
    logged = [dump for dump in dumps if logs_values(dump)]
    known: list[_Run] = []
    found: dict[int, frozenset[_Run]] = {}
    for dump in (*_widest(clean), *_widest(logged)):
        again = frozenset(run for run in _runs(dump) if any(map(run.may_be, known)))
        found[id(dump)] = again
        known += _runs(dump) - again
    return tuple(found[id(dump)] for dump in dumps)


def _has(dumps: Iterable[ETDump], dump: ETDump) -> bool:
    return any(dump is one for one in dumps)


def _widest(dumps: Sequence[ETDump]) -> Dumps:
    """Return traces of more methods before those of fewer, else in the order given."""
    if len(dumps) < 2:
        return tuple(dumps)
    return tuple(sorted(dumps, key=lambda dump: -len(_runs(dump))))


def _without_repeated(dumps: Dumps, preferred: Dumps) -> Dumps:
    """Return the traces that are of a method of which no preferred one is, in their order."""
    if len(preferred) < 2:
        return preferred
    known: list[_Run] = []
    kept: list[ETDump] = []
    for dump in preferred:
        new = [run for run in _runs(dump) if not any(map(run.may_be, known))]
        unknown = not _runs(dump) and not (kept and logs_values(dump))
        if new or unknown:
            kept.append(dump)
            known += new
    return tuple(dump for dump in dumps if _has(kept, dump))


@identity_cache
def _runs(dump: ETDump) -> frozenset[_Run]:
    """Return the different runs of a trace, without those that called nothing."""
    named = ((part.events, ran_method(dump, part.bundled_input_index)) for part in dump.run_data)
    logged = logs_values(dump)
    found = (_run(events, ran, logged=logged) for events, ran in named)
    return frozenset(run for run in found if run is not None)


def _run(events: EventTable, method: str, *, logged: bool) -> _Run | None:
    whole, families, call_names = _numbers(events.strings)
    inner = (events.delegate_id_int != -1) | (events.delegate_id_str >= 0)
    timed = events.kind == EventKind.PROFILE
    is_call = np.isin(events.name, call_names)
    placed = timed & ~inner & (events.chain_index >= 0) & (events.instruction_id >= 0)
    calls, kernels = np.flatnonzero(placed & is_call), np.flatnonzero(placed & ~is_call)
    if not len(calls) and not len(kernels):
        return None
    rows = np.flatnonzero(timed & inner)
    text = events.delegate_id_str[rows]
    called = np.where(text >= 0, families[text], events.delegate_id_int[rows])
    kinds, places = whole[events.name], (events.chain_index, events.instruction_id)
    return _Run(
        method,
        _digest(*(column[calls] for column in (*places, kinds))),
        _digest(*(column[kernels] for column in (*places, kinds))),
        _digest(np.sort(called * 31 + events.instruction_id[rows])),  # threads take turns
        _JUMP in events.strings,
        logged,
    )


@lru_cache(maxsize=4)
def _numbers(strings: tuple[str, ...]) -> tuple[Numbers, Numbers, Numbers]:
    """Return numbers that are equal for equal strings of any trace, and the indices of calls.

    The numbers are those of strings, with -1 for none at the end, and those of strings without
    what follows a bracket.
    """
    whole = [*map(hash, strings), -1]
    families = [*(hash(text.partition(")")[0]) for text in strings), -1]
    calls = [at for at, text in enumerate(strings) if text in _CALLS]
    return np.array(whole, np.int64), np.array(families, np.int64), np.array(calls, np.int64)


def _digest(*columns: NDArray[np.generic]) -> bytes:
    if not len(columns[0]):
        return b""
    content = np.stack([column.astype(np.int64) for column in columns])
    return hashlib.blake2b(content.tobytes(), digest_size=16).digest()
