"""delegation: delegated and remaining operators."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from typing import Any

from inspector.cli.answer import Answer, Shown, shown
from inspector.cli.options import add_files, methods, needs, open_files
from inspector.files.session import Session
from inspector.graph.delegation import MethodDelegation, analyse_delegation
from inspector.tables.delegation import delegate_table, operator_counts, payload_table
from inspector.tables.selection import AUTOMATIC
from inspector.tables.verdicts import verdicts
from schema.errors import Issue, Severity

_SHOWN = 8  # delegates named in one issue


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)


def run(options: Namespace) -> Answer:
    """Return the counts of every method."""
    session = open_files(options)
    requested = methods(session, options)
    found = [entry for entry in analyse_delegation(session) if entry.method in requested]
    if not found:
        issue = Issue(Severity.INFO, session.name, needs("delegation", "a program or an ETRecord"))
        return Answer({"methods": {}}, issues=(issue,))
    data = {"methods": {entry.method: method_json(entry) for entry in found}}
    tables: list[Shown] = []
    lines: list[str] = []
    for entry in found:
        lines += _lines(entry)
        tables += _tables(session, entry)
    issues = tuple(issue for entry in found for issue in _issues(entry))
    return Answer(data, lines=lines, tables=tables, issues=issues)


def method_json(entry: MethodDelegation) -> dict[str, Any]:
    """Return the JSON of one method."""
    return {
        "num_delegated_subgraphs": entry.num_delegated_subgraphs,
        "num_delegated_nodes": entry.num_delegated_nodes,
        "num_non_delegated_nodes": entry.num_non_delegated_nodes,
        "counting": entry.counting,
        "by_operator": [
            {
                "op_type": row.op_type,
                "occurrences_in_delegated_graphs": row.delegated,
                "occurrences_in_non_delegated_graphs": row.non_delegated,
            }
            for row in entry.by_operator
        ],
        "delegates": [
            {
                "index": one.index,
                "backend_id": one.backend_id,
                "bytes": one.nbytes,
                "named_data_bytes": one.named_bytes,
                "compile_specs": one.compile_specs,
                "nodes": list(one.nodes),
                "called_by": list(one.calls),
                "format": one.payload.format if one.payload is not None else "",
                "payload": dict(one.payload.summary) if one.payload is not None else {},
            }
            for one in entry.delegates
        ],
        "honest": {
            "compute_delegated": entry.compute_delegated,
            "compute_non_delegated": entry.compute_non_delegated,
            "nested_non_delegated": entry.nested_non_delegated,
        },
        "verdicts": [{**asdict(one), "outcome": one.outcome.value} for one in entry.verdicts],
    }


def _lines(entry: MethodDelegation) -> list[str]:
    computing = entry.compute_delegated + entry.compute_non_delegated
    share = f" ({100 * entry.compute_delegated / computing:.1f} %)" if computing else ""
    return [
        f"method {entry.method}, counted by {entry.counting}",
        *entry.summary.splitlines(),
        f"Of the nodes that compute: {entry.compute_delegated} of {computing} delegated{share};"
        f" {entry.nested_non_delegated} more in branches and loop bodies"
        f"{f'; {entry.unread_words}' if entry.unread else ''}",
    ]


def _tables(session: Session, entry: MethodDelegation) -> list[Shown]:
    name = entry.method
    found = [
        shown(operator_counts(entry), f"operators of {name}", total=True),
        shown(delegate_table(entry), f"delegates of {name}"),
    ]
    if any(one.payload for one in entry.delegates):
        found.append(shown(payload_table(entry), f"payloads of {name}"))
    if entry.verdicts:
        found.append(shown(verdicts(session, name, AUTOMATIC), f"verdicts of {name}"))
    return found


def _issues(entry: MethodDelegation) -> list[Issue]:
    """Return the issues of the payloads; delegates with the same trouble share an issue."""
    alike: dict[tuple[str, Severity, str], list[int]] = {}
    for one in entry.delegates:
        for issue in one.payload.issues if one.payload is not None else ():
            alike.setdefault((one.backend_id, issue.severity, issue.message), []).append(one.index)
    found: list[Issue] = []
    for (backend, severity, message), indices in alike.items():
        more = f" and {len(indices) - _SHOWN} more" if len(indices) > _SHOWN else ""
        which = ", ".join(map(str, indices[:_SHOWN])) + more
        found.append(Issue(severity, f"{entry.method} delegate {which} ({backend})", message))
    return found
