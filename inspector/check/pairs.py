"""The comparisons of two files: facts that must agree if they come from one build or one run."""

from __future__ import annotations

from functools import partial

from inspector.check.tensors import tensors_against
from inspector.files.payloads import delegate_payload
from inspector.join import record_maps
from inspector.join.facts import Finding, JoinEvidence, Nodes, is_made_later, stem
from inspector.join.node_index import base_operator, nodes_by_handle
from inspector.join.saved_tensors import differs, saved_tensors
from schema.backends import backend_of
from schema.bundled import BundledFile
from schema.dtypes.scalar_type import scalar_type
from schema.etrecord import RecordFile
from schema.flat_tensor import FlatTensor
from schema.graph import Graph
from schema.program import ProgramFile, backend_id, instructions, operator_name
from schema.program import model as m

_EXTERNAL = 1
_NAMESPACES = ("aten", "dim_order_ops", "quantized_decomposed")
_LOOKUPS = {f"quantized_decomposed::embedding_{bits}bit" for bits in (2, 4)}
_PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm", "aten::linear"}
# kernel -> recorded operators that passes make it of
_MADE_OF: dict[str, set[str]] = {
    **dict.fromkeys(_LOOKUPS, _PRODUCTS),
    "aten::linear": {"aten::mm", "aten::addmm"},  # Cadence's, often with a bias of zeros
}
_KNOWN = (*_NAMESPACES, "prims", "executorch_prim", "et_copy")


def program_and_program(first: ProgramFile, second: ProgramFile) -> JoinEvidence:
    """Two programs belong together only if they are equal."""
    what = "content"
    if first == second:
        return JoinEvidence(what, 1)
    return JoinEvidence(what, 0, "they are two different programs")


def program_and_record(program: ProgramFile, record: RecordFile) -> JoinEvidence:
    """The record's instruction maps, operators, shapes and weights must be the program's."""
    what = "methods, mapped instructions, delegates, operators, inputs, shapes and weights"
    matched = 0
    for plan in program.plans:
        if not instructions(plan):
            # A method that answers with a constant is in no record; one without work may be.
            count, mismatch = _inputs(plan, record)
            if mismatch:
                return JoinEvidence(what, 0, f"method {plan.name}: {mismatch}")
            matched += count
            continue
        if record.debug_handle_map and plan.name not in (record.debug_handle_map or {}):
            names = ", ".join(record.debug_handle_map or ())
            return JoinEvidence(
                what, 0, f"the program has method {plan.name}, the record has {names}"
            )
        inside = (partial(_payloads, program), partial(tensors_against, program))
        for compare in (_maps, _delegates, _operators, _inputs, *inside):
            count, mismatch = compare(plan, record)
            if mismatch:
                return JoinEvidence(what, 0, f"method {plan.name}: {mismatch}")
            matched += count
    extra = [name for name in record.debug_handle_map or () if name not in _names(program)]
    if extra:
        return JoinEvidence(what, 0, f"the record has method {extra[0]}, the program does not")
    return JoinEvidence(what, matched)


def _names(program: ProgramFile) -> set[str]:
    return {plan.name for plan in program.plans}


def _maps(plan: m.ExecutionPlan, record: RecordFile) -> Finding:
    mapped = record_maps.handles(record, plan.name)
    if not mapped:
        return 0, ""
    steps = instructions(plan)
    called: set[int] = set()
    expected: set[int] = set()
    jumps = False
    for step, (_, _, instruction) in enumerate(steps):
        args = instruction.instr_args
        jumps = jumps or isinstance(args, m.JumpFalseCall)
        if isinstance(args, (m.KernelCall, m.DelegateCall)):
            called.add(step)
        if isinstance(args, m.DelegateCall) or (
            isinstance(args, m.KernelCall) and _is_recorded(operator_name(plan, args))
        ):
            expected.add(step)
    for number in sorted(mapped):
        if number not in called:
            return 0, (
                f"the record maps instruction {number}, the program has {len(steps)} instructions"
                " which has no operator there"
            )
    missing = sorted(expected - mapped.keys())
    if missing and not jumps and not is_older(record, plan):
        return 0, f"the program calls instruction {missing[0]}, the record does not map it"
    return len(mapped), ""


def _is_recorded(operator: str) -> bool:
    # The write-back of state and the runtime's own kernels come after the record's numbering.
    return operator.split("::")[0] in _NAMESPACES and operator != "aten::copy_"


def _delegates(plan: m.ExecutionPlan, record: RecordFile) -> Finding:
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
            return 0, f"instruction {number}: the record has {there.name}, the program {found}"
        if there is None and not jumps:
            return 0, f"instruction {number}: the program calls {here}, the record no delegate"
    return len(called), ""


def _payloads(program: ProgramFile, plan: m.ExecutionPlan, record: RecordFile) -> Finding:
    """Handles inside a delegate's payload must be listed in the record for its call."""
    handles = record_maps.handles(record, plan.name)
    agree = 0
    for step, (_, _, instruction) in enumerate(instructions(plan)):
        args = instruction.instr_args
        listed = set(handles.get(step, ()))
        if not isinstance(args, m.DelegateCall) or not listed:
            continue
        if not 0 <= args.delegate_index < len(plan.delegates):
            continue
        if not backend_of(plan.delegates[args.delegate_index].id).has_program_handles:
            continue
        payload = delegate_payload(program, plan, args.delegate_index)
        inside = {handle for node in payload.debug_handles.values() for handle in node}
        stray = sorted(inside - listed - {0})
        if stray:
            return 0, f"instruction {step}: its payload has handle {stray[0]}, the record does not"
        agree += bool(inside)
    return agree, ""


def is_older(record: RecordFile, plan: m.ExecutionPlan) -> bool:
    """Return whether passes replaced nodes of a plan after the graph was recorded.

    The program then calls operators of libraries that the recorded graph does not, or the record
    has the node of an instruction that calls another operator, or a kernel is called that only
    passes make of what is recorded: a layer as one operator, or a lookup in its packed weights.
    """
    graph = record_maps.edge_graph(record, plan.name)
    if graph is None:
        return False
    targets = {node.name: stem(base_operator(node.target)) for node in graph.nodes}
    origins = record_maps.origins(record, plan.name).nodes
    for step, (_, _, instruction) in enumerate(instructions(plan)):
        args, known = instruction.instr_args, targets.get(origins.get(step, ""))
        if known is None or not isinstance(args, m.KernelCall):
            continue
        if stem(base_operator(operator_name(plan, args))) != known:
            return True
    recorded = {stem(base_operator(node.target)) for node in graph.nodes}
    if _calls_other_form(plan, record, graph):
        return True
    called = {
        stem(base_operator(operator_name(plan, instruction.instr_args)))
        for _, _, instruction in instructions(plan)
        if isinstance(instruction.instr_args, m.KernelCall)
    }
    theirs = {name for name in called if name.split("::")[0] not in _KNOWN}
    return not theirs <= recorded


def _calls_other_form(plan: m.ExecutionPlan, record: RecordFile, graph: Graph) -> bool:
    """Return whether a kernel is called that only passes make of what its handle has recorded."""
    handles, nodes = record_maps.handles(record, plan.name), nodes_by_handle(graph)
    for step, (_, _, instruction) in enumerate(instructions(plan)):
        args = instruction.instr_args
        if not isinstance(args, m.KernelCall):
            continue
        made_of = _MADE_OF.get(base_operator(operator_name(plan, args)), set())
        known = [node for handle in handles.get(step, ()) for node in nodes.get(handle, ())]
        if made_of.intersection(base_operator(node.target) for node in known):
            return True
    return False


def _operators(plan: m.ExecutionPlan, record: RecordFile) -> Finding:
    graph = record_maps.edge_graph(record, plan.name)
    if graph is None:
        return 0, ""
    handles = record_maps.handles(record, plan.name)
    nodes = nodes_by_handle(graph)
    is_rewritten = is_older(record, plan)
    origins = record_maps.origins(record, plan.name).nodes
    names = {node.name for node in graph.nodes}
    agree = 0
    for step, (_, _, instruction) in enumerate(instructions(plan)):
        args = instruction.instr_args
        if not isinstance(args, m.KernelCall):
            continue
        called = base_operator(operator_name(plan, args)).rpartition("::")[2]
        if is_made_later(called, origins.get(step, ""), names):
            continue
        against = _operator_against(operator_name(plan, args), handles.get(step, ()), nodes)
        if against is None:
            continue
        if against and not is_rewritten:
            return 0, f"instruction {step}: {against}"
        agree += not against
    return agree, ""


def _operator_against(operator: str, handles: tuple[int, ...], nodes: Nodes) -> str | None:
    """Return a contradiction, an empty string for agreement, None if nothing is comparable."""
    known = [node for handle in handles for node in nodes.get(handle, ())]
    if not handles or operator.split("::")[0] not in _NAMESPACES:
        return None
    if not known:
        return f"the program calls {operator}, the record has no node with handle {handles[0]}"
    recorded = {stem(base_operator(node.target)) for node in known}
    if stem(base_operator(operator)) in recorded:
        return ""
    foreign = not any(name.split("::")[0] in _NAMESPACES for name in recorded)
    if foreign:
        return None
    return f"the program calls {operator}, the record has {', '.join(sorted(recorded))}"


def _inputs(plan: m.ExecutionPlan, record: RecordFile) -> Finding:
    graph = record_maps.edge_graph(record, plan.name)
    if graph is None or not graph.inputs:
        return 0, ""
    if len(graph.inputs) != len(plan.inputs):
        return 0, (
            f"the program has {len(plan.inputs)} inputs, the record's graph {len(graph.inputs)}"
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
            f"the program expects {scalar_type(here.scalar_type).name},"
            f" the record's graph {there.dtype}"
        )
    if len(there.sizes) != len(here.sizes) or any(
        isinstance(size, int) and size != bound
        for size, bound in zip(there.sizes, here.sizes, strict=True)
    ):
        return f"the program expects {here.sizes}, the record's graph {there.sizes}"
    return ""


def program_and_data(program: ProgramFile, data: FlatTensor) -> JoinEvidence:
    """Data must have the layout that the program expects; delegates look up blobs by key.

    A program's tensors may be in several files, and several programs may share one file. Missing
    tensors therefore contradict only if the file also contains unrelated ones.
    """
    what = "keys and layouts of external tensors and of delegates' constants"
    entries = {entry.key: entry for entry in data.entries}
    inside = program.named_data_map()
    agreed: set[str] = set()
    absent = ""
    for tensor, key in _external_tensors(program):
        entry = entries.get(key)
        if entry is None:
            absent = absent or ("" if key in inside else key)
            continue
        layout = entry.layout
        if layout is not None and (
            layout.scalar_type != tensor.scalar_type or layout.sizes != tensor.sizes
        ):
            return JoinEvidence(what, 0, f"{key!r} has a different type or shape in the data")
        agreed.add(key)
    agreed |= _delegate_keys(program) & entries.keys()
    if entries and not agreed:
        return JoinEvidence(what, 0, f"the program uses none of the {len(entries)} keys")
    if absent and entries.keys() - agreed:
        return JoinEvidence(what, 0, f"the program needs {absent!r}, the data has no such key")
    return JoinEvidence(what, len(agreed))


def record_and_data(record: RecordFile, data: FlatTensor) -> JoinEvidence:
    """A tensor that both have by name must be the same one."""
    what = "names, shapes and values of the weights"
    saved = {
        key: tensor
        for name in record.roles.edge.values()
        for key, tensor in saved_tensors(record, name).items()
    }
    agree = 0
    for entry in data.entries:
        tensor, layout = saved.get(entry.key), entry.layout
        if tensor is None or layout is None:
            continue
        if layout.scalar_type != tensor.scalar_type or layout.sizes != tensor.sizes:
            return JoinEvidence(what, 0, f"{entry.key!r} has a different type or shape in the data")
        standard = layout.dim_order == tuple(range(len(layout.sizes)))
        other = differs(tensor, entry.data) if standard else None
        if other:
            return JoinEvidence(what, 0, f"{entry.key!r} has different values in the data")
        agree += other is False
    return JoinEvidence(what, agree)


def _external_tensors(program: ProgramFile) -> list[tuple[m.Tensor, str]]:
    found: list[tuple[m.Tensor, str]] = []
    for plan in program.plans:
        for value in plan.values:
            tensor = value.val
            extra = tensor.extra_tensor_info if isinstance(tensor, m.Tensor) else None
            if isinstance(tensor, m.Tensor) and extra is not None and extra.location == _EXTERNAL:
                found.append((tensor, extra.fully_qualified_name))
    return found


def _delegate_keys(program: ProgramFile) -> set[str]:
    return {
        constant.name
        for plan in program.plans
        for index in range(len(plan.delegates))
        for constant in delegate_payload(program, plan, index).constants
        if constant.location == "named"
    }


def program_and_bundle(program: ProgramFile, bundled: BundledFile) -> JoinEvidence:
    """The bundle contains an identical program, and its suites refer to the program's methods."""
    from inspector.files.bundled import inner_program

    what = "the program inside the bundle and the methods its cases name"
    inner = inner_program(bundled)
    if inner is not None and inner != program:
        return JoinEvidence(what, 0, "the bundle contains a different program")
    for suite in bundled.method_test_suites:
        if suite.method_name not in _names(program):
            return JoinEvidence(what, 0, f"the bundle tests method {suite.method_name!r}")
    return JoinEvidence(what, 1)
