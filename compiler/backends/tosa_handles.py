"""Debug handles of the operators of a TOSA graph, and of the same graph in another format.

Arm's visitors write each operator for one node of the program, which has the handle of the node
that it stands in for. The converted graph is matched by structure: an operator is
the one with the same kind, attributes and constants on the same operands.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from compiler.backends.vendors.package import backend_part
from compiler.interface.inherited_handles import handle_of
from schema import payloads
from schema.graph import Graph, GraphNode, GraphValue
from schema.payloads import Payload
from schema.payloads.nested import inner_label, nested_calls

Handles = dict[str, tuple[int, ...]]
_TOSA = "TOSABackend"
_ETHOS_U = "EthosUBackend"
_COMMUTATIVE = frozenset(
    (
        *("ADD", "BITWISE_AND", "BITWISE_OR", "BITWISE_XOR", "EQUAL", "LOGICAL_AND", "LOGICAL_OR"),
        *("LOGICAL_XOR", "MAXIMUM", "MINIMUM", "MUL"),
    )
)
_RESHAPE, _INPUT = "RESHAPE", "input "
_MOVES = frozenset((_RESHAPE, "TRANSPOSE"))
_NODE, _OUTPUTS = 1, 5  # arguments of NodeVisitor._serialize_operator
_STRUCTURAL = ("axis", "dilation", "kernel", "out_pad", "pad", "perms", "stride")


@dataclass(slots=True)
class WrittenTosa:
    """The graph that Arm's visitors have written.

    Attributes:
        handles: debug handles by the name of an operator's first result
        graph: the bytes of the last graph
    """

    handles: Handles = field(default_factory=dict[str, tuple[int, ...]])
    graph: bytes = b""

    def calls(self) -> Mapping[str, Any]:
        """Return nothing: a node is several operators, in another layout."""
        return {}

    def of_payload(self, backend_id: str, data: bytes) -> Handles | None:
        """Return the debug handles by name of a payload's operators, None where none is known."""
        if not self.graph or not self.handles:
            return None
        written = payloads.decode(_TOSA, memoryview(self.graph))
        if written.graph is None:
            return None
        own = {
            label: self.handles[node.outputs[0]]
            for label, node in nested_calls(written.graph)
            if node.outputs and node.outputs[0] in self.handles
        }
        own = handles_of_moved(own, written.graph)
        if backend_id in (_TOSA, _ETHOS_U):  # of a command stream the written graph is what runs
            return own or None
        return handles_of_copy(own, written, payloads.decode(backend_id, memoryview(data))) or None


@contextlib.contextmanager
def joining() -> Generator[WrittenTosa, None, None]:
    """Collect the graph that Arm's visitors write, and the handle of each of its operators."""
    visitor = backend_part("arm.operators.node_visitor").NodeVisitor
    backend = backend_part("arm.tosa.backend").TOSABackend
    serialize, lower = visitor._serialize_operator, backend._preprocess
    found = WrittenTosa()

    def serializing(*given: Any, **more: Any) -> None:  # noqa: ANN401
        outputs = given[_OUTPUTS] if len(given) > _OUTPUTS else more["outputs"]
        own = handle_of(given[_NODE])
        if own is not None:
            found.handles[outputs[0]] = (own,)
        serialize(*given, **more)

    def lowering(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        found.handles.clear()
        result = lower(*args, **kwargs)
        found.graph = bytes(result.processed_bytes)
        return result

    visitor._serialize_operator, backend._preprocess = serializing, staticmethod(lowering)
    try:
        yield found
    finally:
        visitor._serialize_operator, backend._preprocess = serialize, staticmethod(lower)


def handles_of_moved(own: Handles, graph: Graph, block: str = "") -> Handles:
    """Return handles in which what only moves elements has that of the value that it moves.

    Arm's passes push the reshape or transpose of a node behind those that read it, where it keeps
    the handle of the first: its elements are those of the last.

    Args:
        own: handles by name of the graph's operators
        graph: as it was written
        block: key of a nested graph, empty for the outermost one
    """
    found = dict(own)
    now: Handles = {}  # by value
    before: dict[str, frozenset[int]] = {}  # by value, handles of all that it is computed from
    for node in graph.calls():
        label = inner_label(block, node.name)
        handles = found.get(label, ())
        read = node.inputs[0] if node.inputs else ""
        moved = now.get(read, ())
        behind = handles and moved and handles != moved and before[read].issuperset(handles)
        if behind and node.target in _MOVES:
            found[label] = handles = moved
        seen = frozenset(handles).union(*(before.get(name, ()) for name in node.inputs))
        for name in node.outputs:
            now[name], before[name] = handles, seen
    for key, inner in graph.subgraphs.items():
        found = handles_of_moved(found, inner, key)
    return found


def handles_of_copy(own: Mapping[str, tuple[int, ...]], graph: Payload, copy: Payload) -> Handles:
    """Return the handles of a graph's copy in another format, by the names of its operators.

    Operators that are the same on the same operands have each other's handles: their values are
    equal. Behind what the converter has simplified, an operator is the only one of its kind, shape
    and constants. One without a counterpart has none.

    Args:
        own: handles by name of the graph's operators
        graph: as it was written
        copy: what a converter made of it
    """
    written, made = _structure(graph, {}), _structure(copy, {})
    by_structure: dict[str, set[int]] = {}
    for name, one in written.items():
        by_structure.setdefault(one.whole, set()).update(own.get(name, ()))
    anchors: dict[str, str] = {}
    while more := _anchored(written, made):  # what is behind a known operator is known again
        anchors |= more
        made = _structure(copy, anchors)
    found: Handles = {}
    for name, one in made.items():
        handles = by_structure.get(one.whole)
        if handles:
            found[name] = tuple(sorted(handles))
    return found


def _anchored(written: Mapping[str, _Digests], made: Mapping[str, _Digests]) -> dict[str, str]:
    """Return name of an operator of a copy -> the computation that it alone can be.

    That is the only one of its kind, shape and constants, on the same operands as far as both
    sides have these; if there is none, on any operands.
    """
    both = {one.whole for one in written.values()} & {one.whole for one in made.values()}
    for with_operands in (True, False):
        theirs, own = (
            {
                name: one.with_operands(both) if with_operands else one.alone
                for name, one in side.items()
                if one.whole not in both
            }
            for side in (written, made)
        )
        only = _unique(theirs, [*own.values()])
        found = {name: written[only[key]].whole for name, key in own.items() if key in only}
        if found:
            return found
    return {}


def _unique(names: Mapping[str, str], others: Sequence[str]) -> dict[str, str]:
    """Return digest -> name for digests that are once on both sides."""
    counts, theirs = Counter(names.values()), Counter(others)
    return {key: name for name, key in names.items() if counts[key] == theirs[key] == 1}


@dataclass(frozen=True, slots=True)
class _Digests:
    """The computation of a node.

    Attributes:
        whole: with all that its operands are computed from
        alone: its kind, attributes, constants and shape
        read: what it is computed from, without constants
        in_any_order: whether these may be exchanged
    """

    whole: str
    alone: str
    read: tuple[str, ...]
    in_any_order: bool

    def with_operands(self, known: Collection[str]) -> str:
        """Return what it is alone, with those operands that are known computations or inputs."""
        operands = [
            one if one.startswith(_INPUT) or one.rpartition(" ")[0] in known else ""
            for one in self.read
        ]
        return _digest(self.alone, sorted(operands) if self.in_any_order else operands)


def _structure(payload: Payload, anchors: Mapping[str, str]) -> dict[str, _Digests]:
    """Return digests of the computation of each node, by its name.

    Args:
        payload: with the nodes
        anchors: name of a node -> digest of the computation that it is known to be
    """
    graph = payload.graph
    if graph is None:
        return {}
    data = {one.name: one.data for one in payload.constants if one.data is not None}
    values = {name: f"{_INPUT}{place}" for place, name in enumerate(graph.inputs)}
    plain: dict[str, str] = {}  # value of a reshape -> what it reshapes
    found: dict[str, _Digests] = {}
    for node in graph.calls():
        operands = [
            (values.get(name, ""), "" if name in values else _constant(graph.values[name], data))
            for name in node.inputs
        ]
        if node.target in _COMMUTATIVE:  # converters put constants last
            operands.sort()
        facts = _facts(node)
        shapes = [_shape(graph.values[name]) for name in node.outputs]
        read = [values.get(name, "") for name in node.inputs]
        constants = [constant for _, constant in operands]
        whole = _digest(node.target, facts, operands)
        if node.target == _RESHAPE and read[0]:  # converters join those that follow each other
            root = plain.get(node.inputs[0], read[0])
            whole, constants = _digest(node.target, shapes, root), []
            plain |= dict.fromkeys(node.outputs, root)
        whole = anchors.get(node.name, whole)
        alone = _digest(node.target, facts, shapes, constants)
        found[node.name] = _Digests(
            whole, alone, tuple(one for one in read if one), node.target in _COMMUTATIVE
        )
        values.update((name, f"{whole} {place}") for place, name in enumerate(node.outputs))
    return found


def _shape(value: GraphValue) -> object:
    return None if value.tensor is None else (value.tensor.dtype, value.tensor.sizes)


def _facts(node: GraphNode) -> list[tuple[str, list[int]]]:
    facts: list[tuple[str, list[int]]] = []
    for name in _STRUCTURAL:
        given: Any = node.attributes.get(name)
        if isinstance(given, int):
            facts.append((name, [given]))
        elif isinstance(given, (tuple, list)):
            facts.append((name, [int(one) for one in cast("Sequence[Any]", given)]))
    return facts


def _constant(value: GraphValue, data: Mapping[str, memoryview]) -> str:
    """Return a digest of a constant, whether its elements are inline or beside the graph."""
    literal: Any = value.literal
    if value.tensor is None:
        return f"list {_elements(literal)}"
    sizes = value.tensor.sizes
    stored = data.get(value.constant)
    if stored is not None:
        return _digest(value.tensor.dtype, sizes, hashlib.sha256(stored).hexdigest())
    packed = _packed(value.tensor.dtype, _elements(literal))
    return _digest(value.tensor.dtype, sizes, hashlib.sha256(packed).hexdigest())


def _elements(literal: Any) -> tuple[Any, ...]:  # noqa: ANN401
    if isinstance(literal, (tuple, list)):
        return tuple(cast("Sequence[Any]", literal))
    return (literal,)


def _packed(dtype: str, elements: tuple[Any, ...]) -> bytes:
    known = {"bool": "?", "float16": "e", "float32": "f", "int8": "b", "int16": "h", "int32": "i"}
    if dtype not in known:
        return repr(elements).encode()
    return np.array(elements, dtype=known[dtype]).tobytes()


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]
