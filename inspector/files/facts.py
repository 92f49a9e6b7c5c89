"""The few facts that describe a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from inspector.files.node_data import NodeDataFile
from inspector.files.session import Session
from schema.bundled import BundledFile
from schema.etdump import ETDump
from schema.etdump.debug_buffer import DebugBuffer, tensor_extents
from schema.etrecord import RecordFile
from schema.flat_tensor import FlatTensor
from schema.program import ProgramFile

Facts = Mapping[str, int | str]
_KINDS = {
    "pte": "a program (.pte)",
    "ptd": "external data (.ptd)",
    "bpte": "a bundled program (.bpte)",
    "etrecord": "an ETRecord",
    "pt2": "an exported program (.pt2)",
    "etdump": "an ETDump",
    "debug_buffer": "a debug buffer",
    "node_data": "values of nodes",
}


def kind_text(kind: str) -> str:
    """Return a kind of file in words, with its article."""
    return _KINDS.get(kind, "an unknown file")


def facts_text(facts: Facts) -> str:
    """Return facts as one line, empty ones left out."""
    return ", ".join(f"{name} {value}" for name, value in facts.items() if value != "")


def file_facts(session: Session, artifact: object) -> Facts:
    """Return name -> fact of an artifact of a session; empty for a file that was not read."""
    if isinstance(artifact, ProgramFile):
        return _program(artifact)
    if isinstance(artifact, FlatTensor):
        layout = "0.6" if artifact.old_layout else ""
        return {"keys": len(artifact.entries), "layout": layout}
    if isinstance(artifact, BundledFile):
        cases = sum(len(suite.test_cases) for suite in artifact.method_test_suites)
        return {"suites": len(artifact.method_test_suites), "cases": cases}
    if isinstance(artifact, RecordFile):
        return {
            "programs": ", ".join(artifact.program_names),
            "methods": ", ".join(artifact.methods),
            "members": len(artifact.members),
        }
    if isinstance(artifact, ETDump):
        events = sum(len(run.events) for run in artifact.run_data)
        role = session.role_of(artifact) if len(session.dumps) > 1 else ""
        return {"runs": len(artifact.run_data), "events": events, "role": role}
    if isinstance(artifact, DebugBuffer):
        own = [dump for dump in session.value_dumps if session.buffer_of(dump) is artifact]
        logged = sum(len(tensor_extents(dump)[0]) for dump in own)
        return {"logged tensors": logged if own else "unknown without its ETDump"}
    if isinstance(artifact, NodeDataFile):
        return {"sets": len(artifact.sets), "values": sum(len(one.values) for one in artifact.sets)}
    return {}


def _program(program: ProgramFile) -> Facts:
    backends = Counter(one.id for plan in program.plans for one in plan.delegates)
    return {
        "methods": len(program.plans),
        "operators": len({op.full_name for plan in program.plans for op in plan.operators}),
        "delegates": sum(backends.values()),
        "backends": ", ".join(backends),
        "segments": len(program.segments),
        "identifier": program.identifier,
    }
