"""Tensors that cross the border of a delegate, and the cost of conversions there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from inspector.files.session import Session
from inspector.graph.delegate_inside import InsideNode, inside_delegate
from inspector.graph.model_graph import ModelGraph, ModelNode
from inspector.join.operator_names import quantizes
from inspector.profile.operator_rows import OperatorRow, operator_rows
from inspector.tables.facts import Fact, FactGroup
from inspector.tables.operators import JOIN_REASONS, JOIN_TONES, join_word
from inspector.tables.selection import Selection, SelectionKind
from inspector.units import Quantity, exact_text, format_bytes, format_total
from schema.graph import GraphValue
from schema.objects.identity_cache import identity_cache
from schema.objects.plural import plural

_LAYOUT = ("_to_dim_order_copy", "_clone_dim_order", "permute_copy", "transpose_copy")
_MEASURED = "inner"


@dataclass(frozen=True, slots=True)
class DelegateBoundary:
    """A tensor that enters or leaves a delegate.

    Attributes:
        delegate: index of the delegate
        inward: whether it enters
        value: the tensor
        other: node at the other side: the producer of an input, a reader of an output
        nbytes: its size, None if unknown
        conversion: ``quantize``, ``dequantize`` or ``layout`` if that node only
            converts, else empty
    """

    delegate: int
    inward: bool
    value: GraphValue
    other: str
    nbytes: int | None
    conversion: str = ""


@dataclass(frozen=True, slots=True)
class Inserted:
    """A payload node that the compiler added: a layout copy, a conversion.

    Attributes:
        node: in the payload
        ns: mean time of a run, None if not measured
        event: row of the profile, or None
        tick_ns: step of the clock
    """

    node: InsideNode
    ns: float | None
    event: int | None
    tick_ns: float = 0.0


@identity_cache
def boundaries(graph: ModelGraph) -> tuple[DelegateBoundary, ...]:
    """Return each tensor that enters or leaves a delegate, once per delegate and direction."""
    found: dict[tuple[int, bool, str], DelegateBoundary] = {}
    values = {value.name: value for node in graph.nodes for value in node.values}
    for edge in graph.edges:
        source, target = graph.nodes[edge.source], graph.nodes[edge.target]
        if source.delegate == target.delegate:
            continue
        value = values.get(edge.value, GraphValue(edge.value))
        for inside, other, inward in ((target, source, True), (source, target, False)):
            if inside.delegate is not None:
                key = (inside.delegate, inward, edge.value)
                what = _conversion(other)
                one = DelegateBoundary(
                    inside.delegate, inward, value, other.name, edge.nbytes, what
                )
                if key not in found or (what and not found[key].conversion):
                    found[key] = one
    return tuple(found.values())


def _conversion(other: ModelNode) -> str:
    """Return the kind of a conversion node outside, empty for other nodes."""
    if other.delegate is not None:
        return ""
    sign = quantizes(other.node.target)
    if sign:
        return "quantize" if sign > 0 else "dequantize"
    stem = other.node.target.rpartition("::")[2].split(".")[0]
    return "layout" if stem in _LAYOUT else ""


@identity_cache
def inserted_nodes(session: Session, method: str, delegate: int) -> tuple[Inserted, ...]:
    """Return the payload nodes of a delegate without a user operator."""
    rows: dict[str, list[OperatorRow]] = {}
    for row in operator_rows(session, method).of_delegate(delegate):
        if row.kind == _MEASURED and row.link.inserted:
            for name in row.link.payload_nodes:
                rows.setdefault(name, []).append(row)
    found: list[Inserted] = []
    for node in inside_delegate(session, method, delegate).nodes:
        if node.inserted:
            own = rows.get(node.node.name, [])
            known = [row.mean_ns for row in own if row.mean_ns is not None]
            event = next((row.event for row in own), None)
            tick = max((row.tick_ns for row in own), default=0.0)
            found.append(Inserted(node, sum(known) if known else None, event, tick))
    return tuple(found)


def border_group(
    session: Session, method: str, delegate: int, borders: Sequence[DelegateBoundary]
) -> FactGroup:
    """Return the tensors that cross the border of a delegate and the cost of conversions."""
    own = [one for one in borders if one.delegate == delegate]
    facts = [
        _crossing("in", [one for one in own if one.inward]),
        _crossing("out", [one for one in own if not one.inward]),
    ]
    added = inserted_nodes(session, method, delegate)
    if added:
        facts.append(_added(added))
    outside = Counter(one.conversion for one in own if one.conversion)
    for word, title in (
        ("dequantize", "dequantized outside"),
        ("quantize", "quantized outside"),
        ("layout", "layout changed outside"),
    ):
        if outside[word]:
            names = ", ".join(one.other for one in own if one.conversion == word)
            facts.append(Fact(title, plural(outside[word], "tensor"), names))
    return FactGroup("Boundary", tuple(facts))


def _crossing(way: str, own: Sequence[DelegateBoundary]) -> Fact:
    known = [one.nbytes for one in own if one.nbytes is not None]
    if len(known) < len(own):
        return Fact(way, f"{plural(len(own), 'tensor')}, size unknown")
    return Fact(
        way, f"{plural(len(own), 'tensor')}, {format_bytes(sum(known))}", f"{sum(known):,} B"
    )


def _added(added: Sequence[Inserted]) -> Fact:
    """Return the number of inserted nodes, and their cost if known."""
    words = [plural(len(added), "node")]
    sizes = [one.node.output_bytes for one in added]
    known = [size for size in sizes if size is not None]
    if len(known) == len(sizes):
        words.append(f"{format_bytes(sum(known))} written")
    times = [one.ns for one in added if one.ns is not None]
    ticks = [one.tick_ns for one in added]
    exact = ", ".join(one.node.node.name for one in added)
    if len(times) == len(added):
        words.append(format_total(times, ticks))
        exact += f": {exact_text(sum(times), Quantity.TIME)}"
    return Fact("added by the compiler", ", ".join(words), exact)


def join_group(session: Session, method: str, delegate: int) -> FactGroup:
    """Return how the events inside a delegate were joined to nodes."""
    rows = operator_rows(session, method).of_delegate(delegate)
    words = Counter(join_word(row.link) for row in rows if row.kind == _MEASURED)
    facts = [
        Fact(
            "operators inside",
            f"{count:,} joined",
            JOIN_REASONS[word],
            word,
            JOIN_TONES.get(word, "muted"),
        )
        for word, count in words.most_common()
    ]
    return FactGroup("Events", tuple(facts))


def inserted_selection(method: str, one: Inserted) -> Selection | str:
    """Return the selection for an inserted node: its event, if measured."""
    if one.event is not None:
        return Selection(SelectionKind.EVENT, method, event=one.event)
    return f"{one.node.delegate} {one.node.node.name}"
