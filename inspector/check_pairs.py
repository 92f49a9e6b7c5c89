"""The comparisons of two files: what must agree when they come from one build or one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector import record_maps
from inspector.blocks import Block, trace_blocks
from inspector.links import base_operator, nodes_by_handle
from inspector.methods import KIND_OF_EVENT, is_execution, match_methods
from schema.bundled import BundledProgram
from schema.debug_buffer import DebugBuffer, tensor_extents
from schema.etdump import ETDump
from schema.etrecord import ETRecord
from schema.flat_tensor import FlatTensor
from schema.graph import Graph, GraphNode
from schema.program import Program, backend_id, instructions, operator_name
from schema.program import model as m
from schema.scalar_type import scalar_type

_EXTERNAL = 1
_NAMESPACES = ("aten", "dim_order_ops", "quantized_decomposed")
_NATIVE = "native_call_"
Nodes = Mapping[int, tuple[GraphNode, ...]]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a comparison found.

    Attributes:
        what: the facts compared, in words
        matched: how many agree
        mismatch: first contradiction, empty when there is none
    """

    what: str
    matched: int = 0
    mismatch: str = ""


def program_and_program(first: Program, second: Program) -> Evidence:
    """Two programs belong together only when they are the same."""
    what = "content"
    if first == second:
        return Evidence(what, 1)
    return Evidence(what, 0, "they are two different programs")


def program_and_trace(program: Program, dump: ETDump) -> Evidence:
    """Every event of an instruction must be of the kind and operator the program has there."""
    what = "instruction numbers, kinds and operators of every run"
    matched = 0
    for block in trace_blocks((dump,)).blocks:
        if not is_execution(block):
            continue
        matches = match_methods(program, block)
        if not matches:
            return Evidence(what, 0, "the trace has a run, the program no method with instructions")
        if matches[0].mismatch:
            return Evidence(what, 0, matches[0].mismatch)
        matched += matches[0].matched
    return Evidence(what, matched)


def program_and_record(program: Program, record: ETRecord) -> Evidence:
    """The record's instruction maps, delegates, operators and inputs must be the program's."""
    what = "methods, mapped instructions, delegates, operators and inputs"
    matched = 0
    for plan in program.plans:
        if not instructions(plan):
            continue
        if record.debug_handle_map and plan.name not in (record.debug_handle_map or {}):
            names = ", ".join(record.debug_handle_map or ())
            return Evidence(what, 0, f"the program has method {plan.name}, the record has {names}")
        for compare in (_maps, _delegates, _operators, _inputs):
            count, mismatch = compare(plan, record)
            if mismatch:
                return Evidence(what, 0, f"method {plan.name}: {mismatch}")
            matched += count
    extra = [name for name in record.debug_handle_map or () if name not in _names(program)]
    if extra:
        return Evidence(what, 0, f"the record has method {extra[0]}, the program does not")
    return Evidence(what, matched)


def _names(program: Program) -> set[str]:
    return {plan.name for plan in program.plans}


Finding = tuple[int, str]  # facts that agree, first mismatch


def _maps(plan: m.ExecutionPlan, record: ETRecord) -> Finding:
    mapped = record_maps.handles(record, plan.name)
    if not mapped:
        return 0, ""
    steps = instructions(plan)
    called: set[int] = set()
    jumps = False
    for step, (_, _, instruction) in enumerate(steps):
        jumps = jumps or isinstance(instruction.instr_args, m.JumpFalseCall)
        if isinstance(instruction.instr_args, (m.KernelCall, m.DelegateCall)):
            called.add(step)
    for number in sorted(mapped):
        if number not in called:
            return 0, (
                f"the record maps instruction {number}, the program has {len(steps)} instructions"
                " and no operator there"
            )
    missing = sorted(called - mapped.keys())
    if missing and not jumps:
        return 0, f"the program calls instruction {missing[0]}, the record does not map it"
    return len(mapped), ""


def _delegates(plan: m.ExecutionPlan, record: ETRecord) -> Finding:
    if plan.name not in (record.delegate_map or {}) and not record.debug_handle_map:
        return 0, ""
    recorded = record_maps.delegates(record, plan.name)
    called = {
        step: backend_id(plan, row[2].instr_args)
        for step, row in enumerate(instructions(plan))
        if isinstance(row[2].instr_args, m.DelegateCall)
    }
    jumps = any(isinstance(row[2].instr_args, m.JumpFalseCall) for row in instructions(plan))
    for number in sorted(called.keys() | recorded.keys()):
        here, there = called.get(number), recorded.get(number)
        if there is not None and here != there.name:
            found = f"calls {here}" if here else "calls no delegate"
            return 0, f"instruction {number}: the record says {there.name}, the program {found}"
        if there is None and not jumps:
            return 0, f"instruction {number}: the program calls {here}, the record no delegate"
    return len(called), ""


def _operators(plan: m.ExecutionPlan, record: ETRecord) -> Finding:
    graph = record_maps.edge_graph(record, plan.name)
    if graph is None:
        return 0, ""
    handles = record_maps.handles(record, plan.name)
    nodes = nodes_by_handle(graph)
    agree = 0
    for step, (_, _, instruction) in enumerate(instructions(plan)):
        args = instruction.instr_args
        if not isinstance(args, m.KernelCall):
            continue
        against = _operator_against(operator_name(plan, args), handles.get(step, ()), nodes)
        if against is None:
            continue
        if against:
            return 0, f"instruction {step}: {against}"
        agree += 1
    return agree, ""


def _operator_against(operator: str, handles: tuple[int, ...], nodes: Nodes) -> str | None:
    """Return a contradiction, empty text for agreement, None when there is nothing to compare."""
    known = [node for handle in handles for node in nodes.get(handle, ())]
    if not handles or operator.split("::")[0] not in _NAMESPACES:
        return None
    if not known:
        return f"the program calls {operator}, the record has no node with handle {handles[0]}"
    recorded = {_stem(base_operator(node.target)) for node in known}
    if _stem(base_operator(operator)) in recorded:
        return ""
    foreign = not any(name.split("::")[0] in _NAMESPACES for name in recorded)
    if foreign:
        return None
    return f"the program calls {operator}, the record has {', '.join(sorted(recorded))}"


def _stem(name: str) -> str:
    return name.rstrip("_")  # a re-inplaced operator is the same operator


def _inputs(plan: m.ExecutionPlan, record: ETRecord) -> Finding:
    graph = record_maps.edge_graph(record, plan.name)
    if graph is None or not graph.inputs:
        return 0, ""
    if len(graph.inputs) != len(plan.inputs):
        return 0, (
            f"the program takes {len(plan.inputs)} inputs, the record's graph {len(graph.inputs)}"
        )
    agree = 0
    for position, (name, index) in enumerate(zip(graph.inputs, plan.inputs, strict=True)):
        against = _input_against(graph, name, plan, index)
        if against:
            return 0, f"input {position}: {against}"
        agree += 1
    return agree, ""


def _input_against(graph: Graph, name: str, plan: m.ExecutionPlan, index: int) -> str:
    value = graph.values.get(name)
    here = plan.values[index].val if 0 <= index < len(plan.values) else None
    if value is None or value.tensor is None or not isinstance(here, m.Tensor):
        return ""
    there = value.tensor
    if there.scalar_type >= 0 and there.scalar_type != here.scalar_type:
        return (
            f"the program takes {scalar_type(here.scalar_type).name},"
            f" the record's graph {there.dtype}"
        )
    if len(there.sizes) != len(here.sizes) or any(
        isinstance(size, int) and size != bound
        for size, bound in zip(there.sizes, here.sizes, strict=True)
    ):
        return f"the program takes {here.sizes}, the record's graph {there.sizes}"
    return ""


def record_and_trace(record: ETRecord, dump: ETDump) -> Evidence:
    """Delegate calls and operators of the trace must be those the record maps."""
    what = "mapped instructions, delegates and operators of every run"
    matched = 0
    for block in trace_blocks((dump,)).blocks:
        if not is_execution(block) or not record.debug_handle_map:
            continue
        findings = [_trace_against(block, record, method) for method in record.debug_handle_map]
        best = min(findings, key=lambda finding: (bool(finding[1]), -finding[0]))
        if best[1]:
            return Evidence(what, 0, best[1])
        matched += best[0]
    return Evidence(what, matched)


def _trace_against(block: Block, record: ETRecord, method: str) -> Finding:
    handles = record_maps.handles(record, method)
    delegates = record_maps.delegates(record, method)
    graph = record_maps.edge_graph(record, method)
    nodes: Nodes = nodes_by_handle(graph) if graph is not None else {}
    agree = 0
    seen: set[int] = set()
    for event in range(len(block)):
        number, name = block.instruction(event), block.event_name(event)
        if block.layout.chain[event] < 0 or number is None or block.delegate_id(event) is not None:
            continue
        seen.add(number)
        against = _event_against(name, number in delegates, handles.get(number, ()), nodes)
        if against:
            return 0, f"instruction {number}: {against}"
        agree += number in handles
    absent = sorted(delegates.keys() - seen)
    if absent and "JF_CALL" not in block.strings:
        return 0, f"the record has a delegate at instruction {absent[0]}, the trace no event of it"
    return agree, ""


def _event_against(name: str, is_delegate: bool, handles: tuple[int, ...], nodes: Nodes) -> str:
    if name in KIND_OF_EVENT and is_delegate != (name == "DELEGATE_CALL"):
        recorded = "a delegate" if is_delegate else "no delegate"
        return f"the trace has {name}, the record {recorded}"
    if not name.startswith(_NATIVE):
        return ""
    known = [base_operator(node.target) for handle in handles for node in nodes.get(handle, ())]
    stems = {_stem(operator.split("::")[-1]) for operator in known}
    called = _stem(name.removeprefix(_NATIVE).split(".")[0])
    if not known or called in stems:
        return ""
    return f"the trace has {name}, the record {', '.join(sorted(set(known)))}"


def trace_and_buffer(dump: ETDump, buffer: DebugBuffer) -> Evidence:
    """Every logged tensor must lie in the buffer, and nothing else may."""
    what = "extents of the logged tensors"
    starts, ends = tensor_extents(dump)
    if len(starts) == 0:
        return Evidence(what, 0, "" if not any(buffer.data[:4096]) else "the trace logs no tensor")
    size = len(buffer.data)
    if int(ends.max()) > size:
        last = int(ends.max())
        return Evidence(what, 0, f"a logged tensor ends at byte {last} of a {size}-byte buffer")
    stray = _stray_byte(buffer, starts, ends)
    if stray is not None:
        return Evidence(what, 0, f"byte {stray} of the buffer is set but belongs to no tensor")
    return Evidence(what, len(starts))


def _stray_byte(
    buffer: DebugBuffer, starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> int | None:
    """Return the first non-zero byte outside of all tensors; the runtime leaves gaps zero."""
    depth = np.zeros(len(buffer.data) + 1, dtype=np.int32)
    np.add.at(depth, starts, 1)
    np.add.at(depth, ends, -1)
    outside = np.cumsum(depth[:-1]) == 0
    stray = np.flatnonzero(outside & (np.frombuffer(buffer.data, dtype=np.uint8) != 0))
    return int(stray[0]) if len(stray) else None


def program_and_data(program: Program, data: FlatTensor) -> Evidence:
    """Every external tensor must be there with its layout; delegates look up blobs by key."""
    what = "keys and layouts of external tensors"
    entries = {entry.key: entry for entry in data.entries}
    inside = program.named_data_map()
    agree = 0
    for plan in program.plans:
        for value in plan.values:
            tensor = value.val
            extra = tensor.extra_tensor_info if isinstance(tensor, m.Tensor) else None
            if not isinstance(tensor, m.Tensor) or extra is None or extra.location != _EXTERNAL:
                continue
            key = extra.fully_qualified_name
            entry = entries.get(key)
            if entry is None and key in inside:
                continue
            if entry is None:
                return Evidence(what, agree, f"the program needs {key!r}, the data has no such key")
            layout = entry.layout
            if layout is not None and (
                layout.scalar_type != tensor.scalar_type or layout.sizes != tensor.sizes
            ):
                return Evidence(what, agree, f"{key!r} has another type or shape in the data")
            agree += 1
    return Evidence(what, agree)


def program_and_bundle(program: Program, bundled: BundledProgram) -> Evidence:
    """The bundle carries the very program, and its suites name the program's methods."""
    from inspector.bundled import inner_program

    what = "the program inside the bundle and the methods its cases name"
    inner = inner_program(bundled)
    if inner is not None and inner != program:
        return Evidence(what, 0, "the bundle carries another program")
    for suite in bundled.method_test_suites:
        if suite.method_name not in _names(program):
            return Evidence(what, 0, f"the bundle tests method {suite.method_name!r}")
    return Evidence(what, 1)
