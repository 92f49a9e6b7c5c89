"""A recorded graph, flattened: nested graphs in place, every value named after its graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from inspector.join.node_index import base_operator
from inspector.join.operator_names import op_type, wraps_a_write
from schema.graph import Graph, GraphNode, GraphValue, NodeKind, inner_name
from schema.objects.identity_cache import identity_cache

Scope = tuple[str, ...]  # names of the nested graphs around, outermost first
Value = tuple[Scope, str]  # a value of a graph

# What only renames, copies or reshapes: the emitter may leave such nodes out.
_TRANSPARENT = frozenset(
    {
        "aten::view_copy",
        "aten::view",
        "aten::_unsafe_view",
        "aten::reshape",
        "aten::alias",
        "aten::alias_copy",
        "aten::clone",
        "aten::detach",
        "aten::detach_copy",
        "aten::contiguous",
        "aten::squeeze_copy",
        "aten::unsqueeze_copy",
        "aten::lift_fresh_copy",
        "dim_order_ops::_clone_dim_order",
        "_operator::getitem",
    }
)
_EXPAND = "aten::expand_copy"
_SAME = {"aten::clone": "dim_order_ops::_clone_dim_order", "aten::_to_copy": "aten::to"}


@dataclass(frozen=True, slots=True, eq=False)
class FlatNode:
    """A node and where it is.

    Attributes:
        place: position in the flat order
        scope: nested graphs around it
        node: the node
        reads: values of the graph it reads, in argument order, only tensors
        operator: name without overload, in one spelling
    """

    place: int
    scope: Scope
    node: GraphNode
    reads: tuple[Value, ...]
    operator: str

    @property
    def writes(self) -> tuple[Value, ...]:
        """Return its results, in order."""
        return tuple((self.scope, name) for name in self.node.outputs)


@dataclass(frozen=True, slots=True, eq=False)
class FlatGraph:
    """All nodes of a graph and its nested graphs.

    Attributes:
        graph: the graph
        nodes: calls in the order they are emitted, nested ones behind the node that has them
        producers: value -> its node, and its index among the outputs of the node
        meta: value -> its known dtype and shape
        users: value -> nodes that read it
        results: values that leave the graph, those that become state first
        inputs: the user's inputs, in order
        prefixes: nested graph -> prefix of the names of its nodes in a model graph
        graphs: nested graph -> its nodes and inputs
        contents: constant -> what it shares with those of equal bytes, where that is known
    """

    graph: Graph
    nodes: tuple[FlatNode, ...]
    producers: Mapping[Value, tuple[FlatNode, int]]
    meta: Mapping[Value, GraphValue]
    users: Mapping[Value, tuple[FlatNode, ...]]
    results: frozenset[Value]
    inputs: tuple[Value, ...]
    prefixes: Mapping[Scope, str]
    graphs: Mapping[Scope, Graph] = field(default_factory=dict[Scope, Graph])
    contents: Mapping[str, str] = field(default_factory=dict[str, str])
    _roots: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def root(self, value: Value) -> Value:
        """Return the value that this one is a copy, a view or another name of."""
        found = self._roots.get(value)
        if found is None:
            at = value
            for _ in range(len(self.nodes) + 1):
                maker = self.producers.get(at)
                if maker is None or not (
                    is_transparent(maker[0]) or self.expands_nothing(maker[0])
                ):
                    break
                at = maker[0].reads[0]
            found = self._roots[value] = at
        return found

    def expands_nothing(self, node: FlatNode) -> bool:
        """Return whether a node expands a tensor to the sizes that it has."""
        if node.operator != _EXPAND or not node.reads or not node.writes:
            return False
        metas = [self.meta.get(one) for one in (node.reads[0], node.writes[0])]
        sizes = [one.tensor.sizes for one in metas if one is not None and one.tensor is not None]
        return len(sizes) == 2 and sizes[0] == sizes[1]


def is_transparent(node: FlatNode) -> bool:
    """Return whether a node only renames, copies or reshapes the one tensor it reads."""
    return node.operator in _TRANSPARENT and len(node.reads) > 0


def known_sizes(meta: GraphValue | None) -> tuple[int, ...] | None:
    """Return the sizes of a value, None if one is unknown."""
    if meta is None or meta.tensor is None:
        return None
    known = tuple(size for size in meta.tensor.sizes if isinstance(size, int))
    return known if len(known) == len(meta.tensor.sizes) else None


def number_argument(node: GraphNode, name: str) -> float | None:
    """Return an argument that is a number, None where it is none or a tensor has it."""
    found = [arg.literal for arg in node.args if arg.name == name]
    return float(found[0]) if found and isinstance(found[0], (int, float)) else None


def one_spelling(operator: str) -> str:
    """Return an operator without overload; operators that do the same have one name."""
    base = base_operator(operator)
    return _SAME.get(base, base)


def is_unread(node: GraphNode, output: str) -> bool:
    """Return whether a node that writes to its arguments has a result that nothing reads.

    torch calls such a result after its node when it writes a graph to a file.
    """
    return wraps_a_write(op_type(node.name)) and output.startswith(f"{node.name}_unused_")


@identity_cache
def flat_graph(graph: Graph) -> FlatGraph:
    """Return a graph laid flat."""
    laid = _Laying()
    laid.add(graph, ())
    producers = {
        value: (node, index) for node in laid.nodes for index, value in enumerate(node.writes)
    }
    users: dict[Value, list[FlatNode]] = {}
    for node in laid.nodes:
        for value in node.reads:
            users.setdefault(value, []).append(node)
    results = {
        ((), name) for node in graph.nodes if node.kind is NodeKind.OUTPUT for name in node.inputs
    }
    return FlatGraph(
        graph=graph,
        nodes=tuple(laid.nodes),
        producers=producers,
        meta=laid.meta,
        users={value: tuple(nodes) for value, nodes in users.items()},
        results=frozenset(results),
        inputs=tuple(((), name) for name in graph.inputs),
        prefixes=laid.prefixes,
        graphs=laid.graphs,
    )


@identity_cache
def constant_values(flat: FlatGraph) -> frozenset[Value]:
    """Return the values that depend on no input, but for those that a node makes of nothing.

    What a branch or a body is given may depend on inputs, so it is none.
    """
    given = frozenset(flat.inputs)
    found: set[Value] = set()

    def is_constant(value: Value) -> bool:
        if value in flat.producers:
            return value in found
        return not value[0] and value not in given

    for node in flat.nodes:
        found.update(value for value in node.reads if is_constant(value))
        if node.reads and all(map(is_constant, node.reads)):
            found.update(node.writes)
    return frozenset(found)


class _Laying:
    """Collects the nodes of a graph and those inside it."""

    def __init__(self) -> None:
        self.nodes: list[FlatNode] = []
        self.meta: dict[Value, GraphValue] = {}
        self.prefixes: dict[Scope, str] = {(): ""}
        self.graphs: dict[Scope, Graph] = {}

    def add(self, graph: Graph, scope: Scope) -> None:
        """Add the calls of a graph; a delegate is one node, its inside follows like a branch."""
        self.graphs[scope] = graph
        self.meta.update(((scope, name), value) for name, value in graph.values.items())
        for node in graph.nodes:
            if node.kind in (NodeKind.PLACEHOLDER, NodeKind.GET_ATTR, NodeKind.OUTPUT):
                continue
            reads = tuple((scope, name) for name in node.inputs if _is_tensor(graph, name))
            laid = FlatNode(len(self.nodes), scope, node, reads, one_spelling(node.target))
            self.nodes.append(laid)
            for number, name in enumerate(node.subgraphs):
                inner = graph.subgraphs.get(name)
                if inner is None:
                    continue
                place = (*scope, inner_name(node.name, number))
                own = node.name if node.kind is NodeKind.DELEGATE else f"{node.name}/{name}"
                self.prefixes[place] = f"{self.prefixes[scope]}{own}/"
                self.add(inner, place)


def _is_tensor(graph: Graph, name: str) -> bool:
    value = graph.values.get(name)
    return value is None or value.tensor is not None or value.kind == "tensor"
