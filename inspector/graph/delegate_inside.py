"""The inside of a delegate: payload nodes, their values, constants and layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from inspector.files.payloads import delegate_payload, executed_payload
from inspector.files.session import Session
from inspector.graph.model_graph import ModelNode
from schema.graph import Graph, GraphNode, GraphValue, QuantizationParameters
from schema.objects.identity_cache import identity_cache
from schema.payloads import Payload
from schema.payloads.model import Constant
from schema.payloads.nested import inner_label

_PREPACK = "et_vk.prepack.default"
_FACTS = 4  # scales that are listed; of more the range is told


@dataclass(frozen=True, slots=True)
class InsideValue:
    """A value that a payload node reads or computes.

    Attributes:
        role: its role for the node, as in ``filter`` or ``output``
        value: type, shape and quantization
        constant: its bytes, None if it is computed
    """

    role: str
    value: GraphValue
    constant: Constant | None


@dataclass(frozen=True, slots=True)
class InsideNode:
    """A node of a payload.

    Attributes:
        delegate: index in the method's delegates
        node: the node
        values: inputs, then outputs
        activation: fused activation, empty if none
        inserted: whether the compiler added it without a corresponding user operator
    """

    delegate: int
    node: GraphNode
    values: tuple[InsideValue, ...]
    activation: str
    inserted: bool

    @property
    def output_bytes(self) -> int | None:
        """Return the bytes it writes, None if shape or type leave them unknown."""
        built = [one.value.tensor for one in self.values if one.role.startswith("output")]
        sizes = [None if tensor is None else tensor.nbytes for tensor in built]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None


@dataclass(frozen=True, slots=True, eq=False)
class Inside:
    """The payload of a delegate, node by node.

    Attributes:
        nodes: in their order
        by_name: name in the payload -> node
        by_handle: debug handle -> nodes
    """

    nodes: tuple[InsideNode, ...]
    by_name: Mapping[str, InsideNode]
    by_handle: Mapping[int, tuple[InsideNode, ...]]


@identity_cache
def inside_delegate(session: Session, method: str, delegate: int) -> Inside:
    """Return the nodes of a delegate; empty if its payload cannot be read as a graph."""
    program = session.program
    if program is None or method not in session.methods:
        return Inside((), {}, {})
    plan = program.plan(method)
    if not 0 <= delegate < len(plan.delegates):
        return Inside((), {}, {})
    return _inside(delegate_payload(program, plan, delegate, tuple(session.external)), delegate)


@identity_cache
def executed_inside(session: Session, method: str, delegate: int) -> Inside:
    """Return the nodes of what runs here of a delegate, by whose names a run logs values."""
    if session.program is None or method not in session.methods:
        return Inside((), {}, {})
    if not 0 <= delegate < len(session.program.plan(method).delegates):
        return Inside((), {}, {})
    return _inside(executed_payload(session, method, delegate), delegate)


def _inside(payload: Payload, delegate: int) -> Inside:
    nodes = tuple(_nodes(payload, delegate))
    by_handle: dict[int, list[InsideNode]] = {}
    for one in nodes:
        for handle in payload.debug_handles.get(one.node.name, ()):
            by_handle.setdefault(handle, []).append(one)
    return Inside(
        nodes,
        {one.node.name: one for one in nodes},
        {handle: tuple(found) for handle, found in by_handle.items()},
    )


def inside_of(session: Session, method: str, node: ModelNode) -> tuple[InsideNode, ...]:
    """Return the payload nodes of a node of the model graph, or the node itself."""
    if node.delegate is None:
        return ()
    inside = inside_delegate(session, method, node.delegate)
    own = inside.by_name.get(node.name.rsplit("/", 1)[-1]) if "/" in node.name else None
    if own is not None:
        return (own,)
    handle = node.node.debug_handle
    return inside.by_handle.get(handle, ()) if handle is not None else ()


def _nodes(payload: Payload, delegate: int) -> Iterable[InsideNode]:
    """Yield the nodes of a payload, then those of its nested blocks by their names in traces."""
    graph = payload.graph
    constants = {constant.name: constant for constant in payload.constants}
    if graph is None:
        return
    yield from _nodes_of(graph, graph.nodes, constants, delegate)
    for block, inner in graph.subgraphs.items():
        named = [replace(one, name=inner_label(block, one.name)) for one in inner.calls()]
        yield from _nodes_of(inner, named, constants, delegate)


def _nodes_of(
    graph: Graph, nodes: Iterable[GraphNode], constants: Mapping[str, Constant], delegate: int
) -> Iterable[InsideNode]:
    held = _held(graph, constants)
    for node in nodes:
        values: list[InsideValue] = []
        for argument in node.args:
            for name in argument.values:
                values.append(_value(argument.name or "input", name, graph, held))
        for name in node.outputs:
            values.append(_value("output", name, graph, held))
        facts = node.attributes
        activation = str(facts.get("fused_activation", ""))
        yield InsideNode(
            delegate, node, tuple(values), activation, inserted=bool(facts.get("inserted"))
        )


def _held(graph: Graph, constants: Mapping[str, Constant]) -> Mapping[str, Constant]:
    """Return value -> its constant, also if it is copied into another layout before any run."""
    found = {
        name: constants[value.constant]
        for name, value in graph.values.items()
        if value.constant in constants
    }
    for node in graph.nodes:
        if node.target == _PREPACK and node.outputs and {*node.inputs[:1]} & found.keys():
            found[node.outputs[0]] = found[node.inputs[0]]
    return found


def _value(role: str, name: str, graph: object, held: Mapping[str, Constant]) -> InsideValue:
    values: Mapping[str, GraphValue] = getattr(graph, "values", {})
    return InsideValue(role, values.get(name, GraphValue(name)), held.get(name))


def quantization_text(given: QuantizationParameters) -> str:
    """Return a description of quantization parameters: scheme, scales, zero points."""
    scales = given.scale
    if not scales:
        words = "scales chosen at run time" if given.scheme == "per_token" else "scales elsewhere"
    elif len(scales) <= _FACTS:
        words = "scale " + ", ".join(f"{scale:.6g}" for scale in scales)
    else:
        words = f"{len(scales):,} scales from {min(scales):.4g} to {max(scales):.4g}"
    parts = [given.scheme.replace("_", " "), words]
    if given.zero_point:
        zeros = sorted(set(given.zero_point))
        shown = ", ".join(map(str, zeros[:_FACTS]))
        parts.append(f"zero point {shown}{'…' if len(zeros) > _FACTS else ''}")
    if given.group_size:
        parts.append(f"groups of {given.group_size}")
    if given.axis is not None:
        parts.append(f"axis {given.axis}")
    return ", ".join(parts)
