"""summary: the kinds of the files, and notable findings."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from inspector.check.session import check_session
from inspector.cli.answer import Answer, shown
from inspector.cli.options import add_files, methods, open_files
from inspector.files.facts import file_facts
from inspector.files.session import LoadedFile, Session
from inspector.findings.session import Finding, findings
from inspector.tables.files import file_facts_table
from inspector.tables.methods import method_json, method_table


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
        "findings": [finding_json(one) for one in sentences],
        "verdict": check_session(session).verdict,
    }
    lines = [f"{session.name}", *(f"  • {_sentence(one.text, one.detail)}" for one in sentences)]
    tables = [shown(file_facts_table(session), "files")]
    if found:
        tables.append(shown(method_table(found), "methods"))
    return Answer(data, lines=lines, tables=tables)


def _sentence(text: str, detail: str) -> str:
    return f"{text} ({detail})" if detail else text


def file_json(session: Session, file: LoadedFile) -> dict[str, Any]:
    """Return the JSON of a file."""
    issues = getattr(file.artifact, "issues", ())
    return {
        "path": file.path,
        "kind": file.kind,
        "bytes": file.size,
        "facts": dict(file_facts(session, file.artifact)),
        "issues": len(issues),
        "error": file.error or None,
    }


def finding_json(finding: Finding) -> dict[str, Any]:
    """Return the JSON of a finding; target is the item to select, or null."""
    return {
        "tone": finding.tone.value,
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
