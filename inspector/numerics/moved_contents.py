"""Contents of what a record makes of its constants by views, permutations and expansions.

Compilers compute these once, and keep the result under a name of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.join.lowered_kinds import becomes, operation
from inspector.numerics.element_moves import PERMUTING
from inspector.numerics.flat_graph import FlatGraph, FlatNode, Value, is_transparent, known_sizes
from inspector.numerics.fused_nodes import type_of
from inspector.numerics.moved import recorded_dims
from inspector.numerics.payload_values import CAST
from inspector.numerics.same_steps import MOST_BYTES, content
from schema.dtypes.scalar_type import numel, scalar_type
from schema.etrecord import TensorData

_MOST_HELD = 1 << 24  # of all that is moved, together; views of one another count each
_EXPANDING = "expand"
_RESHAPING = frozenset(("clone", "reshape", "squeeze", "unsqueeze", "view"))
_Items = NDArray[np.unsignedinteger[Any]]


def constant_contents(graph: FlatGraph, constants: Mapping[str, TensorData]) -> dict[str, str]:
    """Return value -> its content, of constants and of what is only moved from them.

    Args:
        graph: the recorded graph
        constants: by name
    """
    held: dict[Value, tuple[int, _Items]] = {}
    found: dict[str, str] = {}
    room = _MOST_HELD
    for name, one in constants.items():
        items = _items(one)
        if items is not None:
            held[(), name] = one.scalar_type, items
            found[name] = content(one.scalar_type, items.tobytes())
    for node in graph.nodes:
        if node.scope or len(node.reads) != 1 or len(node.writes) != 1:
            continue
        code, before = held.get(node.reads[0], (-1, None))
        after = type_of(graph, node) if becomes(node.operator, CAST) else code
        before = None if before is None else _cast(before, code, after)
        code, made = after, None if before is None else _moved(graph, node, before)
        if made is not None and made.nbytes <= room:
            room -= made.nbytes
            held[node.writes[0]] = code, made
            found[node.writes[0][1]] = content(code, made.tobytes())
    return {name: one for name, one in found.items() if one}


def _items(one: TensorData) -> _Items | None:
    """Return the elements of a small constant in their order, None for another."""
    width, data = scalar_type(one.scalar_type).item_bytes, one.data
    if data is None or width not in (1, 2, 4, 8) or one.big_endian or len(data) % width:
        return None
    if not 0 < numel(one.sizes) * width <= MOST_BYTES or len(one.sizes) != len(one.strides):
        return None
    ends = [(size - 1) * step for size, step in zip(one.sizes, one.strides, strict=True)]
    if min(one.strides, default=0) < 0 or sum(ends) >= len(data) // width:
        return None
    flat = np.frombuffer(data, f"<u{width}")
    steps = tuple(step * width for step in one.strides)
    return np.ascontiguousarray(np.lib.stride_tricks.as_strided(flat, one.sizes, steps))


def _cast(items: _Items, code: int, after: int) -> _Items | None:
    """Return integers as elements of another type, None for other elements or types."""
    if after == code:
        return items
    own, wanted = (scalar_type(one).numpy if one >= 0 else None for one in (code, after))
    if own is None or wanted is None or np.dtype(own).kind not in "iub":
        return None
    stored: Any = items
    cast = stored.view(own).astype(wanted)
    return cast.view(f"<u{cast.itemsize}")


def _moved(graph: FlatGraph, node: FlatNode, items: _Items) -> _Items | None:
    """Return the elements behind a node that only moves them, None for another."""
    sizes, kind = known_sizes(graph.meta.get(node.writes[0])), operation(node.operator)
    if sizes is None or numel(sizes) * items.itemsize > MOST_BYTES:
        return None
    if kind in PERMUTING:
        dims = recorded_dims(node, items.ndim)
        whole = len(dims) == len(sizes) and sizes == tuple(items.shape[dim] for dim in dims)
        return np.transpose(items, dims) if whole else None
    if kind == _EXPANDING:
        longer = (1,) * (len(sizes) - items.ndim) + items.shape
        fits = len(longer) == len(sizes) and all(
            own in (1, size) for own, size in zip(longer, sizes, strict=True)
        )
        return np.broadcast_to(items, sizes) if fits else None
    reshapes = is_transparent(node) or kind in _RESHAPING
    return np.reshape(items, sizes) if reshapes and numel(sizes) == items.size else None
