"""delegation: what each delegate took and what was left."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from typing import Any

from inspector.cli.answer import Answer, Column, Table
from inspector.cli.options import add_files, methods, needs, open_files
from inspector.graph.delegation import MethodDelegation, analyse_delegation
from schema.errors import Issue, Severity

_SHOWN = 8  # delegates named in one issue


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)


def run(options: Namespace) -> Answer:
    """Return the counts of every method."""
    session = open_files(options)
    wanted = methods(session, options)
    found = [entry for entry in analyse_delegation(session) if entry.method in wanted]
    if not found:
        issue = Issue(Severity.INFO, session.name, needs("delegation", "a program or an ETRecord"))
        return Answer({"methods": {}}, issues=(issue,))
    data = {"methods": {entry.method: method_json(entry) for entry in found}}
    tables: list[Table] = []
    lines: list[str] = []
    for entry in found:
        lines += _lines(entry)
        tables += [_operators(entry), _delegates(entry)]
        tables += [_payload_facts(entry)] if any(one.payload for one in entry.delegates) else []
        tables += [_verdicts(entry)] if entry.verdicts else []
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
        f" {entry.nested_non_delegated} more in branches and loop bodies",
    ]


def _operators(entry: MethodDelegation) -> Table:
    rows = [(row.op_type, row.delegated, row.non_delegated) for row in entry.by_operator]
    columns = (Column("operator"), Column("delegated", "count"), Column("not delegated", "count"))
    total = ("Total", entry.num_delegated_nodes, entry.num_non_delegated_nodes)
    return Table(f"operators of {entry.method}", columns, rows, total)


def _delegates(entry: MethodDelegation) -> Table:
    columns = (
        Column("delegate", "count"),
        Column("backend"),
        Column("format", spare=3),
        Column("payload", "bytes"),
        Column("named data", "bytes", spare=2),
        Column("nodes", "count"),
        Column("called by"),
        Column("compile specs", spare=1),
    )
    rows = [
        (
            one.index,
            one.backend_id,
            one.payload.format if one.payload is not None else "",
            one.nbytes,
            one.named_bytes,
            len(one.nodes),
            ", ".join(map(str, one.calls)),
            ", ".join(f"{key}={value}" for key, value in one.compile_specs.items()),
        )
        for one in entry.delegates
    ]
    return Table(f"delegates of {entry.method}", columns, rows)


def _payload_facts(entry: MethodDelegation) -> Table:
    columns = (Column("delegate", "count"), Column("fact"), Column("value"))
    rows = [
        (one.index, key, str(value))
        for one in entry.delegates
        if one.payload is not None
        for key, value in one.payload.summary.items()
        if value != ""
    ]
    return Table(f"what the payloads of {entry.method} say", columns, rows)


def _issues(entry: MethodDelegation) -> list[Issue]:
    """Return what is odd in the payloads; delegates with the same trouble share an issue."""
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


def _verdicts(entry: MethodDelegation) -> Table:
    columns = (
        Column("node"),
        Column("operator"),
        Column("partitioner"),
        Column("outcome"),
        Column("reason"),
        Column("rule", spare=2),
        Column("source", spare=1),
    )
    rows = [
        (
            one.node,
            one.operator,
            one.partitioner,
            one.outcome.value.replace("_", " "),
            one.reason,
            one.rule,
            one.source,
        )
        for one in entry.verdicts
    ]
    return Table(f"verdicts of {entry.method}", columns, rows)
