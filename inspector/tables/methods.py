"""The methods of a program: signature, instructions, planned memory, time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from inspector.files.getters import getters
from inspector.files.session import Session
from inspector.graph.delegation import MethodDelegation, analyse_delegation
from inspector.join import record_maps
from inspector.memory.plan import analyse_memory, instruction_label
from inspector.profile.methods import analyse_profile, time_of
from inspector.roofline.method_work import method_work
from inspector.roofline.work import work_json
from inspector.tables.rows import RowField, ns, row_table
from inspector.tables.selection import Units
from inspector.tables.table import Table
from inspector.units import Quantity
from schema.dtypes.scalar_type import scalar_type
from schema.graph import GraphValue
from schema.program import ProgramFile, instructions
from schema.program import model as m

_DYNAMISM = {0: "static", 1: "bounded", 2: "unbounded"}
_FIELDS = (
    RowField("method", mono=True),
    RowField("inputs"),
    RowField("outputs"),
    RowField("instructions", Quantity.COUNT),
    RowField("planned", Quantity.SIZE),
    RowField("mean", Quantity.TIME),
    RowField("tags"),
    RowField("FLOPs", Quantity.OPERATIONS),
    RowField("bytes", Quantity.SIZE),
)


def method_table(found: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return one row per method from ``method_json``; a constant is shown as output."""
    rows = [
        (
            name,
            _types(one["inputs"]),
            _types(one["outputs"]) if one["constant"] is None else f"= {one['constant']}",
            one["instructions"],
            one["arena_bytes"],
            ns(one["method_ms"] if one["bare_ms"] is None else one["bare_ms"]),
            ", ".join(one["tags"]),
            *_work(one["work"]),
        )
        for name, one in found.items()
    ]
    return row_table(_FIELDS, rows, "methods", keys=list(found))


def _work(work: Mapping[str, Any]) -> tuple[int | None, int | None]:
    sides = (work["read_bytes"], work["written_bytes"])
    return work["flops"], None if None in sides else sum(sides)


def _types(values: list[dict[str, Any]]) -> str:
    return ", ".join(value["type"] for value in values)


def methods(session: Session, _units: Units) -> Table:
    """Return the methods of a session."""
    return method_table({name: method_json(session, name) for name in session.methods})


def method_json(session: Session, method: str) -> dict[str, Any]:
    """Return the JSON of a method; null where unknown."""
    program, record = session.program, session.record
    found: dict[str, Any] = {
        "instructions": None,
        "operators": {},
        "inputs": [],
        "outputs": [],
        "arena_bytes": None,
        "peak_bytes": None,
        "method_ms": None,
        "bare_ms": None,
        "tags": [],
        "runs": 0,
        "delegation": None,
        "nodes": None,
        "constant": None,
        "work": work_json(method_work(session, method).total),
    }
    if program is not None:
        _from_program(program, method, found)
    elif record is not None:
        inputs, outputs = record_maps.ends(record, method)
        found["inputs"] = [_recorded_json(one) for one in inputs]
        found["outputs"] = [_recorded_json(one) for one in outputs]
    graph = record_maps.edge_graph(record, method) if record is not None else None
    if graph is not None:
        found["nodes"] = len(graph.calls())
    for entry in analyse_delegation(session):
        if entry.method == method:
            found["delegation"] = _delegation(entry)
    time = time_of(session, method)
    if time is not None:
        found["method_ms"], found["runs"] = time.method_ms, time.runs
        found["bare_ms"] = time.bare_ms
        found["tags"] = [*filter(None, [time.tag]), *analyse_profile(session).tags_of(time)]
    return found


def _from_program(program: ProgramFile, method: str, found: dict[str, Any]) -> None:
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


def _recorded_json(value: GraphValue) -> dict[str, Any]:
    """Return the JSON of an input or output that has no number: it is of no program."""
    tensor = value.tensor
    if tensor is None:
        return {"value": None, "type": value.kind}
    sizes = list(tensor.sizes)
    kind = f"{tensor.dtype} [{', '.join(map(str, sizes))}]"
    return {"value": None, "type": kind, "dtype": tensor.dtype, "sizes": sizes}


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
