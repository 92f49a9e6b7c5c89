"""What the state of a method begins with: the content that the program stores, else zeros.

The content in a record is that from before the export, or from a call of the exported module
since: it shares its buffers with what is compiled afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from inspector.files.session import Session
from inspector.memory.lifetimes import Place, planned_place
from inspector.memory.plan import state_values
from inspector.numerics.state_names import SHARED_FROM, state_names
from inspector.rebuild.torch_bridge import torch_dtype
from runtime.emulation.recorded import RecordedGraph
from schema.program import model as m
from schema.program.program import EXTERNAL, ProgramFile


def empty_state(session: Session, method: str, graph: RecordedGraph) -> dict[str, Any]:
    """Return name -> recorded content of each buffer whose content the program does not store.

    A value without a known name is one of its kind: where the program has as many of a dtype and
    shape as the graph (a payload may hold some), and stores none of them, all begin with zeros.

    Args:
        session: with the program and its record
        method: name of the method
        graph: its reference
    """
    program = session.program
    if program is None or method not in session.methods or not graph.updates:
        return {}
    changed = {name: held for name, held in graph.buffers.values() if name in graph.updates}
    changed = {name: held for name, held in changed.items() if hasattr(held, "shape")}
    values = program.plan(method).values
    names, filled = state_names(session, method), _filled_places(program)
    state = {i: _is_filled(values[i], filled) for i in state_values(program, method)}
    found = {names[i] for i, is_filled in state.items() if i in names and not is_filled}
    left = {name: held for name, held in changed.items() if name not in names.values()}
    nameless = [(_kind(values[i]), filled) for i, filled in state.items() if i not in names]
    for kind in {_kind_of(held) for held in left.values()}:
        alike = [is_filled for one, is_filled in nameless if one == kind]
        asked = [name for name, held in left.items() if _kind_of(held) == kind]
        if len(alike) == len(asked) and not any(alike):
            found.update(asked)
    return {name: held for name, held in changed.items() if name in found}


def _filled_places(program: ProgramFile) -> frozenset[Place]:
    """Return the places shared by methods that the program stores content of in one of them."""
    values: Iterable[m.EValue] = (each for plan in program.plans for each in plan.values)
    places = (planned_place(each) for each in values if _has_content(each))
    return frozenset(place for place in places if place is not None and place[0] >= SHARED_FROM)


def _is_filled(value: m.EValue, filled: frozenset[Place]) -> bool:
    return _has_content(value) or planned_place(value) in filled


def _has_content(value: m.EValue) -> bool:
    tensor = value.val
    if not isinstance(tensor, m.Tensor) or tensor.allocation_info is None:
        return False
    extra = tensor.extra_tensor_info
    return tensor.data_buffer_idx > 0 or (extra is not None and extra.location == EXTERNAL)


def _kind(value: m.EValue) -> Any:  # noqa: ANN401 - dtype of torch and shape
    tensor = value.val
    if not isinstance(tensor, m.Tensor):
        return None
    return torch_dtype(tensor.scalar_type), tuple(tensor.sizes)


def _kind_of(held: Any) -> Any:  # noqa: ANN401 - tensor of torch
    return held.dtype, tuple(held.shape)
