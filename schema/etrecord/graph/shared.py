"""State shared by all graphs of one program while they are read."""

from __future__ import annotations

from collections.abc import Callable

from schema.errors import Issue, Severity
from schema.etrecord.budget import Budget
from schema.etrecord.graph.arguments import ArgumentReader
from schema.etrecord.graph.dtypes import serde_dtype_names
from schema.etrecord.graph.source_meta import SourceMetaReader
from schema.etrecord.graph.unions import TensorMetaReader
from schema.etrecord.parts.lowered import LoweredModule

_SHOWN = 50


class Shared:
    """Caches, readers and issues of one program.

    Attributes:
        member: name in the record
        arguments: decodes arguments
        metas: decodes tensor metadata
        sources: decodes node metadata
        lowered: decodes the string of a named lowered module
        issues: parts that could not be read
        mutated: whether planned allocations were seen
    """

    def __init__(
        self,
        member: str,
        major: int,
        budget: Budget,
        lowered: Callable[[str, str], LoweredModule],
    ) -> None:
        names = serde_dtype_names(major)
        self.member = member
        self.arguments = ArgumentReader(names)
        self.metas = TensorMetaReader(names)
        self.sources = SourceMetaReader(budget)
        self.lowered = lowered
        self.issues: list[Issue] = []
        self.mutated = False

    def note(self, message: str, severity: Severity = Severity.WARNING) -> None:
        """Record an issue of this program once, up to a limit."""
        issue = Issue(severity, self.member, message)
        if len(self.issues) < _SHOWN and issue not in self.issues:
            self.issues.append(issue)

    def finish(self) -> tuple[Issue, ...]:
        """Return all issues, those of the readers included."""
        if self.mutated:
            self.note(
                "the graph was recorded after memory planning had rewritten it, so debug handles "
                "are instruction numbers: deep-copy the edge manager before to_executorch()"
            )
        for problem in self.sources.problems:
            self.note(problem)
        for tag in self.arguments.unknown:
            self.note(f"arguments of kind {tag} are shown as written")
        return tuple(self.issues)
