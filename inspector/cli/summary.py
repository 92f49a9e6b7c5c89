"""summary: the kinds of the files, and notable findings."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from inspector.check.session import check_session
from inspector.cli.answer import Answer, shown
from inspector.cli.options import add_files, methods, open_files
from inspector.files.facts import file_facts
from inspector.files.session import LoadedFile, Session
from inspector.findings.attempts import command_of
from inspector.findings.session import Finding, findings
from inspector.tables.files import file_table
from inspector.tables.methods import method_json, method_table
from schema.etrecord import RecordFile


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)


def run(options: Namespace) -> Answer:
    """Return files, methods and findings."""
    session = open_files(options)
    found = {name: method_json(session, name) for name in methods(session, options)}
    sentences = findings(session)
    data = {
        "files": [file_json(session, file) for file in session.files],
        "methods": found,
        "findings": [finding_json(session, one) for one in sentences],
        "verdict": check_session(session).verdict,
    }
    lines = [session.name, *(line for one in sentences for line in _lines(session, one))]
    tables = [shown(file_table(session), "files")]
    if found:
        tables.append(shown(method_table(found), "methods"))
    return Answer(data, lines=lines, tables=tables, issues=session.unread())


def _lines(session: Session, finding: Finding) -> list[str]:
    """Return a finding with its severity as sign and word, and the command that tries its edit."""
    more = "; ".join(filter(None, (finding.detail, finding.saved)))
    text = f"  {finding.tone.shape} {finding.tone.severity}: {finding.text}"
    lines = [f"{text} ({more})" if more else text]
    command = command_of(session, finding)
    return [*lines, f"      try it: {command}"] if command else lines


def file_json(session: Session, file: LoadedFile) -> dict[str, Any]:
    """Return the JSON of a file."""
    issues = getattr(file.artifact, "issues", ())
    unread = file.artifact.unread() if isinstance(file.artifact, RecordFile) else ()
    return {
        "path": file.path,
        "kind": file.kind,
        "bytes": file.size,
        "facts": dict(file_facts(session, file.artifact)),
        "issues": len(issues) + len(unread),
        "error": file.error or None,
    }


def finding_json(session: Session, finding: Finding) -> dict[str, Any]:
    """Return the JSON of a finding; target is the item to select, or null."""
    return {
        "tone": finding.tone.value,
        "severity": finding.tone.severity,
        "saves_ms": finding.saves_ms,
        "saves_bytes": finding.saves_bytes,
        "edits": [
            {"edit": name, "kind": target.kind.value, "name": target.name}
            for name, target in finding.edits
        ],
        "try": command_of(session, finding) or None,
        "text": finding.text,
        "detail": finding.detail or None,
        "view": finding.view,
        "method": finding.method or None,
        "target": {
            "event": finding.event,
            "instruction": finding.instruction,
            "delegate": finding.delegate,
            "part": finding.part or None,
        },
    }
