"""Compares shapes and values of a program's tensors with those of a record.

Values are compared if a constant of an operator corresponds to exactly one tensor of the record:
the only one of its type and shape on both sides. A sample of each is read, enough to distinguish
trained weights, so that files of any size are compared quickly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from inspector.check.quantized_weights import RecordedWeights, bits_read, quantized_weights
from inspector.files.payloads import delegate_payload
from inspector.join import record_maps
from inspector.join.channels_last import LAST, moves_images
from inspector.join.facts import Finding, shape_against, stem
from inspector.join.node_index import base_operator, nodes_by_handle
from inspector.join.operands import plan_operands
from inspector.join.saved_tensors import differs, saved_tensors
from schema.backends import backend_of
from schema.errors import FormatError
from schema.etrecord import RecordFile
from schema.etrecord.torch_file.tensor_data import TensorData
from schema.graph import Graph, GraphNode, TensorMeta
from schema.payloads import Payload
from schema.program import ProgramFile, instructions, operator_name
from schema.program import model as m

_REWRITTEN = "batch_norm"  # is folded into the weights before it
_FLOAT32 = 6  # ScalarType of program.fbs

Key = tuple[int, tuple[int, ...]]  # dtype, shape


def tensors_against(program: ProgramFile, plan: m.ExecutionPlan, record: RecordFile) -> Finding:
    """Return how many tensors agree with the record, and the first that does not."""
    graph = record_maps.edge_graph(record, plan.name)
    if graph is None:
        return 0, ""
    handles = record_maps.handles(record, plan.name)
    nodes = _outer_nodes(graph)
    saved = saved_tensors(record, record.roles.edge.get(plan.name) or "")
    agree = 0
    weights: RecordedWeights | None = None
    moved = moves_images(plan, (node.target for node in graph.nodes))
    for step, (_, _, instruction) in enumerate(instructions(plan)):
        args = instruction.instr_args
        known = [node for handle in handles.get(step, ()) for node in nodes.get(handle, ())]
        if isinstance(args, m.KernelCall):
            operator = stem(base_operator(operator_name(plan, args)))
            bits = bits_read(operator_name(plan, args))
            if bits:
                weights = weights or RecordedWeights(graph, saved)
                count, against = quantized_weights(program, plan, step, bits, known, weights)
                if against:
                    return 0, f"instruction {step}: {against}"
                agree += count
            same = [node for node in known if stem(base_operator(node.target)) == operator]
            found = _results(plan, step, _metas(same, graph), moved=moved)
            if len(same) == 1 and not found[1]:
                numbers = _numbers(_constants(program, plan, step), _recorded(same, graph, saved))
                found = found[0] + numbers[0], numbers[1]
        elif isinstance(args, m.DelegateCall) and 0 <= args.delegate_index < len(plan.delegates):
            payload = delegate_payload(program, plan, args.delegate_index)
            found = _delegate(payload, graph, nodes, saved)
        else:
            continue
        if found[1]:
            return 0, f"instruction {step}: {found[1]}"
        agree += found[0]
    return agree, ""


def _outer_nodes(graph: Graph) -> dict[int, tuple[GraphNode, ...]]:
    """Return the nodes by debug handle; those of nested graphs have values with the same names."""
    outer = {id(node) for node in graph.nodes}
    found = nodes_by_handle(graph).items()
    return {handle: tuple(one for one in nodes if id(one) in outer) for handle, nodes in found}


def _results(
    plan: m.ExecutionPlan, step: int, metas: Sequence[TensorMeta], *, moved: bool
) -> Finding:
    """Compare the results of an instruction, whose images may have moved to channels last."""
    known = [meta.sizes for meta in metas]
    known += [tuple(one[dim] for dim in LAST) for one in known if moved and len(one) == len(LAST)]
    agree = 0
    for index in plan_operands(plan)[step].writes:
        tensor = plan.values[index].val
        if not isinstance(tensor, m.Tensor) or not metas:
            continue
        if all(shape_against(tensor.sizes, sizes, bounded=False) for sizes in known):
            shapes = " or ".join(str(list(meta.sizes)) for meta in metas)
            return 0, f"the program plans {list(tensor.sizes)}, the record has {shapes}"
        agree += 1
    return agree, ""


def _metas(nodes: Iterable[GraphNode], graph: Graph) -> list[TensorMeta]:
    values = [graph.values.get(name) for node in nodes for name in node.outputs]
    return [value.tensor for value in values if value is not None and value.tensor is not None]


def _is_plain_constant(tensor: m.Tensor) -> bool:
    standard = tuple(tensor.dim_order) == tuple(range(len(tensor.sizes)))
    return tensor.data_buffer_idx > 0 and tensor.allocation_info is None and standard


def _constants(
    program: ProgramFile, plan: m.ExecutionPlan, step: int
) -> dict[Key, list[memoryview | None]]:
    """Return the constants an instruction reads, by type and shape."""
    stored: dict[Key, list[memoryview | None]] = {}
    for index in plan_operands(plan)[step].reads:
        tensor = plan.values[index].val
        if isinstance(tensor, m.Tensor) and _is_plain_constant(tensor):
            try:
                data = program.constant_data(tensor)
            except FormatError:
                data = None
            stored.setdefault((tensor.scalar_type, tensor.sizes), []).append(data)
    return stored


def _recorded(
    nodes: Iterable[GraphNode], graph: Graph, saved: Mapping[str, TensorData]
) -> dict[Key, dict[str, TensorData]]:
    """Return the saved tensors that these nodes read, by type and shape."""
    found: dict[Key, dict[str, TensorData]] = {}
    for name in (name for node in nodes for name in node.inputs):
        value = graph.values.get(name)
        tensor = saved.get(value.constant) if value is not None and value.constant else None
        if value is not None and tensor is not None:
            found.setdefault((tensor.scalar_type, tensor.sizes), {})[value.constant] = tensor
    return found


def _numbers(
    stored: Mapping[Key, list[memoryview | None]], recorded: Mapping[Key, dict[str, TensorData]]
) -> Finding:
    agree = 0
    for key, blobs in stored.items():
        candidates = recorded.get(key, {})
        if len(blobs) != 1 or len(candidates) != 1:
            continue
        ((name, tensor),) = candidates.items()
        other = differs(tensor, blobs[0])
        if other:
            return 0, f"the values of {name} in the program differ from the record"
        agree += other is False
    return agree, ""


def _delegate(
    payload: Payload,
    graph: Graph,
    nodes: Mapping[int, tuple[GraphNode, ...]],
    saved: Mapping[str, TensorData],
) -> Finding:
    """Compare the matmuls inside a delegate that preserves handles and weights."""
    inner, checks = payload.graph, backend_of(payload.backend_id).checks
    if checks is None or inner is None:
        return 0, ""
    folded = {name for node in graph.nodes if _REWRITTEN in node.target for name in node.inputs}
    data = {constant.name: constant.data for constant in payload.constants}
    agree = 0
    for node in inner.calls():
        ranks = checks.unchanged_ranks.get(node.target)
        known = [
            one
            for handle in payload.debug_handles.get(node.name, ())
            for one in nodes.get(handle, ())
        ]
        if ranks is None or not known:
            continue
        shapes = _extents_against(_metas([node], inner), _metas(known, graph))
        if shapes:
            return 0, shapes
        rewritten = any(folded.intersection(one.outputs) for one in known)
        stored = {} if rewritten else _inner_constants(node, inner, data, ranks)
        count, mismatch = _numbers(stored, _recorded(known, graph, saved))
        if mismatch:
            return 0, mismatch
        agree += count
    return agree, ""


def _count(meta: TensorMeta) -> int:
    return math.prod(size for size in meta.sizes if isinstance(size, int))


def _extents_against(here: list[TensorMeta], there: list[TensorMeta]) -> str:
    """Compare numbers of elements, since backends reorder, merge and add dimensions."""
    if not here or not there or any(isinstance(s, str) for meta in there for s in meta.sizes):
        return ""
    counts = {_count(meta) for meta in there}
    for meta in here:
        if _count(meta) not in counts:
            shapes = " or ".join(sorted({str(list(one.sizes)) for one in there}))
            return f"the payload has {list(meta.sizes)}, the record has {shapes}"
    return ""


def _inner_constants(
    node: GraphNode,
    inner: Graph,
    data: Mapping[str, memoryview | None],
    ranks: tuple[int, ...],
) -> dict[Key, list[memoryview | None]]:
    stored: dict[Key, list[memoryview | None]] = {}
    for name in node.inputs:
        value = inner.values.get(name)
        tensor = value.tensor if value is not None and value.constant else None
        if value is None or tensor is None or tensor.quantization is not None:
            continue
        sizes = tuple(size for size in tensor.sizes if isinstance(size, int))
        if tensor.scalar_type == _FLOAT32 and len(sizes) == len(tensor.sizes) in ranks:
            stored.setdefault((_FLOAT32, sizes), []).append(data.get(value.constant))
    return stored
