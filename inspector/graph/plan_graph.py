"""A method as a graph: one node an instruction, the insides of its delegates as subgraphs."""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType

from inspector.files.payloads import delegate_payload
from inspector.graph.instruction_facts import InstructionFacts
from inspector.join.operands import LISTS, Operands, delegate_output_counts, members, plan_operands
from inspector.memory.plan import plan_value_names
from schema.dtypes.scalar_type import known_nbytes
from schema.flatbuf.spec import UnknownMember
from schema.graph import EMPTY, Argument, Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.objects.identity_cache import identity_cache
from schema.program import ProgramFile, backend_id, instructions, operator_name
from schema.program import model as m

_FEW = 9  # values that are found in a tuple as soon as in a set
_CONTROL = {
    m.MoveCall: "move",
    m.JumpFalseCall: "jump_false",
    m.FreeCall: "free",
}


@identity_cache
def plan_graph(program: ProgramFile, method: str) -> Graph:
    """Return the instruction graph of a method.

    Nodes are named ``<operator>_<instruction>``; values keep the names of the memory analysis.

    Raises: KeyError for an unknown method
    """
    plan = program.plan(method)
    names = value_names(plan)
    operands = plan_operands(plan, delegate_output_counts(program, plan))
    nodes = [_input_node(names[index], index) for index in plan.inputs if index in names]
    rows = zip(instructions(plan), operands, strict=True)
    carriers = sorted(_carriers(plan, operands))
    carried = {index: Argument("", (names[index],)) for index in carriers}
    for step, ((chain, _, instruction), touched) in enumerate(rows):
        args = instruction.instr_args
        inputs = _arguments(plan, args, touched, names, carried)
        outputs = _outputs(plan, touched, names, carried)
        nodes.append(_instruction_node(plan, step, chain, args, inputs, outputs))
    results = tuple(names[index] for index in plan.outputs if index in names)
    nodes.append(GraphNode("output", NodeKind.OUTPUT, "output", (Argument("", results),)))
    return Graph(
        name=method,
        nodes=tuple(nodes),
        values=_values(program, plan, names),
        inputs=tuple(names[index] for index in plan.inputs if index in names),
        outputs=results,
        subgraphs=_delegate_graphs(program, plan),
    )


def value_names(plan: m.ExecutionPlan) -> dict[int, str]:
    """Return the name in the graph of each value of a plan."""
    names: dict[int, str] = {}
    used: set[str] = set()
    for index, name in enumerate(plan_value_names(plan)):
        names[index] = name if name not in used else f"{name} (v{index})"
        used.add(name)
    return names


def _input_node(name: str, index: int) -> GraphNode:
    facts = MappingProxyType({"value": index})
    return GraphNode(
        f"input {name}", NodeKind.PLACEHOLDER, "input", outputs=(name,), attributes=facts
    )


def node_name(plan: m.ExecutionPlan, step: int, args: m.InstructionArgs) -> str:
    """Return the name of an instruction's node."""
    return _name(_target(plan, args), step, args)


def _name(target: str, step: int, args: m.InstructionArgs) -> str:
    return f"{_stem(target) if isinstance(args, m.KernelCall) else target}_{step}"


@lru_cache(maxsize=4096)  # a program has few operators
def _stem(target: str) -> str:
    return target.split("::")[-1].split(".")[0]


def _target(plan: m.ExecutionPlan, args: m.InstructionArgs) -> str:
    if isinstance(args, m.KernelCall):
        return operator_name(plan, args)
    if isinstance(args, m.DelegateCall):
        return backend_id(plan, args)
    if args is None or isinstance(args, UnknownMember):
        return "unknown_instruction"
    return _CONTROL[type(args)]


def _instruction_node(
    plan: m.ExecutionPlan,
    step: int,
    chain: int,
    args: m.InstructionArgs,
    inputs: tuple[Argument, ...],
    outputs: tuple[str, ...],
) -> GraphNode:
    kind = NodeKind.CONTROL
    subgraphs: tuple[str, ...] = ()
    extra: dict[str, object] = {}
    if isinstance(args, m.KernelCall):
        kind = NodeKind.CALL
    elif isinstance(args, m.DelegateCall):
        kind = NodeKind.DELEGATE
        extra["delegate"] = args.delegate_index
        if 0 <= args.delegate_index < len(plan.delegates):
            subgraphs = (delegate_graph_name(args.delegate_index),)
    elif isinstance(args, m.JumpFalseCall):
        extra["destination"] = args.destination_instruction
    target = _target(plan, args)
    return GraphNode(
        name=_name(target, step, args),
        kind=kind,
        target=target,
        args=inputs,
        outputs=outputs,
        attributes=InstructionFacts(step, chain, extra or EMPTY),
        subgraphs=subgraphs,
    )


def _is_flow(plan: m.ExecutionPlan, index: int) -> bool:
    # Lists only refer to other values; edges run along their members.
    return not isinstance(plan.values[index].val, LISTS)


def _outputs(
    plan: m.ExecutionPlan,
    touched: Operands,
    names: dict[int, str],
    carried: dict[int, Argument],
) -> tuple[str, ...]:
    """Return the names of what an instruction writes, as the tuple of its readers if it is one."""
    if len(touched.writes) == 1 and touched.writes[0] in carried:
        return carried[touched.writes[0]].values
    return tuple([names[index] for index in touched.writes if _is_flow(plan, index)])


def _arguments(
    plan: m.ExecutionPlan,
    args: m.InstructionArgs,
    touched: Operands,
    names: dict[int, str],
    carried: dict[int, Argument],
) -> tuple[Argument, ...]:
    if not isinstance(args, (m.KernelCall, m.DelegateCall)):
        return tuple(Argument("", (names[index],)) for index in touched.reads)
    reads = touched.reads if len(touched.reads) < _FEW else set(touched.reads)
    found: list[Argument] = []
    for index in args.args:
        if index in carried:  # of most arguments that is all there is to ask
            if index in reads:
                found.append(carried[index])
            continue
        inside = [item for item in members(plan, index) if _is_flow(plan, item)]
        if index not in reads and not any(item in reads for item in inside):
            continue
        tensors = tuple([names[item] for item in inside if item in carried])
        found.append(Argument("", tensors) if tensors else Argument("", (), literal(plan, index)))
    return tuple(found)


def _carriers(plan: m.ExecutionPlan, operands: tuple[Operands, ...]) -> set[int]:
    """Return the values that edges run along: tensors, and what instructions compute."""
    computed = {value for touched in operands for value in touched.writes}
    tensors = {at for at, value in enumerate(plan.values) if isinstance(value.val, m.Tensor)}
    return {index for index in computed | tensors if _is_flow(plan, index)}


def literal(plan: m.ExecutionPlan, index: int) -> object:
    """Return the constant of a value, lists resolved; None for tensors and null."""
    if not 0 <= index < len(plan.values):
        return None
    value = plan.values[index].val
    if isinstance(value, m.IntList):
        items = value.items
        return tuple(plan_int(plan, item) for item in items)
    if isinstance(value, (m.DoubleList, m.BoolList)):
        return value.items
    return scalar_of(value)


def scalar_of(value: m.KernelType) -> int | bool | float | str | None:
    """Return the scalar or string of a value, None for others."""
    if isinstance(value, m.Int):
        return value.int_val
    if isinstance(value, m.Bool):
        return value.bool_val
    if isinstance(value, m.Double):
        return value.double_val
    return value.string_val if isinstance(value, m.String) else None


def plan_int(plan: m.ExecutionPlan, index: int) -> object:
    """Return the integer of a boxed list member, None if it is not an Int."""
    value = plan.values[index].val if 0 <= index < len(plan.values) else None
    return value.int_val if isinstance(value, m.Int) else None


def _values(
    program: ProgramFile, plan: m.ExecutionPlan, names: dict[int, str]
) -> MappingProxyType[str, GraphValue]:
    alike: dict[TensorMeta, TensorMeta] = {}
    values = {name: _value(plan, index, name, alike) for index, name in names.items()}
    return MappingProxyType(values)


def _value(
    plan: m.ExecutionPlan, index: int, name: str, alike: dict[TensorMeta, TensorMeta]
) -> GraphValue:
    """Return a value; tensors of one type and shape share it by ``alike``."""
    value = plan.values[index].val
    if isinstance(value, m.Tensor):
        meta = TensorMeta(
            value.scalar_type, value.sizes, value.dim_order, dynamism=value.shape_dynamism
        )
        meta = alike.setdefault(meta, meta)
        constant = value.data_buffer_idx > 0 or _is_external(value)
        nbytes = known_nbytes(value.scalar_type, value.sizes) if constant else None
        return GraphValue(name, meta, constant=name if constant else "", constant_bytes=nbytes)
    kind = "none" if value is None else type(value).__name__.lower()
    return GraphValue(name, None, kind, literal(plan, index))


def _is_external(tensor: m.Tensor) -> bool:
    return tensor.extra_tensor_info is not None and tensor.extra_tensor_info.location == 1


def delegate_graph_name(index: int) -> str:
    """Return the subgraph name of a delegate."""
    return f"delegate {index}"


def _delegate_graphs(program: ProgramFile, plan: m.ExecutionPlan) -> MappingProxyType[str, Graph]:
    found: dict[str, Graph] = {}
    for index in range(len(plan.delegates)):
        graph = delegate_payload(program, plan, index).graph
        if graph is not None:
            found[delegate_graph_name(index)] = graph
    return MappingProxyType(found)
