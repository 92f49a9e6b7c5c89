"""The float program of a quantized one, as the reference of its numeric gap."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram, default_decompositions

from compiler.record.graph import program_json
from inspector.compare.float_pairs import FloatPairs, Place, edge_places
from inspector.files.session import Session
from inspector.numerics.aten_map import aten_values
from inspector.numerics.flat_graph import FlatGraph, Value, flat_graph
from inspector.numerics.replay.analysis import NO_FLOAT
from inspector.numerics.replay.exported_graph import exported_graph
from inspector.numerics.replay.references import MappedReference, ReferenceGraph
from inspector.rebuild.torch_bridge import saved_tensor
from inspector.recipes.float_program import float_program
from inspector.worker.exporter import FORWARD, Say
from inspector.worker.source_program import source_program
from schema.etrecord import RecordFile
from schema.etrecord.budget import Budget
from schema.etrecord.graph.graph_json import read_program
from schema.graph import Graph

_OTHER_WEIGHTS = "returns other weights at each call, so these are not its own: seed it"
_CHECKED = 24  # weights that are compared to know whether both programs have the same
_ALIKE = 0.7  # cosine of a weight and its roundings; of two random ones it is near 0
_LARGEST = 8  # times the size of its JSON that a graph costs while it is read


def float_reference(session: Session, method: str, notify: Say) -> MappedReference | str:
    """Return the float program of a method and where its values are, or why it is unknown.

    Raises: AnswerError, FormatError, RebuildError, OSError; errors of the user's code
    """
    found = float_program(session, method)
    if isinstance(found, str):
        return f"{NO_FLOAT}: {found}"
    record = session.record
    edge = record.edge_graph(method) if record is not None else None
    if record is None or edge is None:
        return f"{NO_FLOAT}: {session.name} has no recorded program of {method}"
    flat = flat_graph(edge)
    program = source_program(found.source, method, notify)
    quantized, member, between = _recorded(record, method, flat)
    if member != record.roles.exported:
        program = _lowered_like(program, flat)
    pairs = FloatPairs(quantized, _graph(program, method))
    if _has_other_weights(pairs.weights, record, member, program):
        return f"{NO_FLOAT}: {found.source} {_OTHER_WEIGHTS}"
    places = edge_places(flat, between, pairs)
    graph = ReferenceGraph(record, found.words, exported_graph(program), program)
    notes = (found.note,) if found.note else ()
    return MappedReference(
        graph, places.values, places.scales, places.rounded, is_float=True, notes=notes
    )


def _graph(program: ExportedProgram, method: str) -> Graph:
    text = program_json(program, edge=False)
    return read_program(text, method, Budget(_LARGEST * len(text))).graph


def _recorded(
    record: RecordFile, method: str, flat: FlatGraph
) -> tuple[Graph, str, Mapping[Value, Place]]:
    """Return the recorded graph nearest to the source, its member, and the edge values in it."""
    roles = record.roles
    if roles.exported and (method == FORWARD or len(roles.edge) <= 1):
        return record.graph(roles.exported), roles.exported, aten_values(record, flat)
    own = {value: (value[0], node.node.name, at) for value, (node, at) in flat.producers.items()}
    own |= {value: ((), value[1], 0) for value in flat.inputs}
    return flat.graph, roles.edge[method], own


def _lowered_like(program: ExportedProgram, edge: FlatGraph) -> ExportedProgram:
    """Return a program with the operators decomposed that a recorded edge graph has not either.

    Else one operator, as a SiLU, would stand beside the several that it became.
    """
    kept = {node.operator for node in edge.nodes}
    table: Any = default_decompositions()
    names = {op: str(op.name()).partition(".")[0] for op in table}  # without overload
    rules = {op: rule for op, rule in table.items() if names[op] not in kept}
    untyped: Any = program
    with warnings.catch_warnings():  # torch copies one of its own deprecated classes
        warnings.filterwarnings("ignore", ".*LeafSpec", FutureWarning)
        return untyped.run_decompositions(rules)


def _has_other_weights(
    names: Sequence[tuple[str, str]], record: RecordFile, member: str, program: ExportedProgram
) -> bool:
    """Return whether most weights of two programs differ: the source was random."""
    saved = {**record.state_dict(member), **record.constants(member)}
    held: dict[str, Any] = {**program.state_dict, **program.constants}
    equal = differing = 0
    for one, two in names:
        mine, other = held.get(one), saved.get(two)
        if not isinstance(mine, torch.Tensor) or other is None or equal + differing >= _CHECKED:
            continue
        its = saved_tensor(other)
        if its is None or tuple(its.shape) != tuple(mine.shape) or _is_plain(mine):
            continue
        same = _alike(mine.detach(), its)
        equal, differing = equal + same, differing + (not same)
    return differing > equal


def _is_plain(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has one value only, as fresh norms have."""
    return tensor.numel() == 0 or bool((tensor == tensor.reshape(-1)[0]).all())


def _alike(weight: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether a tensor is another one, or its roundings."""
    if weight.dtype == other.dtype:
        return torch.equal(weight, other)
    rows = weight.reshape(weight.shape[0], -1).double(), other.reshape(weight.shape[0], -1).double()
    cosine = torch.nn.functional.cosine_similarity(*rows).nanmedian()
    return bool(cosine > _ALIKE)
