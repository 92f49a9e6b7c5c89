"""The decoded form of every delegate payload, whatever backend wrote it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from schema.errors import Issue
from schema.graph import Graph

NamedData = Mapping[str, memoryview]
CompileSpecs = Sequence[tuple[str, bytes]]
NO_FILES: Mapping[str, memoryview] = MappingProxyType({})
NO_HANDLES: Mapping[str, tuple[int, ...]] = MappingProxyType({})
NO_ORIGINS: Mapping[str, tuple[str, ...]] = MappingProxyType({})
NO_EXTERNAL: Mapping[int, str] = MappingProxyType({})
NO_FACTS: Mapping[str, object] = MappingProxyType({})
EMPTY_BYTES = memoryview(b"")
INLINE, NAMED = "inline", "named"


@dataclass(frozen=True, slots=True)
class Part:
    """A run of payload bytes with one owner; all parts of a payload add up to its size.

    Parts of one owner that are not adjacent have the same name.

    Attributes:
        name: owner, as in ``Conv2d_1`` or ``v3``
        kind: header, node, value, constant, named_reference, table, vtable, block, file,
            directory, section, text, binary, alignment (zeros between owners), unreferenced
            (bytes that nothing refers to) or undecoded
        offset: first byte in the payload
        nbytes: length
    """

    name: str
    kind: str
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Constant:
    """Bytes that belong to the payload, inside it or in named data.

    Attributes:
        name: key in named data, or a name unique in the payload
        nbytes: size of the constant; for a named blob without recorded size that of the blob,
            None if missing
        location: ``inline`` or ``named``
        data: the bytes, None if a named blob is missing
        role: weight, scale, shader, model, library or file
    """

    name: str
    nbytes: int | None
    location: str
    data: memoryview | None = None
    role: str = "weight"


def total_bytes(constants: Iterable[Constant]) -> int:
    """Return the bytes of all constants whose size is known."""
    return sum(constant.nbytes or 0 for constant in constants)


@dataclass(frozen=True, slots=True)
class RuntimeOperator:
    """The events that the runtime may log for a payload node, in order.

    Attributes:
        node: name of the graph node
        names: alternatives for the family of the event, its name up to the bracket
        followed_by: alternatives of a second event that the node may add
        optional: the runtime may merge the node into a neighbour, and then logs no event
    """

    node: str
    names: tuple[str, ...]
    followed_by: tuple[str, ...] = ()
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Payload:
    """A decoded delegate payload.

    Attributes:
        backend_id: as in the program
        format: magics that were found, as in ``XH00/XN01``; ``unknown`` if none was
        size: bytes of the payload
        graph: nodes and values, None without a decoder or for a damaged payload
        parts: every byte of the payload, once, in order
        constants: weights, scales, shaders and other data
        debug_handles: node name or backend's own id -> handles of the program it came from
        summary: printable facts by name
        files: files that can be extracted, by path with ``/``
        external_ids: position in the delegate call's arguments -> graph value
        operators: nodes in the order in which the runtime logs them, if known
        origins: node name -> nodes of the partition that it computes, where the payload has them
        node_values: node name -> nodes of the partition, the last of which has its value, likewise;
            where a node has several values, their names instead
        issues: problems, and the reason for a missing graph
    """

    backend_id: str
    format: str
    size: int
    graph: Graph | None = None
    parts: tuple[Part, ...] = ()
    constants: tuple[Constant, ...] = ()
    debug_handles: Mapping[str, tuple[int, ...]] = field(
        default_factory=lambda: NO_HANDLES, hash=False
    )
    summary: Mapping[str, object] = field(default_factory=lambda: NO_FACTS, hash=False)
    files: Mapping[str, memoryview] = field(default_factory=lambda: NO_FILES, hash=False)
    external_ids: Mapping[int, str] = field(default_factory=lambda: NO_EXTERNAL, hash=False)
    operators: tuple[RuntimeOperator, ...] = ()
    origins: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: NO_ORIGINS, hash=False)
    node_values: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: NO_ORIGINS, hash=False
    )
    issues: tuple[Issue, ...] = field(default=(), compare=False)

    @property
    def node_count(self) -> int:
        """Return the number of nodes that compute, those of nested graphs included."""
        return 0 if self.graph is None else _count(self.graph)


def _count(graph: Graph) -> int:
    return len(graph.calls()) + sum(_count(inner) for inner in graph.subgraphs.values())


@dataclass(frozen=True, slots=True)
class PayloadSource:
    """The input of a decoder.

    Attributes:
        backend_id: as in the program
        data: the payload
        named_data: blobs that the payload may refer to by key
        compile_specs: as in the program
    """

    backend_id: str
    data: memoryview
    named_data: NamedData
    compile_specs: CompileSpecs


Decoder = Callable[[PayloadSource], Payload]
