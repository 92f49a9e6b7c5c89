"""Names and nodes of the events of a block, from a record and a program if present.

Without a program this is what the stock tool finds, except that ids are matched exactly and that
scopes of the framework get nothing. A program adds operators to events that carry only kernel
names, and backends to delegate calls that no record describes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inspector.compat.devtools.symbols import (
    ModuleStack,
    Symbol,
    Symbols,
    symbol_of,
    symbols_by_handle,
)
from inspector.files.session import Session
from inspector.join import record_maps
from inspector.join.links import BlockLinks
from inspector.join.record_method import method_of
from inspector.trace.blocks import Block
from inspector.trace.event_kinds import DELEGATE_CALL
from schema.etrecord import DelegateMap, RecordFile
from schema.etrecord.graph.unions import mapping
from schema.etrecord.members import HANDLES
from schema.graph import Graph

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NamedEvent:
    """Facts about an event beyond the trace."""

    debug_handles: int | Sequence[int] | None = None
    num_outputs: int = 1
    backend: str | None = None
    op_types: tuple[str, ...] = ()
    stack_traces: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"])
    module_hierarchy: Mapping[str, ModuleStack] = field(default_factory=dict[str, ModuleStack])


NOTHING = NamedEvent()


class Naming:
    """The names of the events of one block, computed once for each instruction and delegate id.

    Attributes:
        block: the block
        method: method it ran, None when unknown
        links: how its events were matched
    """

    def __init__(
        self, session: Session, block: Block, graph: Graph | None, group_by_module: bool
    ) -> None:
        record = session.record
        self.block = block
        self.method = method_of(block, record, session.program)
        self.links = BlockLinks(session, session.program, self.method, block)
        self.handles: Mapping[int, tuple[int, ...]] = {}
        self.delegates: Mapping[int, DelegateMap] = {}
        self.counts: Mapping[int, int] = {}
        self.lone: frozenset[int] = (
            frozenset()
        )  # the record has a single handle for a kernel, not a list
        if record is not None and self.method is not None:
            self.handles = record_maps.handles(record, self.method)
            self.delegates = record_maps.delegates(record, self.method)
            self.counts = record_maps.output_counts(record, self.method)
            self.lone = _lone_handles(record, self.method)
        shown = graph if graph is not None else self.links.graph
        self.symbols: Symbols = {}
        if shown is not None:
            self.symbols = symbols_by_handle(shown, group_by_module)

    def facts(self, event: int) -> NamedEvent:
        """Return the names of one event."""
        if self._silent:
            return NOTHING
        return self._by_key[int(self._keys[event])]

    def by_event(self) -> tuple[list[NamedEvent], NDArray[np.int64]]:
        """Return all different facts, and which of them is each event's.

        Shapes: int64[events]
        """
        if self._silent:
            return [NOTHING], np.zeros(len(self.block), dtype=np.int64)
        keys = list(self._by_key)  # sorted by np.unique
        return list(self._by_key.values()), np.searchsorted(keys, self._keys)

    def grade(self, event: int) -> str:
        """Return how an event was matched, as a name of inspector.join.links.Grade."""
        return self.links.link(event).grade.value

    @property
    def _silent(self) -> bool:
        return self.method is None or (not self.handles and self.links.plan is None)

    @cached_property
    def _keys(self) -> NDArray[np.int64]:
        """Return a key for each event: instruction, delegate id, and whether it is the call."""
        layout, strings = self.block.layout, self.block.strings
        call = strings.index(DELEGATE_CALL) if DELEGATE_CALL in strings else -2
        return layout.group * 2 + (layout.name == call)

    @cached_property
    def _by_key(self) -> dict[int, NamedEvent]:
        keys, first = np.unique(self._keys, return_index=True)
        pairs = zip(keys.tolist(), first.tolist(), strict=True)
        return {key: self._facts(event) for key, event in pairs}

    def _facts(self, event: int) -> NamedEvent:
        number = self.block.instruction(event)
        if int(self.block.layout.chain[event]) < 0 or number is None:
            return NOTHING
        handles = self._handles(number, self.block.delegate_id(event))
        found = [symbol for handle in handles or () for symbol in self.symbols.get(handle, ())]
        if not found and self.links.plan is not None:
            handles, found = self._from_program(event, handles)
        return _facts(
            self._shown_handles(event, number, handles),
            self.counts.get(number, 1) if number in self.handles else 1,
            self._backend(event, number),
            found,
        )

    def _handles(self, number: int, identifier: int | str | None) -> tuple[int, ...] | None:
        if identifier is None:
            return self.handles.get(number)
        entry = self.delegates.get(number)
        if entry is not None:
            return entry.handles.get(str(identifier))
        if number in self.handles:
            message = "No delegate mapping found for delegate with instruction id %s"
            _LOG.warning(message, number)
        return self.handles.get(number)

    def _from_program(
        self, event: int, handles: tuple[int, ...] | None
    ) -> tuple[tuple[int, ...] | None, list[Symbol]]:
        link = self.links.link(event)
        own = link.handles or handles
        nodes = [node for handle in link.handles for node in self.links.nodes.get(handle, ())]
        if not nodes:
            nodes = [node for name in link.nodes for node in self.links.named(name)]
        return own, [symbol_of(node) for node in nodes]

    def _shown_handles(
        self, event: int, number: int, handles: tuple[int, ...] | None
    ) -> int | Sequence[int] | None:
        if handles is None:
            return None
        inner = self.block.delegate_id(event) is not None and number in self.delegates
        return list(handles) if inner or number not in self.lone else handles[0]

    def _backend(self, event: int, number: int) -> str | None:
        inner = self.block.delegate_id(event) is not None
        if not inner and self.block.event_name(event) != DELEGATE_CALL:
            return None
        entry = self.delegates.get(number)
        if entry is not None:
            return entry.name
        return (self.links.link(event).backend or None) if self.links.plan is not None else None


def _lone_handles(record: RecordFile, method: str) -> frozenset[int]:
    tree = mapping(record.json(HANDLES)) if HANDLES in record.archive else {}
    steps = mapping(tree.get(method, tree))
    return frozenset(int(key) for key, entry in steps.items() if isinstance(entry, int))


def _facts(
    handles: int | Sequence[int] | None, outputs: int, backend: str | None, found: list[Symbol]
) -> NamedEvent:
    traces: dict[str, str | None] = {}
    stacks: dict[str, ModuleStack] = {}
    for symbol in found:
        traces.setdefault(symbol.name, symbol.stack_trace)
        stacks.setdefault(symbol.name, symbol.module_stack)
    operators = tuple(symbol.op for symbol in found)
    return NamedEvent(handles, outputs, backend, operators, traces, stacks)
