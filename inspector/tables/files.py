"""The files of a session and its issues as tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath

from inspector.files.facts import facts_text, file_facts
from inspector.files.payloads import unread_payloads
from inspector.files.session import LoadedFile, Session
from inspector.tables.selection import Units
from inspector.tables.table import Column, Table, badge_column, number_column, text_column
from inspector.units import Quantity, as_number, format_quantity
from schema.errors import Issue, Severity

KIND_WORDS = {
    "pte": "program",
    "ptd": "external data",
    "bpte": "bundled program",
    "etrecord": "ETRecord",
    "pt2": "exported program",
    "etdump": "trace",
    "debug_buffer": "debug buffer",
    "node_data": "values of nodes",
    "unknown": "not readable",
}
_TONES = {
    Severity.ERROR.value: "bad",
    Severity.WARNING.value: "warn",
    Severity.INFO.value: "muted",
}


def file_table(session: Session) -> Table:
    """Return name, kind and size of each file, and short facts; keyed by path.

    Each size has its own unit, since traces are a thousand times smaller than programs. Hovering
    shows format and folder.
    """
    files = session.files
    names = {file.path: PurePath(file.path).name for file in files}
    about = {file.path: f"{file.path}\n{_kind(file)}" for file in files}
    paths = [file.path for file in files]
    name = Column(
        "file",
        paths,
        text=lambda path: names[str(path)],
        exact=lambda path: about[str(path)],
        mono=True,
    )
    size = number_column("size", [file.size for file in files], Quantity.SIZE)
    facts = [facts_text(file_facts(session, file.artifact)) for file in files]
    columns = (
        name,
        text_column("kind", [file.kind for file in files]),
        replace(size, text=_own_unit, unit=""),
        text_column("facts", facts),
    )
    return Table(columns, len(files), keys=paths, noun="files")


def _own_unit(value: object) -> str:
    return format_quantity(as_number(value), Quantity.SIZE)


def _kind(file: LoadedFile) -> str:
    return f"not readable: {file.error}" if file.error else kind_label(file.kind)


def issue_table(issues: tuple[Issue, ...]) -> Table:
    """Return severity, place and message of each issue, the worst first."""
    rank = {severity: number for number, severity in enumerate(reversed(Severity))}
    ordered = sorted(issues, key=lambda issue: rank[issue.severity])
    return Table(
        (
            badge_column(
                "severity",
                [issue.severity.value for issue in ordered],
                tone=lambda value: _TONES.get(str(value), ""),
            ),
            text_column("message", [issue.message for issue in ordered], width=90),
            text_column("where", [issue.where for issue in ordered], mono=True),
        ),
        len(ordered),
        noun="issues",
    )


def all_issues(session: Session) -> tuple[Issue, ...]:
    """Return the issues of the files, and about the payloads inside the program."""
    inside = unread_payloads(session.program) if session.program is not None else ()
    return (*session.all_issues(), *session.unread(), *inside)


def kind_label(kind: str) -> str:
    """Return the display name of a kind of file."""
    return KIND_WORDS.get(kind, kind)


def files(session: Session, _units: Units) -> Table:
    """Return the files of a session."""
    return file_table(session)


def issues(session: Session, _units: Units) -> Table:
    """Return the issues of the files, the worst first."""
    return issue_table(all_issues(session))
