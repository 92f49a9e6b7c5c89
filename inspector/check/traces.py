"""Traces against programs, records and debug buffers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inspector.join import record_maps
from inspector.join.facts import (
    Finding,
    JoinEvidence,
    Nodes,
    is_made_later,
    shape_against,
    stem,
)
from inspector.join.kernels import (
    foreign_kernels,
    inner_events,
    is_product,
    is_quantized_kernel,
    kernels_against,
    quantized_matmul,
)
from inspector.join.methods import KIND_OF_EVENT, is_execution, match_methods
from inspector.join.node_index import base_operator, nodes_by_handle, walk_nodes
from inspector.join.operands import plan_operands
from inspector.trace.blocks import Block, trace_blocks
from inspector.trace.event_kinds import DELEGATE_CALL, EXECUTE, KERNEL_PREFIX
from schema.errors import Severity
from schema.etdump import ETDump
from schema.etdump.debug_buffer import DebugBuffer, tensor_extents
from schema.etrecord import RecordFile
from schema.graph import Graph, GraphNode
from schema.program import ProgramFile, instructions
from schema.program import model as m

# Kernels of loops over slices, which have no recorded node.
_LOOP_KERNELS = frozenset({"select_copy", "copy", "et_copy_index"})


def program_and_trace(program: ProgramFile, dump: ETDump) -> JoinEvidence:
    """Every event of an instruction must be of the kind and operator the program has there."""
    what = "instruction indices, kinds, operators and logged shapes of every run"
    matched = 0
    for block in trace_blocks((dump,)).blocks:
        if not is_execution(block):
            matched += _runs_nothing(program, block)
            continue
        count, mismatch = _program_against(program, block)
        if mismatch:
            return JoinEvidence(what, 0, mismatch)
        matched += count
    return JoinEvidence(what, matched)


def _runs_nothing(program: ProgramFile, block: Block) -> bool:
    """Return whether all methods of the program have no instructions."""
    working = [plan for plan in program.plans if plan.inputs or instructions(plan)]
    idle = bool(working) and not any(instructions(plan) for plan in working)
    return idle and any(name in EXECUTE for name in block.strings)


def _program_against(program: ProgramFile, block: Block) -> Finding:
    """Return the facts that match the best method, or the first contradiction to all."""
    matches = match_methods(program, block)
    if not matches:
        return 0, "the trace has a run, the program no method with instructions"
    first = ""
    for match in matches:
        if match.mismatch:
            return 0, first or match.mismatch
        plan = program.plan(match.method)
        findings = (_logged_shapes(plan, block), kernels_against(program, plan, block))
        against = next((mismatch for _, mismatch in findings if mismatch), "")
        if not against:
            return match.matched + sum(count for count, _ in findings), ""
        first = first or against
    return 0, first


def _logged_shapes(plan: m.ExecutionPlan, block: Block) -> Finding:
    """Tensors a kernel logged must have the type and shape the program plans for its results."""
    operands = plan_operands(plan)
    steps = instructions(plan)
    agree = 0
    seen: set[int] = set()
    for event in range(len(block)):
        number = block.instruction(event)
        if number is None or number in seen or not 0 <= number < len(steps):
            continue
        if block.layout.chain[event] != 0 or block.delegate_id(event) is not None:
            continue
        seen.add(number)
        if not isinstance(steps[number][2].instr_args, m.KernelCall):
            continue
        writes = [plan.values[index].val for index in operands[number].writes]
        planned = [value for value in writes if isinstance(value, m.Tensor)]
        logged = [t for v in block.debug_values(event, 0) if v is not None for t in v.all_tensors()]
        if len(logged) != len(planned):
            continue  # a loop logs every pass
        for here, there in zip(logged, planned, strict=True):
            bounded = there.shape_dynamism != 0
            if here.scalar_type != there.scalar_type or shape_against(
                here.sizes, there.sizes, bounded
            ):
                return (
                    0,
                    f"instruction {number}: the trace logs {here.sizes}, planned {there.sizes}",
                )
            agree += 1
    return agree, ""


def record_and_trace(record: RecordFile, dump: ETDump) -> JoinEvidence:
    """Delegate calls and operators of the trace must be those the record maps."""
    what = "mapped instructions, delegates and operators of every run"
    matched = 0
    methods = record.debug_handle_map or {}
    for block in trace_blocks((dump,)).blocks:
        if not is_execution(block) or not methods:
            continue
        findings = [_trace_against(block, record, method) for method in methods]
        best = min(findings, key=lambda finding: (bool(finding[1]), -finding[0]))
        if best[1]:
            return JoinEvidence(what, 0, best[1])
        matched += best[0]
    return JoinEvidence(what, matched)


def _trace_against(block: Block, record: RecordFile, method: str) -> Finding:
    handles = record_maps.handles(record, method)
    delegates = record_maps.delegates(record, method)
    graph = record_maps.edge_graph(record, method)
    nodes: Nodes = nodes_by_handle(graph) if graph is not None else {}
    if graph is not None and not handles:
        return _kernels_against(block, graph)
    origins = record_maps.origins(record, method).nodes
    names = {node.name for node in graph.nodes} if graph is not None else set[str]()
    agree = 0
    seen: set[int] = set()
    for event in range(len(block)):
        number, name = block.instruction(event), block.event_name(event)
        if block.layout.chain[event] < 0 or number is None or block.delegate_id(event) is not None:
            continue
        seen.add(number)
        own = handles.get(number, ())
        called = name.removeprefix(KERNEL_PREFIX).partition(".")[0]
        is_later = is_made_later(called, origins.get(number, ""), names)
        against = _event_against(name, number in delegates, own, {} if is_later else nodes)
        if not against and not own and handles and "JF_CALL" not in block.strings:
            against = _unmapped(name)
        if not against and graph is not None:
            against = _values_against(block, event, graph, own, nodes)
        if against:
            return 0, f"instruction {number}: {against}"
        agree += number in handles
    if "JF_CALL" not in block.strings:
        absent = sorted((delegates.keys() | handles.keys()) - seen)
        if absent:
            return 0, f"the record maps instruction {absent[0]}, the trace has no event of it"
    against = _inner_against(block, record, method, graph)
    return (0, against) if against else (agree, "")


def _inner_against(block: Block, record: RecordFile, method: str, graph: Graph | None) -> str:
    """Kernels in a delegate must be those of its backend, and quantized only if the model is."""
    delegates = record_maps.delegates(record, method)
    handles = record_maps.handles(record, method)
    nodes: Nodes = nodes_by_handle(graph) if graph is not None else {}
    quantized = graph is None or any("quant" in node.target for node in walk_nodes(graph))
    for number, names in inner_events(block).items():
        if number in delegates:
            against = foreign_kernels(delegates[number].name, names)
            if against:
                return f"instruction {number}: {against}"
        first = next(filter(is_quantized_kernel, names), "")
        if first and not quantized:
            return (
                f"instruction {number}: the trace has {first!r}, the record has nothing quantized"
            )
        inside = [node for handle in handles.get(number, ()) for node in nodes.get(handle, ())]
        against = "" if first else _float_against(names, inside)
        if against:
            return f"instruction {number}: {against}"
    return ""


def _float_against(names: list[str], inside: list[GraphNode]) -> str:
    """Return why a delegate whose products are all of floats is not the one that was recorded."""
    product = next(filter(is_product, names), "")
    recorded = quantized_matmul(inside) if product else ""
    if not recorded:
        return ""
    return f"the trace has {product!r}, the record {recorded} of quantized values"


def _event_against(name: str, is_delegate: bool, handles: tuple[int, ...], nodes: Nodes) -> str:
    if name in KIND_OF_EVENT and is_delegate != (name == DELEGATE_CALL):
        recorded = "a delegate" if is_delegate else "no delegate"
        return f"the trace has {name}, the record {recorded}"
    if not name.startswith(KERNEL_PREFIX):
        return ""
    known = [base_operator(node.target) for handle in handles for node in nodes.get(handle, ())]
    stems = {stem(operator.split("::")[-1]) for operator in known}
    called = stem(name.removeprefix(KERNEL_PREFIX).split(".")[0])
    if not known or called in stems:
        return ""
    return f"the trace has {name}, the record {', '.join(sorted(set(known)))}"


def _unmapped(name: str) -> str:
    called = name.removeprefix(KERNEL_PREFIX).split(".")[0]
    # The write-back of state comes after the record's numbering.
    if not name.startswith(KERNEL_PREFIX) or stem(called) == "copy":
        return ""
    return f"the trace has {name}, the record maps nothing there"


def _kernels_against(block: Block, graph: Graph) -> Finding:
    """Without a map, every kernel that ran must at least be an operator of the graph."""
    known = {stem(base_operator(node.target).split("::")[-1]) for node in walk_nodes(graph)}
    agree = 0
    for event in range(len(block)):
        name = block.event_name(event)
        if not name.startswith(KERNEL_PREFIX):
            continue
        called = stem(name.removeprefix(KERNEL_PREFIX).split(".")[0])
        if called not in known and called not in _LOOP_KERNELS:
            return 0, f"the trace has {name}, the record's graph no such operator"
        agree += called in known
    return agree, ""


def _values_against(
    block: Block, event: int, graph: Graph, handles: tuple[int, ...], nodes: Nodes
) -> str:
    """Logged results of a kernel must have the shape of some recorded node of its handle."""
    if not block.event_name(event).startswith(KERNEL_PREFIX):
        return ""
    values = [value for value in block.debug_values(event, 0) if value is not None]
    recorded = [
        graph.values[name].tensor
        for handle in handles
        for node in nodes.get(handle, ())
        for name in node.outputs
        if name in graph.values
    ]
    metas = [meta for meta in recorded if meta is not None]
    for tensor in (tensor for value in values for tensor in value.all_tensors()):
        fits = any(not shape_against(tensor.sizes, meta.sizes, bounded=False) for meta in metas)
        if metas and not fits:
            shapes = " or ".join(str(list(meta.sizes)) for meta in metas)
            return f"the trace logs {list(tensor.sizes)}, the record has {shapes}"
    return ""


def trace_and_buffer(dump: ETDump, buffer: DebugBuffer) -> JoinEvidence:
    """Every logged tensor must lie in the buffer, which contains nothing else."""
    what = "extents of the logged tensors"
    starts, ends = tensor_extents(dump)
    # A trace that lost a block does not describe all bytes.
    whole = all(issue.severity is Severity.INFO for issue in dump.issues)
    if len(starts) == 0:
        used = whole and any(buffer.data[:4096])
        return JoinEvidence(what, 0, "the trace logs no tensor" if used else "")
    size = len(buffer.data)
    if int(ends.max()) > size:
        last = int(ends.max())
        return JoinEvidence(what, 0, f"a logged tensor ends at byte {last} of a {size}-byte buffer")
    stray = _stray_byte(buffer, starts, ends) if whole else None
    if stray is not None:
        return JoinEvidence(what, 0, f"byte {stray} of the buffer is set but belongs to no tensor")
    return JoinEvidence(what, len(starts))


def _stray_byte(
    buffer: DebugBuffer, starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> int | None:
    """Return the first non-zero byte outside of all tensors; the runtime leaves gaps zero."""
    data = np.frombuffer(buffer.data, dtype=np.uint8)
    order = np.argsort(starts, kind="stable")
    reached = np.concatenate([[0], np.maximum.accumulate(ends[order])])
    begins = np.concatenate([starts[order], [len(data)]])
    for gap in np.flatnonzero(begins > reached):
        inside = data[reached[gap] : begins[gap]]
        if inside.any():
            return int(reached[gap] + np.flatnonzero(inside)[0])
    return None
