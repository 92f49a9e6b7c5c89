"""Every table of a session by name: one line and one function each."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from inspector.files.session import Session
from inspector.tables.query import QueryError
from inspector.tables.selection import AUTOMATIC, Units
from inspector.tables.table import Table
from inspector.tables.tree import Tree
from schema.backends import BACKENDS

if TYPE_CHECKING:  # a table of names needs no numpy
    from inspector.profile.time_range import TimeRange


class TableSubject(str, Enum):
    """Kinds of subjects of a table."""

    SESSION = "session"
    METHOD = "method"  # of a session
    SESSIONS = "sessions"  # side by side
    FOLDER = "folder"  # what a job wrote


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table.

    Attributes:
        name: on the command line and in ``inspector.table``
        what: description of a row
        maker: module and function that build it, below ``inspector.tables``
        subject: arguments of the function: (session, units), (session, method, units),
            (sessions, method, units) or (path, units)
        ranged: whether it is of a range of time, the last argument
        computed: whether a worker computes it, which takes seconds
        of: what it is of beside its subject, for help; the last argument of the function, empty
            for the default
        fewest: number of sessions that a table of several needs
    """

    name: str
    what: str
    maker: str
    subject: TableSubject = TableSubject.METHOD
    ranged: bool = False
    computed: bool = False
    of: str = ""
    fewest: int = 2


_CALL = "index of the delegate call; default: 0"
TABLES: dict[str, TableEntry] = {
    entry.name: entry
    for entry in (
        TableEntry("operators", "an operator: its time, delegate, join", "operators:operators"),
        TableEntry("kernels", "a layer of a delegate, its kernel", "kernels:kernels"),
        TableEntry("events", "an event of the trace", "events:events"),
        TableEntry("range", "an operator in a range of time", "time_range:time_range", ranged=True),
        TableEntry("partitions", "a delegate, its nodes below", "partitions:partition_tree"),
        TableEntry("verdicts", "a node and why it was delegated or not", "verdicts:verdicts"),
        TableEntry("boundaries", "a tensor between delegates", "partitions:boundary_tensors"),
        TableEntry("constants", "a constant of a delegate", "partitions:delegate_constants"),
        TableEntry("memory", "a value of the memory plan", "memory:planned_values"),
        TableEntry("memory-calls", "a call of a sequence, its state", "calls:memory_calls"),
        TableEntry("measured-memory", "a phase of a run, its resident memory", "memory:measured"),
        TableEntry(
            "planners", "a plan of the memory by a planner", "computed:planners", computed=True
        ),
        TableEntry("gap", "an output, its numeric gap", "computed:gap", computed=True),
        TableEntry(
            "call-gaps", "a call of a sequence, its gap", "computed:call_gaps", computed=True
        ),
        TableEntry("layer-losses", "a module, its loss", "computed:layer_losses", computed=True),
        TableEntry("cases", "a case of a bundle, its verdict", "computed:cases", computed=True),
        TableEntry(
            "step-nodes", "a node of a call", "computed:step_nodes", computed=True, of=_CALL
        ),
        TableEntry(
            "step-values", "a value in a call", "computed:step_values", computed=True, of=_CALL
        ),
        TableEntry("roofline", "an operator at its limit", "roofline:operators_at_limits"),
        TableEntry("source", "a source line, its nodes and time", "source_lines:source_tree"),
        TableEntry("nodes", "a node of the compiled graph", "graph:nodes"),
        TableEntry("edges", "an edge of the compiled graph, its bytes", "graph:edges"),
        TableEntry("node-data", "a value of a JSON or CSV file, its node", "node_data:node_data"),
        TableEntry("delegation", "an operator, delegated or not", "delegation:delegation"),
        TableEntry("delegates", "a delegate, its payload", "delegation:delegates"),
        TableEntry("payloads", "a fact of a payload", "delegation:payloads"),
        TableEntry("estimates", "a fact of a command stream, estimated", "estimates:facts"),
        TableEntry("estimated-layers", "a layer of a command stream", "estimates:layers"),
        TableEntry("estimated-commands", "a command of a stream", "estimates:commands"),
        TableEntry("estimated-memory", "a memory of an NPU", "estimates:memories"),
        TableEntry("estimated-tensors", "a tensor in it", "estimates:tensors"),
        TableEntry("tensors", "a stored tensor, its values", "tensors:tensors"),
        TableEntry("tensor", "any tensor, its statistics", "tensor:tensor", TableSubject.SESSION),
        TableEntry(
            "tensor-list",
            "any tensor, its type and size",
            "tensor:tensor_list",
            TableSubject.SESSION,
        ),
        TableEntry(
            "elements",
            "an element of a tensor",
            "tensor:elements",
            TableSubject.SESSION,
            of="name of a tensor, and perhaps a slice of it: 'conv.weight[0, :]'",
        ),
        TableEntry("logged-tensors", "a logged tensor", "tensors:logged", TableSubject.SESSION),
        TableEntry("methods", "a method, its signature", "methods:methods", TableSubject.SESSION),
        TableEntry("graphs", "a graph", "graph:graphs", TableSubject.SESSION),
        TableEntry("size", "a part of a file", "size:parts", TableSubject.SESSION),
        TableEntry("size-kinds", "a kind of part", "size:kinds", TableSubject.SESSION),
        TableEntry("check", "two files that belong together", "check:check", TableSubject.SESSION),
        TableEntry("stages", "a stage of the compile", "stage_steps:stages", TableSubject.SESSION),
        TableEntry(
            "stage-nodes",
            "a node that a stage changed",
            "stage_steps:stage_nodes",
            TableSubject.SESSION,
        ),
        TableEntry("findings", "a finding", "findings:finding_table", TableSubject.SESSION),
        TableEntry("next-steps", "an action", "next_steps:next_step_table", TableSubject.SESSION),
        TableEntry(
            "backends", "a backend, what it needs", "backends:backends", TableSubject.SESSION
        ),
        TableEntry(
            "backend-plan",
            "a backend, its share",
            "computed:backend_plan",
            TableSubject.SESSION,
            computed=True,
        ),
        TableEntry(
            "gates",
            "a requirement, judged",
            "gates:gates",
            TableSubject.SESSIONS,
            of="file of requirements, as etscope gate --gates reads it",
            fewest=1,
        ),
        TableEntry(
            "structure", "a field of a file", "structure:structure_lines", TableSubject.SESSION
        ),
        TableEntry("files", "a file", "files:files", TableSubject.SESSION),
        TableEntry("issues", "an issue of a file", "files:issues", TableSubject.SESSION),
        TableEntry(
            "compile-stages",
            "a stage, its time",
            "compile_stages:compile_stages",
            TableSubject.FOLDER,
        ),
        TableEntry("run-times", "a time of a run", "runs:run_times", TableSubject.FOLDER),
        TableEntry("thread-times", "a number of threads", "runs:thread_times", TableSubject.FOLDER),
        TableEntry("calls", "a call of a sequence or text", "calls:calls", TableSubject.FOLDER),
        TableEntry("call-times", "a time of calls", "calls:call_times", TableSubject.FOLDER),
        TableEntry("call-state", "a state after a call", "calls:call_state", TableSubject.FOLDER),
        TableEntry("disk", "a folder that a job wrote", "disk:disk", TableSubject.FOLDER),
        TableEntry("jobs", "a job of the window", "jobs:jobs", TableSubject.FOLDER),
        TableEntry("sweep", "a point of a sweep", "sweep:sweep_points", TableSubject.FOLDER),
        TableEntry(
            "sensitivity",
            "a module quantized alone",
            "sensitivity:sensitivity",
            TableSubject.FOLDER,
        ),
        TableEntry("gate-history", "a run of a gate", "gates:history", TableSubject.FOLDER),
        TableEntry("gate-trend", "a metric of a gate", "gates:trend", TableSubject.FOLDER),
        TableEntry("eval-outputs", "an output", "evaluate:outputs", TableSubject.FOLDER),
        TableEntry("eval-worst", "a bad sample", "evaluate:worst", TableSubject.FOLDER),
        TableEntry("eval-ranges", "a quantized value", "evaluate:ranges", TableSubject.FOLDER),
        TableEntry("eval-samples", "a sample", "evaluate:samples", TableSubject.FOLDER),
        TableEntry("trials", "a program a bisection tried", "bisect:trials", TableSubject.FOLDER),
        TableEntry("bisect-nodes", "a node to exclude", "bisect:excluded", TableSubject.FOLDER),
        *(
            TableEntry(name, f"{what}, two sessions or more", maker, TableSubject.SESSIONS)
            for name, what, maker in (
                ("compare", "a figure", "compare:summary"),
                ("compare-recipes", "a field of a recipe", "compare_lists:recipes"),
                ("compare-graph", "a node added, removed, replaced", "compare_lists:graph"),
                ("compare-owners", "a node that another backend runs", "compare_lists:owners"),
                ("compare-partitions", "a partition", "compare_lists:partitions"),
                ("compare-operators", "the time of an operator", "compare_lists:operators"),
                ("compare-modules", "the time of a module", "compare_lists:modules"),
                ("compare-nodes", "the time of a node", "compare_lists:nodes"),
                ("compare-memory", "a figure of the memory plan", "compare_lists:memory"),
                ("compare-sizes", "a figure of the files", "compare_lists:sizes"),
                ("compare-weights", "a recorded weight", "compare_lists:weights"),
                ("compare-changes", "a difference", "compare_lists:changes"),
                ("compare-devices", "the ratio of an operator", "device_ratios:device_ratios"),
            )
        ),
    )
}


def entry_named(name: str) -> TableEntry:
    """Return a table's entry; tables of estimates were named after the tool that makes them.

    Raises: QueryError for an unknown name
    """
    tool, _, part = name.partition("-")
    if name not in TABLES and tool in {one.tables for one in BACKENDS.values() if one.tables}:
        name = f"estimated-{part}" if part else "estimates"
    if name not in TABLES:
        raise QueryError(f"unknown table {name!r}; available: {', '.join(TABLES)}")
    return TABLES[name]


def build(
    name: str,
    subject: Session | Path | Sequence[Session],
    method: str = "",
    units: Units = AUTOMATIC,
    span: TimeRange | None = None,
    of: str = "",
) -> Table | Tree:
    """Return a table by name.

    Args:
        name: one of ``TABLES``
        subject: a session; two or more for tables that compare; the folder that a job wrote
        method: needed for tables of one method unless the session has only one
        units: of times and sizes
        span: of the tables of a range of time
        of: of the tables that are of something beside their subject; see ``TableEntry.of``

    Raises: QueryError for an unknown name, a wrong subject, method or range, and a session or
        folder without the required data; FormatError, OSError for a folder that cannot be read
    """
    entry = entry_named(name)
    module, function = entry.maker.split(":")
    make: Any = getattr(importlib.import_module(f"inspector.tables.{module}"), function)
    if isinstance(subject, Path) != (entry.subject is TableSubject.FOLDER):
        found = f"{subject} is a folder" if isinstance(subject, Path) else "found a session"
        raise QueryError(f"table {name!r} is of a {entry.subject.value}, {found}")
    if isinstance(subject, Path):
        try:
            return cast("Table | Tree", make(subject, units))
        except FileNotFoundError as error:
            raise QueryError(f"table {name!r}: {error.filename} is missing") from error
    if span is not None:
        make = _of_range(entry, make, span)
    if of and not entry.of:
        known = ", ".join(name for name, one in TABLES.items() if one.of)
        raise QueryError(f"table {name!r} is not of {of!r}; available: {known}")
    if entry.of:
        make = partial(make, of=of)
    return _of_sessions(entry, make, subject, method, units)


def _of_range(
    entry: TableEntry,
    make: Any,  # noqa: ANN401 - as below
    span: TimeRange,
) -> Any:  # noqa: ANN401
    if not entry.ranged:
        known = ", ".join(name for name, one in TABLES.items() if one.ranged)
        raise QueryError(f"table {entry.name!r} is not of a range of time; available: {known}")

    def ranged(session: Session, method: str, units: Units) -> Table:
        return cast("Table", make(session, method, units, span))

    return ranged


def _of_sessions(
    entry: TableEntry,
    make: Any,  # noqa: ANN401 - a function of one of the signatures of TableEntry
    subject: Session | Sequence[Session],
    method: str,
    units: Units,
) -> Table | Tree:
    sessions = (subject,) if isinstance(subject, Session) else tuple(subject)
    if entry.subject is TableSubject.SESSIONS:
        if len(sessions) < entry.fewest:
            words = f"compares two sessions or more, found {len(sessions)}"
            raise QueryError(f"table {entry.name!r} {words}")
        return cast("Table | Tree", make(sessions, method, units))
    if len(sessions) != 1:
        raise QueryError(f"table {entry.name!r} requires one session, found {len(sessions)}")
    if entry.subject is TableSubject.SESSION:
        return cast("Table | Tree", make(sessions[0], units))
    return cast("Table | Tree", make(sessions[0], method_of(sessions[0], method), units))


def method_of(session: Session, method: str) -> str:
    """Return the selected method: the given one, or the only one.

    Raises: QueryError for an unknown method, or a missing name if there are several
    """
    known = session.methods
    if method and known and method not in known:
        raise QueryError(f"unknown method {method!r}; available: {', '.join(known)}")
    if not method and len(known) > 1:
        raise QueryError(f"several methods: name one of {', '.join(known)}")
    return method or next(iter(known), "")
