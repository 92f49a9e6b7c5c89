"""Names of the constants of a program, which a file without qualified names calls by number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from inspector.files.session import Session
from inspector.join.saved_tensors import differs, saved_tensors
from inspector.numerics.tensors import StoredTensor, stored_tensors
from inspector.profile.join_index import JoinIndex, join_index
from schema.etrecord.torch_file.tensor_data import TensorData
from schema.objects.identity_cache import identity_cache


@identity_cache
def constant_names(session: Session, method: str) -> dict[int, str]:
    """Return value -> name of each stored tensor of a method.

    That of the file; else that of the recorded weight with the same type, shape and content, of
    several the one of the module that reads it; else the number behind the module that reads it.
    """
    stored = stored_tensors(session, method)
    found = {one.value: one.name for one in stored}
    unnamed = [one for one in stored if one.name == f"v{one.value}"]
    if not unnamed or session.record is None:
        return found
    saved = saved_tensors(session.record, session.record.roles.edge.get(method) or "")
    index = join_index(session, method)
    taken: set[str] = set()
    for one in unnamed:
        modules = _readers(index, one.value)
        name = _recorded_name(one, saved, modules, taken)
        taken.add(name)
        if name:
            found[one.value] = name
        elif len(modules) == 1:
            found[one.value] = f"{modules[0]} {one.name}"
    return found


def named_tensors(session: Session, method: str) -> tuple[StoredTensor, ...]:
    """Return the stored tensors of a method by the names of constant_names."""
    names = constant_names(session, method)
    stored = stored_tensors(session, method)
    return tuple(replace(one, name=names[one.value]) for one in stored)


def _readers(index: JoinIndex, value: int) -> tuple[str, ...]:
    """Return the modules that read a value."""
    graph = index.graph
    steps = [number for number, one in enumerate(index.operands) if value in one.reads]
    names = [name for step in steps for name in index.instruction_nodes.get(step, ())]
    if graph is None:
        return ()
    nodes = (graph.nodes[graph.by_name[name]] for name in names if name in graph.by_name)
    return tuple(dict.fromkeys(node.node.module_path for node in nodes if node.node.module_path))


def _recorded_name(
    one: StoredTensor, saved: Mapping[str, TensorData], modules: tuple[str, ...], taken: set[str]
) -> str:
    alike = [
        name
        for name, other in saved.items()
        if other.sizes == one.sizes
        and other.scalar_type == one.code
        and name not in taken
        and (not one.nbytes or differs(other, one.data) is False)
    ]
    own = [name for name in alike if name.rpartition(".")[0] in modules]
    return (own or alike)[0] if own or len(alike) == 1 else ""
