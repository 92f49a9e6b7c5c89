"""Runs of a trace grouped into blocks: one block for each pattern of events, one sample per run.

The grouping, the order of events and the samples are those of the stock Inspector, so that its
times can be compared with ours row by row. In addition, iterations of a loop are counted and
summed,
values may differ from run to run, and everything is numpy columns (a million events in a second).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inspector.files.run_report import ran_method
from inspector.trace.group_keys import pack, ranks
from schema.errors import Issue, Severity
from schema.etdump import DebugValue, ETDump, EventKind, EventTable
from schema.objects.identity_cache import identity_cache

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Times = NDArray[np.uint64]
_WRAP = 2**32 - 1  # a platform whose end lies before its start counts in 32 bits


@dataclass(frozen=True, slots=True)
class Layout:
    """The rows of each event of a run; runs with equal columns share a layout.

    Shapes: first, last, name, instruction, chain, delegate_int, delegate_str, group,
        occurrences int64[events]; rows int64[profile rows]; row_event int64[profile rows];
        debug_rows int64[debug rows]; debug_start int64[groups + 1]; outputs int64[outputs]

    Attributes:
        first: row of the event's first occurrence, -1 without a profile event
        last: row of its last occurrence, -1 without a profile event
        name: index into strings, -1 absent
        group: index of the instruction the event belongs to; debug values belong to groups
        occurrences: number in one run (loop iterations)
        rows: all profile rows
        row_event: the event each of them belongs to
        debug_rows: debug rows, group by group
        debug_start: start of each group in debug_rows
        outputs: rows of program outputs
    """

    first: Ints
    last: Ints
    name: Ints
    instruction: Ints
    chain: Ints
    delegate_int: Ints
    delegate_str: Ints
    group: Ints
    occurrences: Ints
    rows: Ints
    row_event: Ints
    debug_rows: Ints
    debug_start: Ints
    outputs: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Runs with one signature.

    Shapes: start, end, elapsed, total float64 or uint64[runs, events]; NaN without a profile event

    Units: ticks of the trace

    Attributes:
        name: ``Default`` for loading, ``Execute`` for runs, or the name in the trace
        bundled_input_index: test case, -1 if none
        dump: index of the trace in the session
        runs: event tables of the runs, in order
        layout: rows of each event, in the first run
        layouts: of every run; loop iterations may differ from run to run
        start: start of the last occurrence
        end: its end
        elapsed: its duration, as the stock Inspector reports it
        total: duration over all occurrences in the run
        strings: strings that layout indices refer to
        ran: method that the report beside the trace names, empty if none does
    """

    name: str
    bundled_input_index: int
    dump: int
    runs: tuple[EventTable, ...]
    layout: Layout
    layouts: tuple[Layout, ...]
    start: Times
    end: Times
    elapsed: Floats
    total: Floats
    strings: tuple[str, ...]
    ran: str = ""

    def __len__(self) -> int:
        return len(self.layout.name)

    def event_name(self, event: int) -> str:
        """Return the displayed name: the delegate's id for its events, else the logged name."""
        identifier = self.delegate_id(event)
        if identifier is not None:
            return str(identifier)
        name = int(self.layout.name[event])
        return self.strings[name] if name >= 0 else ""

    def delegate_id(self, event: int) -> int | str | None:
        """Return the id a backend gave the event, None outside of delegates."""
        number = int(self.layout.delegate_int[event])
        if number != -1:
            return number
        text = int(self.layout.delegate_str[event])
        return (self.strings[text] or None) if text >= 0 else None

    def instruction(self, event: int) -> int | None:
        """Return the instruction id as logged, None if unset."""
        number = int(self.layout.instruction[event])
        return None if number == -1 else number

    def debug_values(self, event: int, run: int) -> tuple[DebugValue | None, ...]:
        """Return the values logged for the event's instruction in one run, in order."""
        layout, table = self.layouts[run], self.runs[run]
        group = int(layout.group[event])
        start, stop = layout.debug_start[group : group + 2]
        return tuple(_value(table, int(row)) for row in layout.debug_rows[start:stop])

    def outputs(self, run: int) -> tuple[DebugValue | None, ...]:
        """Return the program outputs logged in one run."""
        return tuple(_value(self.runs[run], int(row)) for row in self.layouts[run].outputs)

    def metadata(self, event: int, run: int) -> bytes:
        """Return the bytes a backend attached to the event, empty if there are none."""
        row = int(self.layouts[run].last[event])
        blob = int(self.runs[run].metadata[row]) if row >= 0 else -1
        return bytes(self.runs[run].blobs[blob]) if blob >= 0 else b""


def _value(table: EventTable, row: int) -> DebugValue | None:
    index = int(table.value[row])
    return table.values[index] if index >= 0 else None


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """All blocks of the traces of a session."""

    blocks: tuple[Block, ...]
    issues: tuple[Issue, ...]


@identity_cache
def trace_blocks(dumps: tuple[ETDump, ...]) -> Trace:
    """Return the blocks of several traces, each trace's blocks in order of first appearance."""
    blocks: list[Block] = []
    issues: list[Issue] = []
    for number, dump in enumerate(dumps):
        found = _dump_blocks(dump, number)
        blocks += found
        issues += [issue for block in found for issue in _odd_times(block, dump.file)]
    return Trace(tuple(blocks), tuple(issues))


def _dump_blocks(dump: ETDump, number: int) -> list[Block]:
    layouts: dict[bytes, Layout] = {}
    groups: dict[tuple[str, int, bytes], tuple[Layout, list[tuple[EventTable, Layout]]]] = {}
    signatures: dict[int, bytes] = {}
    # One store for all runs, so that equal indices are equal strings.
    whole, start = dump.events, 0
    for run in dump.run_data:
        first, start = start, start + len(run.events)
        if first == start:
            continue
        table = EventTable(whole.store, whole.start + first, whole.start + start)
        key = _column_bytes(table)
        if key not in layouts:
            layouts[key] = _layout(table)
            signatures[id(layouts[key])] = _signature(layouts[key])
        layout = layouts[key]
        signature = (run.name or "", run.bundled_input_index, signatures[id(layout)])
        groups.setdefault(signature, (layout, []))[1].append((table, layout))
    return [
        replace(_block(name, index, number, layout, members), ran=ran_method(dump, index))
        for (name, index, _), (layout, members) in groups.items()
    ]


def _column_bytes(table: EventTable) -> bytes:
    columns = (table.kind, table.name, table.chain_index, table.instruction_id)
    delegates = (table.delegate_id_int, table.delegate_id_str, _output_flags(table))
    return b"".join(np.ascontiguousarray(column).tobytes() for column in (*columns, *delegates))


def _output_flags(table: EventTable) -> NDArray[np.bool_]:
    flags = np.zeros(len(table), dtype=np.bool_)
    rows = np.flatnonzero((table.kind == EventKind.DEBUG) & (table.value >= 0))
    flags[rows] = table.values.columns.output[table.value[rows]] == 1
    return flags


def _layout(table: EventTable) -> Layout:
    ids = (table.delegate_id_int, _blank_as_absent(table))
    # "No chain" is the largest unsigned integer in debug events: never that of a profile event.
    unset = (table.kind == EventKind.DEBUG) & (table.chain_index < 0)
    chain = np.where(unset, table.chain_index.astype(np.int64) - 1, table.chain_index)
    group, group_first = ranks(pack(table.instruction_id, chain, *ids))
    is_output = _output_flags(table)
    profile = np.flatnonzero(table.kind == EventKind.PROFILE)
    debug = np.flatnonzero((table.kind == EventKind.DEBUG) & ~is_output)
    debug = debug[np.argsort(group[debug], kind="stable")].astype(np.int64)
    debug_name = _debug_names(table, group, debug, len(group_first))
    # Insertion order of the stock tool: instruction by instruction, then as logged.
    profile = profile[np.argsort(group[profile], kind="stable")].astype(np.int64)
    names = _blank_name_as_absent(table)
    keys = pack(
        names[profile],
        table.instruction_id[profile],
        *(column[profile] for column in ids),
        debug_name[group[profile]],
    )
    event, first = ranks(keys)
    bare = _debug_only_groups(group, profile, debug, len(group_first))
    return _assemble(table, ids, group, (profile, event, first), (debug, bare), is_output)


def _blank_as_absent(table: EventTable) -> NDArray[np.generic]:
    return _without_blank(table.delegate_id_str, table.strings)


def _blank_name_as_absent(table: EventTable) -> NDArray[np.generic]:
    return _without_blank(table.name, table.strings)


def _without_blank(column: NDArray[np.generic], strings: tuple[str, ...]) -> NDArray[np.generic]:
    if "" not in strings:
        return column
    return np.where(column == strings.index(""), -1, column)


def _debug_names(table: EventTable, group: Ints, debug: Ints, groups: int) -> Ints:
    """Return for each group the name of its first debug event, -2 if it has none."""
    names = np.full(groups, -2, dtype=np.int64)
    reverse = debug[::-1]
    names[group[reverse]] = _blank_name_as_absent(table)[reverse]
    return names


def _debug_only_groups(group: Ints, profile: Ints, debug: Ints, groups: int) -> Ints:
    timed = np.zeros(groups, dtype=np.bool_)
    timed[group[profile]] = True
    logged = np.zeros(groups, dtype=np.bool_)
    logged[group[debug]] = True
    return np.flatnonzero(logged & ~timed).astype(np.int64)


def _assemble(
    table: EventTable,
    ids: tuple[NDArray[np.generic], ...],
    group: Ints,
    timed: tuple[Ints, Ints, Ints],
    logged: tuple[Ints, Ints],
    is_output: NDArray[np.bool_],
) -> Layout:
    profile, event, first = timed
    debug, bare = logged
    last = np.zeros(len(first), dtype=np.int64)
    last[event] = profile
    shown = profile[first]  # the row that names the event
    debug_start = np.searchsorted(group[debug], np.arange(int(group.max(initial=-1)) + 2))
    bare_rows = debug[debug_start[bare]] if len(bare) else np.zeros(0, dtype=np.int64)
    rows = np.concatenate([shown, bare_rows]).astype(np.int64)
    # Events without a time are ordered at their instruction.
    order = np.lexsort((np.arange(len(rows)), group[rows]))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    none = np.full(len(bare_rows), -1, dtype=np.int64)
    return Layout(
        first=np.concatenate([shown, none])[order],
        last=np.concatenate([last, none])[order],
        name=_blank_name_as_absent(table)[rows[order]].astype(np.int64),
        instruction=table.instruction_id[rows[order]].astype(np.int64),
        chain=table.chain_index[rows[order]].astype(np.int64),
        delegate_int=ids[0][rows[order]].astype(np.int64),
        delegate_str=ids[1][rows[order]].astype(np.int64),
        group=group[rows[order]],
        occurrences=np.concatenate([np.bincount(event, minlength=len(first)), none * 0])[order],
        rows=profile,
        row_event=rank[event],
        debug_rows=debug,
        debug_start=debug_start.astype(np.int64),
        outputs=np.flatnonzero(is_output).astype(np.int64),
    )


def _signature(layout: Layout) -> bytes:
    logged = np.diff(layout.debug_start) > 0
    columns = (layout.name, layout.instruction, layout.delegate_int, layout.delegate_str)
    shape = logged[layout.group].astype(np.int64)
    timed = (layout.first >= 0).astype(np.int64)
    return b"".join(column.tobytes() for column in (*columns, shape, timed))


def _block(
    name: str,
    index: int,
    number: int,
    layout: Layout,
    members: list[tuple[EventTable, Layout]],
) -> Block:
    count = len(layout.name)
    shape = (len(members), count)
    times = _as_stored(members)
    if times is None:
        times = np.zeros(shape, dtype=np.uint64), np.zeros(shape, dtype=np.uint64)
        for run, (table, own) in enumerate(members):
            timed = own.last >= 0
            times[0][run, timed] = table.start_time[own.last[timed]]
            times[1][run, timed] = table.end_time[own.last[timed]]
    start, end = times
    once = all(own.occurrences.max(initial=0) <= 1 for _, own in members)
    elapsed = np.full(shape, np.nan)
    total = elapsed if once else np.full(shape, np.nan)
    for run, (table, own) in enumerate(members):
        timed = own.last >= 0
        duration = _elapsed(table.start_time, table.end_time)
        elapsed[run, timed] = duration[own.last[timed]]
        if not once:
            sums = np.bincount(own.row_event, duration[own.rows], minlength=count)
            total[run, timed] = sums[timed]
    for array in (start, end, elapsed, total):
        array.setflags(write=False)
    tables, layouts = tuple(table for table, _ in members), tuple(own for _, own in members)
    strings = tables[0].strings
    return Block(name, index, number, tables, layout, layouts, start, end, elapsed, total, strings)


def _as_stored(members: list[tuple[EventTable, Layout]]) -> tuple[Times, Times] | None:
    """Return starts and ends as the trace has them, without a copy, if its events are the rows.

    They are where runs follow one another and each consists of one event per row, in order.
    """
    table, own = members[0]
    count, store = len(own.last), table.store
    order = np.arange(count)
    for run, (one, layout) in enumerate(members):
        if one.store is not store or one.start != table.start + run * count:
            return None
        if len(one) != count or (layout is not own and not np.array_equal(layout.last, order)):
            return None
    if not np.array_equal(own.last, order):
        return None
    whole = slice(table.start, table.start + len(members) * count)
    shape = (len(members), count)
    return np.reshape(store.start_time[whole], shape), np.reshape(store.end_time[whole], shape)


def _elapsed(start: Times, end: Times) -> Floats:
    """Return durations in ticks; NaN if the end precedes the start beyond 32 bits."""
    wrapped = start > end
    plain = (end - start).astype(np.float64)
    if not wrapped.any():
        return plain
    around = float(_WRAP) - start.astype(np.float64) + end.astype(np.float64)
    possible = (start <= _WRAP) & (end <= _WRAP)
    return np.where(wrapped, np.where(possible, around, np.nan), plain)


def _odd_times(block: Block, file: str) -> list[Issue]:
    timed = block.layout.last >= 0
    bad = np.isnan(block.elapsed[:, timed]).any(axis=0)
    if not bad.any():
        return []
    event = int(np.flatnonzero(timed)[np.argmax(bad)])
    message = f"{block.event_name(event)} ends before it starts and is too late for a 32-bit clock"
    return [Issue(Severity.WARNING, file, message)]
