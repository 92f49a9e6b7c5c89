"""summary: what the files are, and what stands out."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from typing import Any

from inspector.check.session import check_session
from inspector.cli.answer import Answer, Column, Table
from inspector.cli.options import add_files, methods, open_files, short
from inspector.files.facts import facts_text, file_facts
from inspector.files.getters import getters
from inspector.files.session import LoadedFile, Session
from inspector.findings.session import Finding, findings
from inspector.graph.delegation import MethodDelegation, analyse_delegation
from inspector.join import record_maps
from inspector.memory.plan import analyse_memory, instruction_label
from inspector.trace.profile import analyse_profile
from schema.dtypes.scalar_type import scalar_type
from schema.program import Program, instructions
from schema.program import model as m

_DYNAMISM = {0: "static", 1: "bounded", 2: "unbounded"}


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
    files = Table(
        "files",
        (Column("file"), Column("kind"), Column("bytes", "bytes"), Column("what it is")),
        [
            (short(file.path), file.kind, file.size, facts_text(file_facts(session, file.artifact)))
            for file in session.files
        ],
    )
    rows = [
        (
            name,
            _types(entry["inputs"]),
            _types(entry["outputs"]) if entry["constant"] is None else f"= {entry['constant']}",
            entry["instructions"],
            entry["arena_bytes"],
            entry["method_ms"],
        )
        for name, entry in found.items()
    ]
    columns = (
        Column("method"),
        Column("inputs"),
        Column("outputs"),
        Column("instructions", "count"),
        Column("arena", "bytes"),
        Column("mean", "time"),
    )
    lines = [f"{session.name}", *(f"  • {_sentence(one.text, one.detail)}" for one in sentences)]
    tables = (files, Table("methods", columns, rows)) if rows else (files,)
    return Answer(data, lines=lines, tables=tables)


def _sentence(text: str, detail: str) -> str:
    return f"{text} ({detail})" if detail else text


def _types(values: list[dict[str, Any]]) -> str:
    return ", ".join(value["type"] for value in values)


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
    """Return the JSON of a finding; target is what to select, null where there is no such thing."""
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


def method_json(session: Session, method: str) -> dict[str, Any]:
    """Return the JSON of a method; null where no file says it."""
    program, record = session.program, session.record
    found: dict[str, Any] = {
        "instructions": None,
        "operators": {},
        "inputs": [],
        "outputs": [],
        "arena_bytes": None,
        "peak_bytes": None,
        "method_ms": None,
        "runs": 0,
        "delegation": None,
        "nodes": None,
        "constant": None,
    }
    if program is not None:
        _from_program(program, method, found)
    graph = record_maps.edge_graph(record, method) if record is not None else None
    if graph is not None:
        found["nodes"] = len(graph.calls())
    for entry in analyse_delegation(session):
        if entry.method == method:
            found["delegation"] = _delegation(entry)
    for time in analyse_profile(session).methods:
        alone = not time.method and not time.label and _is_alone(session, method)
        if time.method == method or alone:
            found["method_ms"], found["runs"] = time.method_ms, time.runs
    return found


def _is_alone(session: Session, method: str) -> bool:
    """Return whether a run that names no method can only be of this one."""
    if session.program is None:
        return session.methods == (method,)
    plans = session.program.plans
    return [plan.name for plan in plans if plan.inputs or instructions(plan)] == [method]


def _from_program(program: Program, method: str, found: dict[str, Any]) -> None:
    plan = program.plan(method)
    steps = instructions(plan)
    memory = analyse_memory(program, method)
    counts = Counter(instruction_label(plan, row[2].instr_args) for row in steps)
    found["instructions"] = len(steps)
    found["operators"] = dict(counts.most_common())
    found["inputs"] = [value_json(plan, index) for index in plan.inputs]
    found["outputs"] = [value_json(plan, index) for index in plan.outputs]
    found["constant"] = getters(program).get(method)
    found["arena_bytes"] = memory.planned_bytes
    found["peak_bytes"] = memory.peak_bytes


def value_json(plan: m.ExecutionPlan, index: int) -> dict[str, Any]:
    """Return the JSON of an input or output."""
    value = plan.values[index].val if 0 <= index < len(plan.values) else None
    if isinstance(value, m.Tensor):
        kind = scalar_type(value.scalar_type).name
        dynamism = _DYNAMISM.get(value.shape_dynamism)
        return {
            "value": index,
            "type": f"{kind} {list(value.sizes)}",
            "dtype": kind,
            "sizes": list(value.sizes),
            "dim_order": list(value.dim_order),
            **({"dynamism": dynamism} if dynamism else {}),
        }
    return {"value": index, "type": type(value).__name__.lower() if value else "none"}


def _delegation(entry: MethodDelegation) -> dict[str, Any]:
    return {
        "num_delegated_subgraphs": entry.num_delegated_subgraphs,
        "num_delegated_nodes": entry.num_delegated_nodes,
        "num_non_delegated_nodes": entry.num_non_delegated_nodes,
        "counting": entry.counting,
    }
