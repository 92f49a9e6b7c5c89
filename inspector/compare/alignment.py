"""Matches the nodes of two graphs by origin and structure.

Node identity goes from strict to loose: first all known facts (operator, types,
literals, module, line, origin), finally the operator only. Each step aligns,
in execution order, the nodes that earlier steps left between their pairs; so an inserted node is
one difference, renumbered modules are none, and ten thousand nodes take a moment. Remaining nodes
at other positions are paired if they are unique, or if their neighbours
are paired. Nodes of a decoded payload have operators of their backend: beside another
backend they are matched by what they compute and by the sizes of the result.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from inspector.compare.sequences import align
from inspector.graph.model_graph import ModelGraph, ModelNode, describe
from inspector.join.lowered_kinds import operation
from inspector.join.node_index import base_operator
from schema.graph import NodeKind
from schema.objects.cyclic_gc import gc_suspended
from schema.objects.identity_cache import identity_cache

ORIGIN, STRUCTURE, MOVED = "origin", "structure", "moved"
_ROUNDS = 4  # of pairing by neighbours
_PROGRAM = "program"  # source of a graph without a record

Pairs = list[tuple[int, int]]
Stretch = tuple[int, int, int, int]  # start and stop in the old, begin and end in the new


@dataclass(frozen=True, slots=True)
class NodePair:
    """A node of the old graph and its counterpart in the new graph.

    Attributes:
        old: id in the old graph
        new: id in the new graph
        how: ``origin`` if module or lineage agree, ``structure`` if only operators and order
            do, ``moved`` if its position differs
    """

    old: int
    new: int
    how: str


@dataclass(frozen=True, slots=True)
class Replacement:
    """Nodes replaced by others of the same origin: a decomposition, a fusion, another operator.

    Attributes:
        old: ids only in the old graph
        new: ids only in the new graph
    """

    old: tuple[int, ...]
    new: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A node that is in both graphs but differs.

    Attributes:
        pair: the node
        what: operator, types or arguments
        old: description in the old graph
        new: description in the new graph
    """

    pair: NodePair
    what: str
    old: str
    new: str


@dataclass(frozen=True, eq=False)
class GraphAlignment:
    """Two graphs side by side.

    Attributes:
        old: the first graph
        new: the second one
        pairs: nodes that are in both, by the id in the old graph
        removed: ids only in the old graph
        added: ids only in the new graph
        replaced: groups of them that correspond; their ids are among removed and added
    """

    old: ModelGraph
    new: ModelGraph
    pairs: tuple[NodePair, ...]
    removed: tuple[int, ...]
    added: tuple[int, ...]
    replaced: tuple[Replacement, ...]

    @cached_property
    def changed(self) -> tuple[NodeChange, ...]:
        """Return the pairs whose operator, types or arguments differ.

        A program beside a record names its operators by kernels and kinds of payload nodes, whose
        arguments are other ones: what is computed, and the sizes of the result, are compared.
        """
        lowered = (self.old.source == _PROGRAM) != (self.new.source == _PROGRAM)
        differs = _lowered_otherwise if lowered else _changed
        found = (differs(self.old.nodes[p.old], self.new.nodes[p.new], p) for p in self.pairs)
        return tuple(change for change in found if change is not None)

    @cached_property
    def to_new(self) -> dict[int, int]:
        """Return id in the old graph -> id in the new graph."""
        return {pair.old: pair.new for pair in self.pairs}

    @cached_property
    def to_old(self) -> dict[int, int]:
        """Return id in the new graph -> id in the old graph."""
        return {pair.new: pair.old for pair in self.pairs}


@identity_cache
@gc_suspended()
def align_graphs(old: ModelGraph, new: ModelGraph) -> GraphAlignment:
    """Return which nodes of two graphs are the same."""
    payload = _has_payload(old, new)
    sides = _Side(old, payload=payload), _Side(new, payload=payload)
    found = _ordered(sides, _BY_ORIGIN)
    if _agreement(sides, found) < _PERFECT * max(len(old.nodes), len(new.nodes)):
        others = [_BY_STRUCTURE, *([_BY_OPERATION] if payload else [])]
        for other in (_ordered(sides, levels) for levels in others):
            if _agreement(sides, other) > _agreement(sides, found):
                found = other
    _moved(sides, found)
    pairs = tuple(NodePair(here, there, how) for here, (there, how) in sorted(found.items()))
    taken = {pair.new for pair in pairs}
    removed = tuple(node.id for node in old.nodes if node.id not in found)
    added = tuple(node.id for node in new.nodes if node.id not in taken)
    return GraphAlignment(old, new, pairs, removed, added, _replaced(sides, removed, added))


@dataclass(frozen=True, slots=True)
class _Facts:
    """Facts that identify a node.

    Attributes:
        target: operator with its overload
        kind: operator without namespace and overload, in one spelling for graphs and payloads
        operation: what it computes, the same for all backends; the kind where both graphs have
            operators of one set
        sizes: of the first result, in any order: backends permute them
    """

    target: str
    kind: str
    types: Hashable
    literals: tuple[str, ...]
    module: str
    origin: str
    trace: str
    weights: Hashable
    operation: str
    sizes: tuple[str, ...]


class _Side:
    """One graph with its facts and neighbours."""

    def __init__(self, graph: ModelGraph, *, payload: bool) -> None:
        self.graph = graph
        self.facts = [_facts(node, payload=payload) for node in graph.nodes]
        self.makers: list[list[int]] = [[] for _ in graph.nodes]
        self.users: list[list[int]] = [[] for _ in graph.nodes]
        for edge in graph.edges:
            self.makers[edge.target].append(edge.source)
            self.users[edge.source].append(edge.target)


def _facts(node: ModelNode, *, payload: bool = False) -> _Facts:
    inner = node.node
    passive = inner.kind in (NodeKind.PLACEHOLDER, NodeKind.OUTPUT)
    literals = tuple(str(arg.literal) for arg in inner.args if arg.literal is not None)
    target = inner.kind.value if passive else inner.target
    kind = base_operator(target).rpartition("::")[2].replace("_", "").casefold()
    return _Facts(
        target=target,
        kind=kind,
        types=(
            tuple(describe(value) for value in node.values),
            tuple(weight.description for weight in node.weights),
        ),
        literals=literals,
        module=inner.module_path,
        origin=origin(node) or (inner.name if passive else ""),
        trace=inner.stack_trace,
        weights=tuple(weight.name for weight in node.weights),
        operation=operation(target) if payload else kind,
        sizes=_sizes(node),
    )


def _sizes(node: ModelNode) -> tuple[str, ...]:
    tensor = node.values[0].tensor if node.values else None
    return tuple(sorted(map(str, tensor.sizes))) if tensor is not None else ()


def _has_payload(*graphs: ModelGraph) -> bool:
    """Return whether nodes come from a payload, which names operators as its backend does."""
    return any(graph.source == _PROGRAM and any(map(_is_inside, graph.nodes)) for graph in graphs)


def _is_inside(node: ModelNode) -> bool:
    return bool(node.backend) and node.node.kind is not NodeKind.DELEGATE


def _changed(old: ModelNode, new: ModelNode, pair: NodePair) -> NodeChange | None:
    here, there = _facts(old), _facts(new)
    if here.target != there.target:
        return NodeChange(pair, "operator", here.target, there.target)
    if here.types != there.types:
        return NodeChange(pair, "types", _types(old), _types(new))
    if here.literals != there.literals:
        return NodeChange(pair, "arguments", ", ".join(here.literals), ", ".join(there.literals))
    return None


def _lowered_otherwise(old: ModelNode, new: ModelNode, pair: NodePair) -> NodeChange | None:
    here, there = _facts(old, payload=True), _facts(new, payload=True)
    if here.operation != there.operation:
        return NodeChange(pair, "operator", here.target, there.target)
    if _above_one(here.sizes) != _above_one(there.sizes):
        return NodeChange(pair, "types", _types(old), _types(new))
    return None


def _above_one(sizes: tuple[str, ...]) -> list[str]:
    """Return the sizes that tell: a backend adds dimensions of one to fit its kernels."""
    return [size for size in sizes if size != "1"]


def _types(node: ModelNode) -> str:
    built = ", ".join(describe(value) for value in node.values)
    weights = ", ".join(weight.description for weight in node.weights)
    return f"{built} (weights {weights})" if weights else built


def origin(node: ModelNode) -> str:
    """Return the name of the exported node that a node comes from, empty if unknown."""
    chain = node.node.from_node
    if chain:
        name, _, number = chain[-1].rpartition(".")
        return name if name and number.isdigit() else chain[-1]
    handle = node.node.debug_handle
    return f"handle {handle}" if handle is not None else ""


Key = Callable[[_Facts], Hashable]


def _everything(one: _Facts) -> Hashable:
    return (one.target, one.types, one.literals, one.module, one.origin, one.trace, one.weights)


def _place(one: _Facts) -> Hashable:
    return (one.target, one.types, one.literals, one.module, one.weights)


def _shape(one: _Facts) -> Hashable:
    return (one.target, one.types, one.literals)


def _line(one: _Facts) -> Hashable:
    return (one.target, one.types, one.literals, one.trace)


def _module(one: _Facts) -> Hashable:
    return (one.kind, one.module)


def _kind(one: _Facts) -> Hashable:
    return one.kind


def _operation(one: _Facts) -> Hashable:
    return one.operation


def _result(one: _Facts) -> Hashable:
    return (one.operation, one.sizes)


Levels = tuple[tuple[Key, str], ...]
_BY_ORIGIN: Levels = (
    (_everything, ORIGIN),
    (_place, ORIGIN),
    (_shape, STRUCTURE),
    (_module, STRUCTURE),
    (_kind, STRUCTURE),
)
# A layer that is inserted gives all later ones the module path of another; then this is right.
_BY_STRUCTURE: Levels = ((_line, STRUCTURE), (_shape, STRUCTURE), (_kind, STRUCTURE))
_BY_OPERATION: Levels = ((_result, STRUCTURE), (_kind, STRUCTURE), (_operation, STRUCTURE))
_SAME, _ALIKE, _PERFECT = 16, 4, 21  # agreement of a pair: what it computes, operator, all of it


def _ordered(sides: tuple[_Side, _Side], levels: Levels) -> dict[int, tuple[int, str]]:
    """Return the pairs in the same order in both, old id -> new id and how it was matched."""
    found: dict[int, tuple[int, str]] = {}
    stretches: list[Stretch] = [(0, len(sides[0].facts), 0, len(sides[1].facts))]
    for key, how in levels:
        keys = [[key(one) for one in side.facts] for side in sides]
        stretches = _level(keys[0], keys[1], stretches, found, how)
    return found


def _agreement(sides: tuple[_Side, _Side], found: dict[int, tuple[int, str]]) -> int:
    """Return the agreement of paired nodes, first in their operation, then in position."""
    total = 0
    for here, (there, _) in found.items():
        one, two = sides[0].facts[here], sides[1].facts[there]
        total += _SAME if _shape(one) == _shape(two) else _ALIKE
        total += (one.module == two.module) + 2 * (one.trace == two.trace)
        total += 2 * (one.weights == two.weights)
    return total


def _level(
    old: Sequence[Hashable],
    new: Sequence[Hashable],
    stretches: Iterable[Stretch],
    found: dict[int, tuple[int, str]],
    how: str,
) -> list[Stretch]:
    """Pair equal nodes in each stretch; return the remaining stretches."""
    left: list[Stretch] = []
    for start, stop, begin, end in stretches:
        here, there = start, begin
        for one, two in (*align(old[start:stop], new[begin:end]).pairs, _END):
            at, also = (stop, end) if (one, two) == _END else (start + one, begin + two)
            if here < at and there < also:
                left.append((here, at, there, also))
            if (one, two) != _END:
                found[at] = (also, how)
            here, there = at + 1, also + 1
    return left


_END = (-1, -1)


def _moved(sides: tuple[_Side, _Side], found: dict[int, tuple[int, str]]) -> None:
    """Pair remaining nodes at any position."""
    for key in (_everything, _place):
        rest = _rest(sides, found)
        one, two = (_singles(side, ids, key) for side, ids in zip(sides, rest, strict=True))
        for kind in one.keys() & two.keys():
            found[one[kind]] = (two[kind], MOVED)
    for _ in range(_ROUNDS):
        if not _by_neighbours(sides, found):
            break


def _rest(
    sides: tuple[_Side, _Side], found: dict[int, tuple[int, str]]
) -> tuple[list[int], list[int]]:
    taken = {there for there, _ in found.values()}
    old = [node.id for node in sides[0].graph.nodes if node.id not in found]
    return old, [node.id for node in sides[1].graph.nodes if node.id not in taken]


def _singles(side: _Side, ids: Iterable[int], key: Key) -> dict[Hashable, int]:
    kinds = {number: key(side.facts[number]) for number in ids}
    counts = Counter(kinds.values())
    return {kind: number for number, kind in kinds.items() if counts[kind] == 1}


def _by_neighbours(sides: tuple[_Side, _Side], found: dict[int, tuple[int, str]]) -> bool:
    """Pair nodes of one operator between the same neighbours; return whether any were found."""
    old, new = _rest(sides, found)
    free = set(new)
    paired = False
    for number in old:
        candidates = _candidates(sides, found, number, free)
        if len(candidates) == 1:
            (other,) = candidates
            found[number] = (other, MOVED)
            free.discard(other)
            paired = True
    return paired


def _candidates(
    sides: tuple[_Side, _Side], found: dict[int, tuple[int, str]], number: int, free: set[int]
) -> set[int]:
    """Return unpaired nodes of the operator connected to all partners of paired neighbours."""
    one, two = sides
    groups: list[set[int]] = []
    for near, back in ((one.makers, two.users), (one.users, two.makers)):
        partners = [found[other][0] for other in near[number] if other in found]
        groups += [set(back[partner]) for partner in partners]
    if not groups:
        return set()
    own = one.facts[number]
    alike = set[int].intersection(*groups) & free
    return {other for other in alike if _computes_as(own, two.facts[other])}


def _computes_as(one: _Facts, two: _Facts) -> bool:
    return one.kind == two.kind or one.operation == two.operation


def _replaced(
    sides: tuple[_Side, _Side], removed: Sequence[int], added: Sequence[int]
) -> tuple[Replacement, ...]:
    """Return the groups with equal origin, module and line on both sides."""
    groups: dict[tuple[str, str, str], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for which, ids in enumerate((removed, added)):
        for number in ids:
            facts = sides[which].facts[number]
            if facts.origin:
                groups[facts.origin, facts.module, facts.trace][which].append(number)
    return tuple(
        Replacement(tuple(gone), tuple(come)) for gone, come in groups.values() if gone and come
    )
