"""Which instructions a run records: those of modules or debug handles of its record."""

from __future__ import annotations

import re

from inspector.files.load import load_session
from inspector.graph.model_graph import ModelNode
from inspector.jobs.executing import RunJob
from inspector.profile.join_index import join_index
from inspector.worker.exporter import AnswerError
from inspector.worker.inputs import chosen_method

_MOST_NAMES = 12


def chosen_instructions(job: RunJob) -> frozenset[int] | None:
    """Return the instructions whose values a run records, None for all.

    Raises: AnswerError if none belongs to that module or handle; FormatError, OSError
    """
    if not job.only_module and not job.only_handles:
        return None
    session = load_session([job.program, job.record], strict=True)
    if session.program is None:
        raise AnswerError(f"{job.program} is not a program")
    method = chosen_method(session.program, job.method)
    index = join_index(session, method)
    nodes = index.graph.nodes if index.graph is not None else ()
    names = [node.name for node in nodes if _is_chosen(node, job)]
    found = frozenset(step for name in names for step in index.node_instructions.get(name, ()))
    if not found:
        asked = f"module {job.only_module}" if job.only_module else f"handles {job.only_handles}"
        raise AnswerError(f"no instruction of {method} belongs to {asked}; {_available(nodes)}")
    return found


def _is_chosen(node: ModelNode, job: RunJob) -> bool:
    if job.only_handles and node.node.debug_handle not in job.only_handles:
        return False
    modules = [module.path for module in node.node.modules]
    return not job.only_module or any(re.fullmatch(job.only_module, path) for path in modules)


def _available(nodes: tuple[ModelNode, ...]) -> str:
    modules = list(dict.fromkeys(m.path for node in nodes for m in node.node.modules if m.path))
    handles = {node.node.debug_handle for node in nodes if node.node.debug_handle is not None}
    shown = ", ".join(modules[:_MOST_NAMES]) + (", …" if len(modules) > _MOST_NAMES else "")
    span = f"{min(handles)} to {max(handles)}" if handles else "none"
    return f"modules: {shown or 'none'}; handles: {span}"
