"""Previews of the delegation of a job, from the programs of a warm worker."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.delegate.extract import DelegateRegion
from compiler.delegate.to_backend import parted_by
from compiler.dialect.delegate_call import executorch_call_delegate
from compiler.errors import CompileError
from compiler.interface.partitioner import TAG, name_of
from compiler.partition.reasons import operator_of, value_of
from compiler.partition.regions import follows_source, sources, unit_of
from compiler.partition.rules import innermost_module, names_behind
from compiler.partition.tags import data_of
from compiler.partition.verdicts import calls_in
from compiler.pipeline.preview import Previewed, previewed
from compiler.stages import Observer
from inspector.graph.boundaries import Boundary, Crossing, is_quantization
from inspector.jobs.preview import (
    MethodPreview,
    NodePreview,
    PartitionPreview,
    Preview,
    PreviewJob,
    SuggestJob,
)
from inspector.jobs.suggestions import suggestions_of
from inspector.recipes.compile_job import CompileJob
from inspector.roofline.call_costs import usual_costs
from inspector.worker import compile_job, exporter
from inspector.worker.compile_job import MessageCollector, source_of
from inspector.worker.exporter import Exported
from inspector.worker.lowering import (
    check_names,
    edge_config,
    partitioners_of,
    passes_of,
    sentences_of_rules,
)
from inspector.worker.tasks import Task
from inspector.worker.warm import Warm
from schema.backends import backend_of, resolve
from schema.objects.codec import to_json

Node = torch.fx.Node
failure = compile_job.failure


def preview(job: PreviewJob, task: Task) -> dict[str, Any]:
    """Return a preview of the delegation, as JSON content."""
    requested, warm, listener = job.compile, task.warm or Warm(), MessageCollector(task.notify)
    check_names(requested)
    return to_json(
        preview_of(requested, job_source(requested, warm, listener), warm, listener.observe)
    )


def suggest(job: SuggestJob, task: Task) -> dict[str, Any]:
    """Return changes of a compile that reduce boundaries, as JSON content."""
    requested, warm, listener = job.compile, task.warm or Warm(), MessageCollector(task.notify)
    check_names(requested)
    source = job_source(requested, warm, listener)

    def tried(changed: CompileJob) -> Preview:
        task.notify("stage", stage="try a suggestion")
        return preview_of(changed, source, warm, listener.observe)

    return to_json(suggestions_of(requested, tried, usual_costs()))


def job_source(job: CompileJob, warm: Warm, listener: MessageCollector) -> Exported:
    """Return the exported and quantized programs of a job."""
    if not warm.knows(job):
        exporter.redirect_logs(listener)
    with tempfile.TemporaryDirectory() as folder:
        source = warm.source(job, lambda: source_of(job, Path(folder), listener), listener)
    return warm.quantize_source(job, source, listener)


def preview_of(job: CompileJob, source: Exported, warm: Warm, observe: Observer) -> Preview:
    """Return a preview of the delegation of a job.

    Args:
        job: whose partitioners and rules
        source: its programs, quantized
        warm: cache of edge programs
        observe: called with stages

    Raises: CompileError; AnswerError for unknown partitioners
    """
    partitioners = partitioners_of(job)
    found = previewed(
        source.programs,
        passes_of(job) or None,
        partitioners or None,
        edge_config(job),
        kept=warm.store_for(job),
        observer=observe,
    )
    names = [name_of(one) for one in partitioners]
    methods = {name: _method(one, names) for name, one in found.items()}
    every = [*source.programs.values(), *(one.program for one in found.values())]
    verdicts = [verdict for one in found.values() for verdict in one.verdicts]
    return Preview(methods, tuple(sentences_of_rules(job, every, verdicts)))


@dataclass(frozen=True)
class _PartitionIndex:
    """The partitions of the nodes of a program.

    Attributes:
        number: index of the partition by node name, bodies included
        owned: by partition, the weights and state in its payload
        moves: by partition, inputs and results that are reordered in memory inside
    """

    number: Mapping[str, int]
    owned: Mapping[int, frozenset[str]]
    moves: Mapping[int, tuple[frozenset[str], frozenset[str]]]


def _method(found: Previewed, names: list[str]) -> MethodPreview:
    partitions: list[PartitionPreview] = []
    number: dict[str, int] = {}
    owned: dict[int, frozenset[str]] = {}
    moves: dict[int, tuple[frozenset[str], frozenset[str]]] = {}
    for partitioner, tagged in zip(names, found.rounds, strict=True):
        paths = dict(calls_in(tagged.program.graph_module))
        graph = tagged.program.graph
        held = frozenset(n.name for n in graph.nodes if n.op == "placeholder" and n.meta.get(TAG))
        for region in parted_by(tagged).regions:
            at = len(partitions)
            number.update((paths[node], at) for node in region.nodes)
            owned[at] = held
            moves[at] = moves_of(region)
            calls = tuple(paths[node] for node in region.nodes if not follows_source(node))
            spec = region.spec
            partitions.append(
                PartitionPreview(region.tag, str(spec.backend_id), partitioner, calls)
            )
    home = _PartitionIndex(number, owned, moves)
    nodes = tuple(
        _node(node, path, number.get(path))
        for node, path in calls_in(found.program.graph_module)
        if not follows_source(node)
    )
    return MethodPreview(
        nodes, tuple(partitions), tuple(_boundaries(found.program, home)), found.verdicts
    )


def _node(node: Node, path: str, partition: int | None) -> NodePreview:
    inside = path.removesuffix(node.name)
    reads = dict.fromkeys(f"{inside}{source.name}" for source in sources(node))
    names = names_behind(node)
    exported = names[1] if len(names) > 1 else ""
    return NodePreview(path, operator_of(node), partition, exported, _module(node), tuple(reads))


def moves_of(region: DelegateRegion) -> tuple[frozenset[str], frozenset[str]]:
    """Return the inputs and the results of a partition that its delegate transposes.

    Empty for backends without such a function in their traits, and for refused partitions.
    """
    border_moves = backend_of(region.spec.backend_id).border_moves
    if not border_moves:
        return frozenset(), frozenset()
    try:
        inputs, results = resolve(border_moves)(region.program)
    except CompileError:
        return frozenset(), frozenset()
    return frozenset(_source_name(n) for n in region.inputs if n.name in inputs), results


def _source_name(node: Node) -> str:
    """Return the name of the node that computes a value, maybe inside an earlier delegate."""
    call: Any = node.args[0] if follows_source(node) else None
    if not isinstance(call, Node) or call.target is not executorch_call_delegate:
        return node.name
    home: Any = call.args[0]
    module: Any = getattr(call.graph.owning_module, home.target)
    outputs: Any = module.original_module.graph_signature.user_outputs
    place: Any = node.args[1]
    return str(outputs[place])


def _module(node: Node) -> str:
    return innermost_module(node).removeprefix("L['self'].").removeprefix("L['self']")


def _boundaries(program: ExportedProgram, home: _PartitionIndex) -> Iterator[Boundary]:
    found: dict[tuple[int | None, int | None], dict[str, tuple[Crossing, bool]]] = {}
    data = data_of(program)
    for path, graph in _graphs(program.graph_module):
        for node in graph.nodes:
            if isinstance(node.meta.get("val"), torch.Tensor):
                for edge, crossing, is_end in _crossings(node, path, home, data.specs):
                    known = found.setdefault(edge, {})
                    before = known.get(crossing.name)
                    known[crossing.name] = (crossing, is_end and (before is None or before[1]))
    for (source, target), values in found.items():
        crossings = tuple(crossing for crossing, _ in values.values())
        yield Boundary(source, target, crossings, all(is_end for _, is_end in values.values()))


def _graphs(module: torch.fx.GraphModule, path: str = "") -> Iterator[tuple[str, torch.fx.Graph]]:
    yield path, module.graph
    for name, child in module.named_children():
        if isinstance(child, torch.fx.GraphModule):
            yield from _graphs(child, f"{path}{name}/")


def _crossings(
    node: Node, path: str, home: _PartitionIndex, data: Mapping[str, Any]
) -> Iterator[tuple[tuple[int | None, int | None], Crossing, bool]]:
    """Yield crossings of boundaries, and whether they are inputs or outputs of the program."""
    source = home.number.get(f"{path}{unit_of(node).name}")
    is_weight = not path and node.op == "placeholder" and node.name in data
    for user in node.users:
        target = home.number.get(f"{path}{unit_of(user).name}")
        if target == source or (follows_source(user) and unit_of(user) is unit_of(node)):
            continue
        if is_weight and target is not None and node.name in home.owned[target]:
            continue
        is_end = node.op == "placeholder" or user.op == "output"
        yield (source, target), _crossing(node, user, path, home, (source, target)), is_end


def _crossing(
    node: Node, user: Node, path: str, home: _PartitionIndex, edge: tuple[int | None, int | None]
) -> Crossing:
    value = node.meta["val"]
    sizes = tuple(value.shape)
    known = all(isinstance(size, int) for size in sizes)
    source, target = edge
    copies = 0
    if source is not None:
        copies += node.name in home.moves[source][1]
    if target is not None:
        copies += node.name in home.moves[target][0]
    outside = [(node, source), (user, target)]
    return Crossing(
        f"{path}{node.name}",
        value_of(node),
        value.numel() * value.element_size() if known else None,
        copies,
        tuple(f"{path}{each.name}" for each, at in outside if at is None and _quantizes(each)),
    )


def _quantizes(node: Node) -> bool:
    return node.op == "call_function" and is_quantization(operator_of(node))
