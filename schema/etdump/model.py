"""The trace artifact: runs of events."""

from __future__ import annotations

from dataclasses import dataclass, field

from schema.errors import Issue
from schema.etdump.join import joined
from schema.etdump.table import EventTable


@dataclass(frozen=True, slots=True)
class RunData:
    """One block of a trace: everything between two changes of the tracer's block.

    Attributes:
        name: ``Default`` while loading, ``Execute`` for one execution
        bundled_input_index: test case of a bundled program, -1 if none
        allocators: names that allocation events refer to
        events: in the order they ended
    """

    name: str
    bundled_input_index: int
    allocators: tuple[str, ...]
    events: EventTable


@dataclass(frozen=True, slots=True)
class ETDump:
    """A trace file.

    Attributes:
        version: schema version, 0 in every file known
        size_prefixed: whether the file begins with its size, as runtimes write it
        run_data: readable blocks, in the order of the file
        file: path or label
        issues: inconsistencies and losses
    """

    version: int
    size_prefixed: bool
    run_data: tuple[RunData, ...]
    file: str = field(default="", compare=False)
    issues: tuple[Issue, ...] = field(default=(), compare=False)

    @property
    def events(self) -> EventTable:
        """Return the events of all blocks, one after another."""
        return joined([run.events for run in self.run_data])
