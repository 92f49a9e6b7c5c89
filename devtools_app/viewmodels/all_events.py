"""Every event of the traces as the stock Inspector lists it: one row an event, nothing left out."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from devtools_app.state import Units
from devtools_app.viewmodels.block_names import block_labels
from devtools_app.viewmodels.operators import (
    JOIN_WORDS,
    OperatorsTable,
    backend_words,
    event_selection,
    join_column,
    time_columns,
)
from devtools_app.viewmodels.table import Table, number_column, share_column, text_column
from devtools_app.viewmodels.units import Quantity
from inspector.links import NO_LINK, Link
from inspector.profile import analyse_profile
from inspector.profile_rows import BlockSamples
from inspector.session import Session

Floats = NDArray[np.float64]
_MS = 1e6  # nanoseconds
_POINTS = ("p50", "p10", "p90", "min", "max", "avg")


class _Cells:
    """The text cells of all rows, collected block by block."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.operators: list[str] = []
        self.modules: list[str] = []
        self.identifiers: list[str | None] = []
        self.backends: list[str] = []
        self.blocks: list[str] = []
        self.steps: list[int | None] = []
        self.links: list[Link] = []
        self.timed: list[bool] = []

    def take(self, source: BlockSamples, label: str) -> None:
        """Add the events of a block."""
        block = source.block
        for event in range(len(block)):
            link = source.links.link(event)
            identifier = block.delegate_id(event)
            inside = block.layout.chain[event] >= 0
            operators, modules = _node_words(source, link)
            name = block.event_name(event)
            delegated = identifier is not None or name == "DELEGATE_CALL"
            self.names.append(name)
            self.operators.append(operators)
            self.modules.append(modules)
            self.identifiers.append(None if identifier is None else str(identifier))
            self.backends.append(backend_words(link.backend, inside=delegated))
            self.blocks.append(label)
            self.steps.append(block.instruction(event) if inside else None)
            self.links.append(link)
            self.timed.append(source.is_time(event))


def _node_words(source: BlockSamples, link: Link) -> tuple[str, str]:
    if link is NO_LINK or not (link.handles or link.node):
        return "", ""
    nodes = [node for handle in link.handles for node in source.links.nodes.get(handle, ())]
    if not nodes and link.node:
        nodes = list(source.links.named(link.node))
    targets = dict.fromkeys(node.target for node in nodes)
    modules = dict.fromkeys(node.module_path for node in nodes if node.module_path)
    return ", ".join(targets), ", ".join(modules)


def all_events(session: Session, method: str, units: Units) -> OperatorsTable:
    """Return one row an event of every trace; a selected row is one of the method shown."""
    profile = analyse_profile(session)
    cells = _Cells()
    sources = profile.rows.sources
    labels = block_labels([source.block for source in sources])
    for source, label in zip(sources, labels, strict=True):
        cells.take(source, label)
    timed = np.array(cells.timed, np.bool_)
    rows = len(cells.names)
    points = [np.where(timed, profile.rows.column(name) * _MS, np.nan) for name in _POINTS]
    times = time_columns(points, units)
    ticks = ()
    if not timed.all():
        raw = np.where(timed, np.nan, _median_ticks(profile.rows.sources))
        ticks = (number_column("p50 of ticks", raw, Quantity.TICKS, missing="—"),)
    joins = [JOIN_WORDS[link.grade.value] for link in cells.links]
    columns = (
        text_column("event", cells.names, width=22),
        text_column("operators", cells.operators, missing="", width=22),
        text_column("module", cells.modules, missing="", width=16),
        text_column("identifier", cells.identifiers, missing=""),
        *times[:3],
        share_column("share of method", np.where(timed, profile.rows.column("share"), np.nan)),
        join_column(joins),
        *times[3:],
        *ticks,
        number_column("instruction", cells.steps, Quantity.COUNT, missing="—"),
        text_column("block", cells.blocks),
        text_column("backend", cells.backends),
    )
    keys: list[Hashable] = [
        event_selection(method, row, step, link.delegate)
        for row, (step, link) in enumerate(zip(cells.steps, cells.links, strict=True))
    ]

    def samples_of(row: int) -> Floats | None:
        found = profile.rows[row].raw_ms
        return None if found is None else found * _MS

    runs = max((len(source.block.runs) for source in profile.rows.sources), default=0)
    table = Table(columns, rows, keys, None, "events")
    return OperatorsTable(table, runs, samples_of, {row: row for row in range(rows)}, {}, {})


def _median_ticks(sources: tuple[BlockSamples, ...]) -> Floats:
    parts = [np.percentile(source.block.elapsed, 50, axis=0) for source in sources]
    return np.concatenate(parts) if parts else np.zeros(0)
