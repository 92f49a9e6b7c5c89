"""Every event of the traces as the stock Inspector lists it: one row per event, complete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.files.session import Session
from inspector.graph.node_text import short_list
from inspector.join.link_codes import LinkCodes, link_codes, shown_texts, texts_among
from inspector.join.links import NO_LINK, BlockLinks, Link
from inspector.profile.attribution import clock_ns
from inspector.profile.block_names import block_labels
from inspector.profile.methods import analyse_profile
from inspector.profile.rows import BlockSamples
from inspector.tables.event_keys import EventKeys
from inspector.tables.operators import (
    OperatorsTable,
    RunSamples,
    backend_label,
    join_column,
    join_word,
    time_columns,
)
from inspector.tables.selection import Units
from inspector.tables.table import (
    Categories,
    Column,
    Table,
    bounded_share,
    number_column,
    share_column,
    share_of_ticks,
    text_column,
)
from inspector.trace.event_kinds import DELEGATE_CALL, inside_delegates
from inspector.trace.group_keys import pack, ranks
from inspector.trace.timing import is_time, scale_factor
from inspector.units import NS_PER_MS, Quantity

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_POINTS = ("avg", "p50", "p10", "p90", "min", "max")


class _Cells:
    """Columns of the events of one block."""

    def __init__(self, session: Session, source: BlockSamples, label: str) -> None:
        self.source = source
        self.block = source.block
        self.label = label
        self.found: LinkCodes = link_codes(session, source.block)
        layout = self.block.layout
        self.inner = inside_delegates(self.block)
        inside = layout.chain >= 0
        self.steps = np.where(inside, layout.instruction, -1)
        kept = [is_time(source.source, link.backend) for link in self.found.links]
        timed = np.array(kept, np.bool_)[self.found.codes]
        self.timed = np.where(self.inner, timed, is_time(source.source))

    def names(self) -> tuple[Ints, list[str | None]]:
        """Return the names of events: the id inside a delegate, else the logged name."""
        shown = (shown_texts(self.block), self.block.layout.delegate_int)
        return _coded(pack(*shown), self.block.event_name)

    def identifiers(self) -> tuple[Ints, list[str | None]]:
        """Return the ids backends gave, None outside of delegates."""
        layout = self.block.layout
        return _coded(pack(layout.delegate_int, layout.delegate_str), self._identifier)

    def _identifier(self, event: int) -> str | None:
        identifier = self.block.delegate_id(event)
        return None if identifier is None else str(identifier)

    def backends(self) -> tuple[Ints, list[str | None]]:
        """Return the backends in short."""
        call = texts_among(self.block, shown_texts(self.block), (DELEGATE_CALL,))
        delegated = self.inner | call

        def words(event: int) -> str:
            link = self.found.links[int(self.found.codes[event])]
            return backend_label(link.backend, inside=bool(delegated[event]))

        return _coded(pack(self.found.codes, delegated), words)

    def ticks(self) -> Floats:
        """Return the step of the clock of each event, in nanoseconds."""
        tick = scale_factor("ns", self.source.source) if is_time(self.source.source) else 1.0
        ticks = np.full(len(self.block), tick)
        names = [link.backend for link in self.found.links]
        for backend in set(names):
            of_backend = np.array([name == backend for name in names], np.bool_)
            own = self.inner & of_backend[self.found.codes]
            ticks[own] = clock_ns(np.round(self.source.values[:, own] * NS_PER_MS), backend, tick)
        return ticks

    def of_links(self, texts: Sequence[str]) -> tuple[Ints, Sequence[str]]:
        """Return a column of a string for each link."""
        return self.found.codes, texts


def _coded(keys: Ints, text: Callable[[int], str | None]) -> tuple[Ints, list[str | None]]:
    """Return a column of strings, computed once for events of the same key."""
    codes, first = ranks(keys)
    return codes, [text(event) for event in first.tolist()]


def _node_labels(links: BlockLinks, link: Link) -> tuple[str, str]:
    if link is NO_LINK or not (link.handles or link.node):
        return "", ""
    nodes = links.recorded(link)
    targets = dict.fromkeys(node.target for node in nodes)
    modules = dict.fromkeys(node.module_path for node in nodes if node.module_path)
    return ", ".join(targets), ", ".join(modules)


def all_events(session: Session, method: str, units: Units) -> OperatorsTable:
    """Return one row per event of every trace; a selected row is one of the method shown."""
    profile = analyse_profile(session)
    sources = profile.rows.sources
    labels = block_labels([source.block for source in sources], session.timed_dumps)
    cells = [_Cells(session, source, label) for source, label in zip(sources, labels, strict=True)]
    words = [[_node_labels(one.source.links, link) for link in one.found.links] for one in cells]
    timed = _joined([one.timed for one in cells], np.bool_)
    steps = _joined([one.steps for one in cells], np.int64)
    rows = len(profile.rows)
    points = [np.where(timed, profile.rows.column(name) * NS_PER_MS, np.nan) for name in _POINTS]
    times = time_columns(points, units, _joined([one.ticks() for one in cells], np.float64))
    ticks = ()
    if not timed.all():
        raw = np.where(timed, np.nan, profile.rows.column("avg"))
        ticks = (number_column("mean of ticks", raw, Quantity.TICKS, missing="—"),)

    def coded(texts: Callable[[int], Sequence[str]]) -> Categories:
        return Categories.of(one.of_links(texts(number)) for number, one in enumerate(cells))

    joins = [[join_word(link) for link in one.found.links] for one in cells]
    columns = (
        text_column("event", Categories.of(one.names() for one in cells), width=22),
        _listed("operators", coded(lambda n: [w for w, _ in words[n]]), 22),
        _listed("module", coded(lambda n: [w for _, w in words[n]]), 16),
        text_column("identifier", Categories.of(one.identifiers() for one in cells), missing=""),
        times[0],
        _share_of_method(cells, points[0], np.where(timed, profile.rows.column("share"), np.nan)),
        *times[1:4],
        join_column(coded(lambda n: joins[n])),
        *times[4:],
        *ticks,
        number_column(
            "instruction", np.where(steps == -1, np.nan, steps), Quantity.COUNT, missing="—"
        ),
        text_column("block", Categories.of((one.found.codes * 0, (one.label,)) for one in cells)),
        text_column("backend", Categories.of(one.backends() for one in cells)),
    )

    def samples_of(row: int) -> RunSamples | None:
        found = profile.rows[row].raw_ms
        return None if found is None else (found * NS_PER_MS, profile.rows.place(row)[0].steady)

    runs = max((int(source.steady.sum()) for source in profile.rows.sources), default=0)
    keys = _keys(method, cells, steps)
    table = Table(columns, rows, keys, None, "events")
    return OperatorsTable(table, runs, samples_of, keys.by_event, {}, {})


def _listed(title: str, lists: Categories, width: int) -> Column:
    """Return a column of lists, cut as text, for an event may stand for a whole delegate."""

    def text(value: object) -> str:
        return "" if value is None else short_list(str(value))

    return replace(text_column(title, lists, missing="", width=width), text=text)


def _share_of_method(cells: Sequence[_Cells], means: Floats, shares: Floats) -> Column:
    ends = np.cumsum([len(one.block) for one in cells])
    pieces = (np.split(means, ends)[:-1], np.split(shares, ends)[:-1])
    parts = [share_of_ticks(one.ticks(), *of) for one, *of in zip(cells, *pieces, strict=True)]
    return bounded_share(share_column("share of method", shares), _joined(parts, np.float64))


def _joined(parts: Sequence[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, kind), *parts])


def _keys(method: str, cells: Sequence[_Cells], steps: Ints) -> EventKeys:
    links = [link for one in cells for link in one.found.links]
    first = np.cumsum([0, *(len(one.found.links) for one in cells)])
    codes = [one.found.codes + first[number] for number, one in enumerate(cells)]
    return EventKeys(
        method,
        np.arange(len(steps)),
        steps,
        _joined(codes, np.int64),
        tuple(link.delegate for link in links),
        {},
    )


def events(session: Session, method: str, units: Units) -> Table:
    """Return one row per event of the trace."""
    return all_events(session, method, units).table
