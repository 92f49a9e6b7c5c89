"""A session: the artifacts of one program, opened together and never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TypeVar

from inspector.files.node_data import NodeData, NodeDataFile
from inspector.files.run_report import report_issue
from inspector.files.trace_buffers import buffer_of, expected_buffer
from inspector.files.trace_roles import (
    REPEATED,
    in_order,
    logs_values,
    partly_shown,
    timed_traces,
    trace_role,
    value_traces,
)
from schema.bundled import BundledFile
from schema.errors import Issue, Severity
from schema.etdump import ETDump
from schema.etdump.debug_buffer import DebugBuffer
from schema.etrecord import RecordFile
from schema.flat_tensor import FlatTensor
from schema.program import ProgramFile

T = TypeVar("T")
FORWARD = "forward"  # the method of a program that was only exported
EXPORTED = "pt2"
_ALONE = "open this trace alone, or compare the two"
_NOT_SHOWN = f"not shown: {{}} is of the same method; {_ALONE}"
_PARTLY = f"shown without the runs of a method that {{}} has as well; {_ALONE}"


@dataclass(frozen=True, eq=False, slots=True)
class LoadedFile:
    """One file of a session.

    Attributes:
        path: as it was given
        kind: pte, ptd, bpte, etrecord, pt2, etdump, debug_buffer, node_data or unknown
        size: bytes
        data: the bytes, a view into the mapped file
        artifact: decoded content, None if unreadable
        error: why it is unreadable, else empty
    """

    path: str
    kind: str
    size: int
    data: memoryview
    artifact: object | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Options of interpretation that the files do not contain.

    Attributes:
        source_time_scale: unit of ETDump ticks: ns, us, ms, s or cycles
        time_scale_assumed: True while the unit is not known
        source_roots: folders in which source files of stack traces are looked for
        path_mapping: prefix in a stack trace -> folder on this machine
    """

    source_time_scale: str = "ns"
    time_scale_assumed: bool = True
    source_roots: tuple[str, ...] = ()
    path_mapping: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)


@dataclass(frozen=True, eq=False, slots=True)
class Session:
    """The decoded files of one program.

    Attributes:
        name: shown to the user
        files: in the given order
        options: facts that the files do not contain
        issues: about the set of files; artifacts have separate ones
    """

    name: str
    files: tuple[LoadedFile, ...]
    options: SessionOptions = SessionOptions()
    issues: tuple[Issue, ...] = ()

    def _all(self, kind: type[T]) -> tuple[T, ...]:
        found = (file.artifact for file in self.files)
        return tuple(artifact for artifact in found if isinstance(artifact, kind))

    @property
    def program(self) -> ProgramFile | None:
        """Return the program: a ``.pte``, else the one inside a bundled program."""
        programs = self._all(ProgramFile)
        if programs:
            return programs[0]
        return self.bundled_program_table

    @property
    def bundled_program_table(self) -> ProgramFile | None:
        """Return the program inside the bundled program, None without a readable one."""
        from inspector.files.bundled import inner_program

        return inner_program(self.bundled) if self.bundled is not None else None

    @property
    def bundled(self) -> BundledFile | None:
        """Return the bundled program."""
        return next(iter(self._all(BundledFile)), None)

    @property
    def record(self) -> RecordFile | None:
        """Return the ETRecord, else the exported program of a ``.pt2`` file."""
        found = [file.artifact for file in self.files if isinstance(file.artifact, RecordFile)]
        exported = [file.artifact for file in self.files if file.kind == EXPORTED]
        others = [one for one in found if one not in exported]
        return next(iter((*others, *found)), None)

    @property
    def dumps(self) -> tuple[ETDump, ...]:
        """Return the ETDumps: those whose times count, then the others, each in the order given."""
        return in_order(self._all(ETDump))

    @property
    def timed_dumps(self) -> tuple[ETDump, ...]:
        """Return the ETDumps whose times count, one a method as far as that is known."""
        return timed_traces(self.dumps)

    @property
    def value_dumps(self) -> tuple[ETDump, ...]:
        """Return the ETDumps with logged values, one a method; all where none has any."""
        return value_traces(self.dumps)

    @property
    def times_with_values(self) -> bool:
        """Return whether the times that are shown are of runs that logged values."""
        return any(map(logs_values, self.timed_dumps))

    @property
    def debug_buffer(self) -> DebugBuffer | None:
        """Return the debug buffer, the first of several."""
        return next(iter(self._all(DebugBuffer)), None)

    def buffer_of(self, dump: ETDump) -> DebugBuffer | None:
        """Return the debug buffer with the values of a trace, None where it is not known."""
        logged = tuple(filter(logs_values, self.dumps)) or self.dumps
        return buffer_of(dump, logged, self._all(DebugBuffer))

    @property
    def missing_buffers(self) -> tuple[str, ...]:
        """Return a sentence for each trace whose logged values are in a file that is not open."""
        if self.debug_buffer is not None:
            return ()
        return tuple(
            f"The values that {PurePath(dump.file).name} logged are in its debug buffer, which is"
            f" not open; expected: {expected_buffer(dump)}"
            for dump in self.value_dumps
            if logs_values(dump)
        )

    def role_of(self, dump: ETDump) -> str:
        """Return the role of a trace: times, values or neither, in words."""
        return trace_role(self.dumps, dump)

    def _not_shown(self) -> list[Issue]:
        """Return why traces of a method that has one already are not shown, or not all of them."""
        found: list[Issue] = []
        for dump in self.dumps:
            shown = self.value_dumps if logs_values(dump) else self.timed_dumps
            others = partly_shown(self.dumps, dump)
            if self.role_of(dump) == REPEATED:
                words = _NOT_SHOWN.format(_names(dump, shown))
            elif others and not logs_values(dump):
                words = _PARTLY.format(_names(dump, others))
            else:
                continue
            found.append(Issue(Severity.WARNING, dump.file, words))
        return found

    @property
    def node_data(self) -> tuple[NodeData, ...]:
        """Return the values of nodes from other tools, each set with its title."""
        return tuple(one for file in self._all(NodeDataFile) for one in file.sets)

    @property
    def external(self) -> tuple[FlatTensor, ...]:
        """Return the external data files."""
        return self._all(FlatTensor)

    @property
    def programs(self) -> tuple[ProgramFile, ...]:
        """Return all programs; more than one is a set that does not belong together."""
        return self._all(ProgramFile)

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the method names of the program, else of the record."""
        if self.program is not None:
            return tuple(plan.name for plan in self.program.plans)
        if self.record is None:
            return ()
        alone = (FORWARD,) if self.record.roles.exported else ()
        return self.record.methods or alone

    def file_of(self, artifact: object) -> LoadedFile | None:
        """Return the file an artifact came from, None for one that is inside another."""
        return next((file for file in self.files if file.artifact is artifact), None)

    def unread(self) -> tuple[Issue, ...]:
        """Return an issue for each graph and part of tensors of a record that cannot be read.

        That takes some 10 ms a record, so what only opens files does without.
        """
        records = [one.artifact for one in self.files if isinstance(one.artifact, RecordFile)]
        return tuple(issue for one in records for issue in one.unread())

    def all_issues(self) -> tuple[Issue, ...]:
        """Return the issues of the set, of every artifact in it and of reports beside traces."""
        reports = filter(None, map(report_issue, self.dumps))
        found = [*self.issues, *self._not_shown(), *reports]
        for file in self.files:
            found.extend(getattr(file.artifact, "issues", ()))
        return tuple(found)


def _names(dump: ETDump, others: tuple[ETDump, ...]) -> str:
    """Return the names of traces, with their folders where one has the name of this trace."""
    here = PurePath(dump.file)
    paths = [PurePath(one.file) for one in others]
    names = [path.name if path.name != here.name else "/".join(path.parts[-2:]) for path in paths]
    return " or ".join(names)
