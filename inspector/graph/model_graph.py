"""The displayed graph: operators with their module, delegate, time and bytes, and edges.

Built from the best available source: the recorded graph, split by delegate; else the program's
instructions with the decoded payloads in place of the delegate calls. Weights are folded into the
node that uses them, so only the flow of activations remains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from inspector.files.payloads import delegate_payload
from inspector.files.session import Session
from inspector.graph.plan_graph import delegate_graph_name, plan_graph
from inspector.join import record_maps
from inspector.join.delegate_owner import node_owners
from schema.backends import short_backend
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind
from schema.objects.identity_cache import identity_cache
from schema.program.model import ExecutionPlan

COMPILED = "compiled"
Owner = tuple[int, str]  # delegate index, backend id


@dataclass(frozen=True, slots=True)
class GraphRegion:
    """One level of grouping above a node.

    Attributes:
        key: unique in the model graph
        label: shown on the box
        kind: delegate, module or branch
        delegate: index for a delegate region, None otherwise
    """

    key: str
    label: str
    kind: str
    delegate: int | None = None


@dataclass(frozen=True, slots=True)
class Weight:
    """A constant folded into the node that reads it."""

    name: str
    description: str
    nbytes: int | None


@dataclass(frozen=True, slots=True)
class ModelNode:
    """A node of the model graph.

    Attributes:
        id: position in the node list
        name: unique name, that of the source graph prefixed by its nested graphs
        node: the node itself
        regions: enclosing groups, outermost first
        delegate: index of its delegate, None if not delegated
        backend: its backend id, empty if not delegated
        instruction: its instruction, None if unknown or inside a delegate
        weights: constants folded into it
        values: metadata of its outputs, in order
    """

    id: int
    name: str
    node: GraphNode
    regions: tuple[GraphRegion, ...]
    delegate: int | None
    backend: str
    instruction: int | None
    weights: tuple[Weight, ...]
    values: tuple[GraphValue, ...]

    @property
    def output_bytes(self) -> int | None:
        """Return the bytes of all outputs, None if one is unknown."""
        sizes = [value.tensor.nbytes if value.tensor else 0 for value in self.values]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None


@dataclass(frozen=True, slots=True)
class ModelEdge:
    """A value flowing from one node to another."""

    source: int
    target: int
    value: str
    nbytes: int | None


@dataclass(frozen=True, slots=True, eq=False)
class ModelGraph:
    """Nodes and edges of one method, and their source.

    Attributes:
        name: of the source graph
        source: record, program or the name of a recorded graph
        nodes: by id
        edges: between ids
        by_name: node name -> id
    """

    name: str
    source: str
    nodes: tuple[ModelNode, ...]
    edges: tuple[ModelEdge, ...]
    by_name: Mapping[str, int] = field(default_factory=dict[str, int])


def graph_names(session: Session, method: str) -> tuple[str, ...]:
    """Return the graphs that can be shown for a method, the compiled one first if it exists."""
    record = session.record
    recorded = () if record is None else record.program_names
    exported = [name for name in recorded if _is_of(name, method)]
    if session.program is None and record is not None and not record.roles.edge and exported:
        return tuple(exported)
    both = session.program is not None and record is not None
    return (COMPILED, *(("instructions",) if both else ()), *exported)


def _is_of(name: str, method: str) -> bool:
    return "/" not in name or name.rsplit("/", 1)[1] == method


def model_graph(session: Session, method: str, name: str = COMPILED) -> ModelGraph | None:
    """Return a graph of a method, None if the session has no source for it."""
    return _model_graph(session, method, name)  # one entry with and without the default


@identity_cache
def _model_graph(session: Session, method: str, name: str) -> ModelGraph | None:
    record, program = session.record, session.program
    if record is not None and name not in (COMPILED, "instructions"):
        return _from_record(session, record.graph(name), method, name)
    edge = record_maps.edge_graph(record, method) if record is not None else None
    if edge is not None and name == COMPILED:
        return _from_record(session, edge, method, "record")
    if program is None or method not in session.methods:
        return None
    graph, plan = plan_graph(program, method), program.plan(method)
    builder = _Builder(graph.values)
    payloads = {
        delegate_graph_name(index): delegate_payload(program, plan, index)
        for index in range(len(plan.delegates))
    }
    for node in graph.nodes:
        payload = payloads.get(node.subgraphs[0]) if node.subgraphs else None
        if payload is not None and payload.graph is not None and payload.external_ids:
            builder.inline(node, payload.graph, payload.external_ids, payload.backend_id)
        else:
            builder.add(node, graph, (), _called(plan, node))
    return builder.finish(method, "program")


def _called(plan: ExecutionPlan, node: GraphNode) -> Owner | None:
    """Return the delegate that an instruction calls: one whose payload cannot be read is a box."""
    index = node.attributes.get("delegate") if node.kind is NodeKind.DELEGATE else None
    if not isinstance(index, int):
        return None
    return (index, plan.delegates[index].id) if 0 <= index < len(plan.delegates) else None


def _from_record(session: Session, graph: Graph, method: str, source: str) -> ModelGraph:
    owners = node_owners(session, graph, method) if source == "record" else {}
    return recorded_model(graph, source, owners)


def recorded_model(
    graph: Graph, source: str, owners: Mapping[str, Owner] = MappingProxyType({})
) -> ModelGraph:
    """Return a recorded graph as a model graph.

    Args:
        graph: as a record has it
        source: where it comes from
        owners: node -> the delegate that took it
    """
    builder = _Builder(graph.values)
    for node in graph.nodes:
        builder.add(node, graph, (), owners.get(node.name))
    return builder.finish(graph.name, source)


class _Builder:
    """Collects nodes and edges; value names are made unique by the enclosing graphs."""

    def __init__(self, values: Mapping[str, GraphValue]) -> None:
        self._values: dict[str, GraphValue] = dict(values)
        self._nodes: list[ModelNode] = []
        self._makers: dict[str, int] = {}
        self._alias: dict[str, str] = {}

    def add(
        self,
        node: GraphNode,
        graph: Graph,
        outer: tuple[GraphRegion, ...],
        owner: Owner | None,
        prefix: str = "",
    ) -> None:
        """Add a node, and the nodes of its nested graphs in separate regions."""
        if node.kind is NodeKind.GET_ATTR or self._is_folded(node, prefix):
            return
        inner = [name for name in node.subgraphs if name in graph.subgraphs]
        if node.kind is NodeKind.DELEGATE and inner:
            self._lowered(node, graph.subgraphs[inner[0]], outer, prefix)
            return
        self._append(node, outer, owner, prefix)
        for name in inner:
            region = GraphRegion(f"{prefix}{node.name}/{name}", name, "branch")
            self._nested(graph.subgraphs[name], (*outer, region), f"{prefix}{node.name}/{name}/")

    def _nested(self, graph: Graph, outer: tuple[GraphRegion, ...], prefix: str) -> None:
        self._values.update((prefix + name, value) for name, value in graph.values.items())
        for node in graph.nodes:
            self.add(node, graph, outer, None, prefix)

    def inline(
        self, call: GraphNode, inside: Graph, external: Mapping[int, str], backend: str
    ) -> None:
        """Replace a delegate call by the nodes of its payload, joined by argument position."""
        number = call.attributes.get("delegate")
        index = number if isinstance(number, int) else 0
        prefix = f"{call.name}/"
        region = GraphRegion(
            f"delegate {index}", f"{short_backend(backend)} · delegate {index}", "delegate", index
        )
        ends = (*call.inputs, *call.outputs)
        for position, value in external.items():
            if position < len(ends):
                self._alias[prefix + value] = ends[position]
        self._values.update((prefix + name, value) for name, value in inside.values.items())
        for node in inside.nodes:
            if node.kind not in (NodeKind.PLACEHOLDER, NodeKind.OUTPUT):
                self._append(node, (region,), (index, backend), prefix)

    def _lowered(
        self, call: GraphNode, inside: Graph, outer: tuple[GraphRegion, ...], prefix: str
    ) -> None:
        """Replace a recorded delegate call by its original graph, joined by position."""
        index = len({node.delegate for node in self._nodes if node.delegate is not None})
        backend = str(call.attributes.get("backend_id", call.target))
        region = GraphRegion(
            f"delegate {index}", f"{short_backend(backend)} · delegate {index}", "delegate", index
        )
        within = f"{prefix}{call.name}/"
        for name, value in zip(inside.inputs, call.inputs, strict=False):
            self._alias[within + name] = prefix + value
        for name, value in zip(inside.outputs, call.outputs, strict=False):
            self._alias[within + name] = prefix + value
        self._values.update((within + name, value) for name, value in inside.values.items())
        for node in inside.nodes:
            if node.kind in (NodeKind.CALL, NodeKind.CONTROL):
                self._append(node, (*outer, region), (index, backend), within)

    def _is_folded(self, node: GraphNode, prefix: str) -> bool:
        if node.kind is not NodeKind.PLACEHOLDER:
            return False
        value = self._values.get(prefix + node.outputs[0]) if node.outputs else None
        return value is not None and bool(value.constant)

    def _append(
        self, node: GraphNode, outer: tuple[GraphRegion, ...], owner: Owner | None, prefix: str
    ) -> None:
        number = len(self._nodes)
        regions = (*outer, *self._owner_region(outer, owner), *_modules(node, outer, owner))
        outputs = node.outputs
        if prefix or self._alias:
            outputs = tuple(self._name(prefix, name) for name in outputs)
        instruction = node.attributes.get("instruction")
        self._nodes.append(
            ModelNode(
                id=number,
                name=prefix + node.name,
                node=self._renamed(node, prefix),
                regions=regions,
                delegate=owner[0] if owner else None,
                backend=owner[1] if owner else "",
                instruction=instruction if isinstance(instruction, int) else None,
                weights=self._weights(node, prefix),
                values=tuple([self._values.get(name) or GraphValue(name) for name in outputs]),
            )
        )
        for name in outputs:
            self._makers.setdefault(name, number)

    def _owner_region(
        self, outer: tuple[GraphRegion, ...], owner: Owner | None
    ) -> tuple[GraphRegion, ...]:
        if owner is None or any(region.kind == "delegate" for region in outer):
            return ()
        index, backend = owner
        label = f"{short_backend(backend)} · delegate {index}"
        return (GraphRegion(f"delegate {index}", label, "delegate", index),)

    def _name(self, prefix: str, name: str) -> str:
        return self._alias.get(prefix + name, prefix + name)

    def _renamed(self, node: GraphNode, prefix: str) -> GraphNode:
        if not prefix:
            return node
        args = tuple(
            Argument(arg.name, tuple(self._name(prefix, name) for name in arg.values), arg.literal)
            for arg in node.args
        )
        outputs = tuple(self._name(prefix, name) for name in node.outputs)
        return replace(node, args=args, outputs=outputs)

    def _weights(self, node: GraphNode, prefix: str) -> tuple[Weight, ...]:
        found: list[Weight] = []
        is_plain = not prefix and not self._alias
        for name in dict.fromkeys(node.inputs):
            value = self._values.get(name if is_plain else self._name(prefix, name))
            if value is not None and value.constant:
                size = value.constant_bytes
                if size is None and value.tensor is not None:
                    size = value.tensor.nbytes
                found.append(Weight(value.constant, describe(value), size))
        return tuple(found)

    def finish(self, name: str, source: str) -> ModelGraph:
        """Return the graph with its edges."""
        edges: list[ModelEdge] = []
        for target in self._nodes:
            for value in dict.fromkeys(target.node.inputs):
                maker = self._makers.get(value)
                if maker is not None and maker != target.id:
                    meta = self._values.get(value)
                    nbytes = meta.tensor.nbytes if meta is not None and meta.tensor else None
                    edges.append(ModelEdge(maker, target.id, value, nbytes))
        by_name = {node.name: node.id for node in self._nodes}
        return ModelGraph(name, source, tuple(self._nodes), tuple(edges), by_name)


def _modules(
    node: GraphNode, outer: Iterable[GraphRegion], owner: Owner | None
) -> tuple[GraphRegion, ...]:
    if not node.modules:
        return ()
    scope = f"delegate {owner[0]}:" if owner else "".join(f"{region.key}:" for region in outer)
    found: list[GraphRegion] = []
    for frame in node.modules:
        if frame.path:
            label = frame.path.rsplit(".", 1)[-1]
            found.append(GraphRegion(f"{scope}{frame.path}", label, "module"))
    return tuple(dict.fromkeys(found))


def describe(value: GraphValue) -> str:
    """Return dtype and shape, as in ``float32 [8, 3, 3, 3]``; the kind of other values."""
    if value.tensor is None:
        return value.kind
    sizes = ", ".join(str(size) for size in value.tensor.sizes)
    return f"{value.tensor.dtype} [{sizes}]"
