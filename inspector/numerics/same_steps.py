"""Steps that compute the same of the same, on both sides of a join.

A compiler makes one step of two of them, or repeats one for each reader. Nodes that nothing
distinguishes have equal values: which of them a step is then makes no difference.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from inspector.graph.delegate_inside import InsideNode, InsideValue
from inspector.join.lowered_kinds import operation
from inspector.numerics.arbitrary import is_arbitrary
from inspector.numerics.flat_graph import FlatGraph, FlatNode, Value, known_sizes
from inspector.numerics.shared_handles import DelegateEvent
from schema.dtypes.scalar_type import numel, scalar_type

MOST_BYTES = 1 << 16  # of a constant that is known by its content: others are by their name
_TYPES = {1: "<i1", 2: "<i2", 3: "<i4", 6: "<f4"}  # scalar type -> its elements, if written out
_ALIKE = "alike "  # all elements
_QUANTIZES = "::quantize_per_tensor"
_IDENTITIES = frozenset(("name", "node_id", "memory_object"))  # attributes that change no value


def content(code: int, data: memoryview | bytes | None) -> str:
    """Return what two constants of equal type and bytes share, empty for large ones."""
    if data is None or not 0 < len(data) <= MOST_BYTES:
        return ""
    held = bytes(data)
    size = scalar_type(code).item_bytes or 1
    alike = held == held[:size] * (len(held) // size)
    digest = hashlib.blake2b(held, digest_size=16).hexdigest()
    return f"{_ALIKE if alike else ''}{code}:{digest}"


def is_distinctive(own: str) -> bool:
    """Return whether a content is hardly that of two constants by chance: zeros, or one number."""
    return not own.startswith(_ALIKE)


def constants_of(node: InsideNode) -> tuple[tuple[str, str], ...]:
    """Return name and content of the small constants that a payload node reads."""
    return tuple((one.value.name, found) for one in node.values if (found := _content_of(one)))


def _content_of(one: InsideValue) -> str:
    tensor = one.value.tensor
    if tensor is None:
        return ""
    if one.constant is not None:
        return content(tensor.scalar_type, one.constant.data)
    literal = one.value.literal  # where a payload has numbers
    items = cast("Sequence[Any]", literal) if isinstance(literal, (tuple, list)) else ()
    kind = _TYPES.get(tensor.scalar_type)
    if kind is None or len(items) > MOST_BYTES:
        return ""
    try:
        return content(tensor.scalar_type, np.array(items, kind).tobytes())
    except (OverflowError, TypeError, ValueError):
        return ""  # of a damaged payload


def settings_of(node: InsideNode) -> str:
    """Return all that a payload node computes with, beside tensors."""
    facts = {name: one for name, one in node.node.attributes.items() if name not in _IDENTITIES}
    shapes = [one.value.tensor.sizes for one in node.values if one.value.tensor is not None]
    given = [(one.name, len(one.values), one.literal) for one in node.node.args]
    return repr((sorted(facts.items()), given, shapes))


def filled_contents(graph: FlatGraph, nodes: Sequence[FlatNode]) -> dict[str, str]:
    """Return value -> content of tensors that a graph fills with one number, quantized or not."""
    numbers: dict[Value, float] = {}
    found: dict[str, str] = {}
    for node in nodes:
        meta = graph.meta.get(node.writes[0]) if node.writes else None
        given = {one.name: one.literal for one in node.node.args if not one.values}
        if meta is None or meta.tensor is None:
            continue
        code, sizes = meta.tensor.scalar_type, known_sizes(meta)
        filled = given.get("fill_value") if operation(node.operator) == "full" else None
        if node.operator.endswith(_QUANTIZES) and node.reads[0] in numbers:
            filled = _quantized(numbers[node.reads[0]], given)
        if not isinstance(filled, (int, float)) or sizes is None or code not in _TYPES:
            continue
        numbers[node.writes[0]] = filled
        if numel(sizes) <= MOST_BYTES // 8:
            data = np.full(sizes, filled, _TYPES[code]).tobytes()
            found[node.writes[0][1]] = content(code, data)
    return found


def _quantized(number: float, given: Mapping[str, object]) -> int | None:
    """Return what a number is quantized to, None where the steps are unknown."""
    names = ("scale", "zero_point", "quant_min", "quant_max")
    steps = [one for name in names if isinstance(one := given.get(name), (int, float))]
    if len(steps) != len(names) or not steps[0]:
        return None
    scale, zero, low, high = steps
    return int(min(max(round(number * (1.0 / scale)) + zero, low), high))


def same_values(graph: FlatGraph, nodes: Sequence[FlatNode]) -> dict[Value, Value]:
    """Return recorded value -> the first that is computed alike, for those that are not the first.

    Args:
        graph: the recorded graph
        nodes: of a delegate, in graph order
    """
    first: dict[object, Value] = {}
    found: dict[Value, Value] = {}

    def note(key: object, value: Value) -> None:
        if (before := first.setdefault(key, value)) != value:
            found[value] = before

    for node in nodes:
        for value in (*node.reads, *node.writes):
            if own := graph.contents.get(value[1]):
                meta = graph.meta.get(value)
                note((own, meta.tensor.sizes if meta and meta.tensor else ()), value)
        if not node.reads or is_arbitrary(node.operator):
            continue
        given = [
            (one.name, [found.get((node.scope, n), (node.scope, n)) for n in one.values])
            for one in node.node.args
        ]
        given.append(("", [found.get(value, value) for value in node.reads]))
        literals = [one.literal for one in node.node.args]
        for number, value in enumerate(node.writes):
            note(repr((node.node.target, given, literals, number)), value)
    return found


def same_names(events: Sequence[DelegateEvent]) -> dict[str, str]:
    """Return payload value -> the first that is computed alike, for those that are not the first.

    Empty where the payload writes a value twice: what a step reads then depends on its place.
    """
    if any(count > 1 for count in Counter(n for one in events for n in one.writes).values()):
        return {}
    first: dict[object, str] = {}
    found: dict[str, str] = {}
    for event in events:
        if not event.settings or not event.reads:
            continue
        known = dict(event.constants)
        reads = tuple(known.get(name) or found.get(name, name) for name in event.reads)
        for number, name in enumerate(event.writes):
            before = first.setdefault((event.kind, event.settings, reads, number), name)
            if before != name:
                found[name] = before
    return found
