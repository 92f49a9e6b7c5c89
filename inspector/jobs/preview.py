"""Effects of a recipe change on partitions, as data; no torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from inspector.graph.boundaries import Boundary
from inspector.recipes.compile_job import CompileJob
from inspector.units import format_bytes
from schema.etrecord.parts.verdicts import NodeOutcome, Verdict
from schema.objects.plural import plural


@dataclass(frozen=True, slots=True)
class PreviewJob:
    """A request for a preview of the delegation."""

    compile: CompileJob


@dataclass(frozen=True, slots=True)
class SuggestJob:
    """A request for changes that reduce boundaries; each is tried."""

    compile: CompileJob


@dataclass(frozen=True, slots=True)
class NodePreview:
    """A call of the edge graph.

    Attributes:
        name: in the graph; with the name of its body as a prefix, as in verdicts
        operator: as ``aten.mm.default``
        partition: index of its partition, None if not delegated
        exported: name of its exported node, empty if unknown
        module: path of the innermost module, empty for the outermost
        reads: names of the calls it reads
    """

    name: str
    operator: str
    partition: int | None = None
    exported: str = ""
    module: str = ""
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionPreview:
    """Nodes that would become one delegate.

    Attributes:
        name: tag, as in verdicts
        backend: its backend
        partitioner: name as in verdicts
        nodes: in the order of the graph
    """

    name: str
    backend: str
    partitioner: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MethodPreview:
    """The partitions a compile would delegate in a method.

    Attributes:
        nodes: calls of the edge graph that compute, in order
        partitions: in the order of the partitioners
        boundaries: values entering or leaving partitions
        verdicts: of all partitioners
    """

    nodes: tuple[NodePreview, ...]
    partitions: tuple[PartitionPreview, ...]
    boundaries: tuple[Boundary, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def delegated(self) -> int:
        """Return how many nodes are in a partition."""
        return sum(node.partition is not None for node in self.nodes)

    def owners(self) -> dict[str, str]:
        """Return the backend by node; without nodes that are not delegated."""
        return {
            node.name: self.partitions[node.partition].backend
            for node in self.nodes
            if node.partition is not None
        }

    def deciding(self, node: str) -> Verdict | None:
        """Return the deciding verdict of a node: who took it, else the first rejection."""
        mine = [verdict for verdict in self.verdicts if verdict.node == node]
        taken = [verdict for verdict in mine if verdict.outcome is NodeOutcome.DELEGATED]
        return next(iter([*taken, *mine]), None)


@dataclass(frozen=True, slots=True)
class MethodDifference:
    """The effect of a change on a method.

    Attributes:
        gained: by backend, newly delegated nodes
        lost: by backend, nodes no longer delegated
        partitions: change in number
        boundaries: change in number
        copied_bytes: change of the bytes that cross boundaries; None if a size is unknown
        layout_copies: change in number
    """

    gained: Mapping[str, tuple[str, ...]]
    lost: Mapping[str, tuple[str, ...]]
    partitions: int
    boundaries: int
    copied_bytes: int | None
    layout_copies: int

    @property
    def words(self) -> str:
        """Return it as a sentence."""
        parts = [self._moved(backend) for backend in dict.fromkeys((*self.gained, *self.lost))]
        counts = ((self.partitions, "partition", ""), (self.boundaries, "boundary", "boundaries"))
        for count, one, several in counts:
            if count:
                parts.append(f"{plural(abs(count), one, several)} {_more(count)}")
        if self.copied_bytes:
            size = format_bytes(abs(self.copied_bytes))
            parts.append(f"{size} {'more' if self.copied_bytes > 0 else 'less'} over boundaries")
        return ", ".join(parts) or "nothing changes"

    def _moved(self, backend: str) -> str:
        """Return the nodes a backend gains and loses."""
        counts = ((self.gained, "gains"), (self.lost, "loses"))
        both = [(verb, len(found[backend])) for found, verb in counts if backend in found]
        *before, (verb, count) = both
        words = [f"{other} {moved:,}" for other, moved in before]
        words.append(f"{verb} {plural(count, 'node')}")
        return f"{backend} {' and '.join(words)}"


def _more(count: int) -> str:
    return "more" if count > 0 else "fewer"


@dataclass(frozen=True, slots=True)
class Preview:
    """The partitions a compile would delegate.

    Attributes:
        methods: by name
        warnings: about rules, such as one that matches nothing
    """

    methods: Mapping[str, MethodPreview]
    warnings: tuple[str, ...] = field(default=())

    def against(self, base: Preview) -> dict[str, MethodDifference]:
        """Return by method the differences from another preview of the same program."""
        return {
            name: _difference(base.methods[name], found)
            for name, found in self.methods.items()
            if name in base.methods
        }


def _difference(base: MethodPreview, found: MethodPreview) -> MethodDifference:
    before, after = _by_origin(base), _by_origin(found)
    old, new = copied_bytes(base.boundaries), copied_bytes(found.boundaries)
    return MethodDifference(
        gained=_by_backend(after, before),
        lost=_by_backend(before, after),
        partitions=len(found.partitions) - len(base.partitions),
        boundaries=len(found.boundaries) - len(base.boundaries),
        copied_bytes=None if old is None or new is None else new - old,
        layout_copies=sum(one.layout_copies for one in found.boundaries)
        - sum(one.layout_copies for one in base.boundaries),
    )


_Place = tuple[str, str, int]  # exported node, operator, how many equal pairs came before


def _by_origin(found: MethodPreview) -> dict[_Place, tuple[str, str]]:
    """Return name and backend of each delegated node, by a key common to both programs.

    Names in an edge graph are numbered: an additional node renames all later ones.
    """
    owners = found.owners()
    seen: Counter[tuple[str, str]] = Counter()
    places: dict[_Place, tuple[str, str]] = {}
    for node in found.nodes:
        key = (node.exported or node.name, node.operator)
        if node.name in owners:
            places[(*key, seen[key])] = (node.name, owners[node.name])
        seen[key] += 1
    return places


def _by_backend(
    mine: Mapping[_Place, tuple[str, str]], others: Mapping[_Place, tuple[str, str]]
) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for place, (node, backend) in mine.items():
        if others.get(place, ("", ""))[1] != backend:
            found.setdefault(backend, []).append(node)
    return {backend: tuple(nodes) for backend, nodes in found.items()}


def copied_bytes(boundaries: Sequence[Boundary]) -> int | None:
    """Return the bytes that cross boundaries, None if a size is unknown."""
    sizes = [one.nbytes for one in boundaries]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None
