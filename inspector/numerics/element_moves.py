"""Views and permutations of one value: equal where they put its elements in the same places."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from inspector.join.lowered_kinds import operation
from schema.dtypes.scalar_type import numel
from schema.graph import GraphNode

PERMUTING = frozenset(("permute", "transpose"))
_MOST_ELEMENTS = 1 << 20  # of a value whose elements are followed
_ORDERS = ("dims", "perm", "perms", "permutation", "permute")  # attributes of payload nodes


@dataclass(frozen=True, slots=True)
class ElementMove:
    """A step that computes nothing.

    Attributes:
        sizes: of its result
        dims: order of the dimensions of its operand; None where their elements stay in order
    """

    sizes: tuple[int, ...]
    dims: tuple[int, ...] | None = None


def arrangement(sizes: Sequence[int], moves: Sequence[ElementMove]) -> NDArray[np.int64] | None:
    """Return where the elements of a value are behind some moves, None for contradicting sizes.

    Shapes: int64[the sizes of the last move], places in the value
    """
    if numel(tuple(sizes)) > _MOST_ELEMENTS:
        return None
    places: Any = np.arange(numel(tuple(sizes)))
    found: Any = places.reshape(tuple(sizes))
    for move in moves:
        if move.dims is not None:
            if sorted(move.dims) != list(range(found.ndim)):
                return None
            found = found.transpose(move.dims)
        if numel(move.sizes) != found.size or (move.dims is not None and found.shape != move.sizes):
            return None
        found = found.reshape(move.sizes)
    return found


def digest(places: NDArray[np.int64] | None) -> bytes:
    """Return a digest of places in the order of memory, empty without any: they may be many."""
    return b"" if places is None else hashlib.blake2b(places.tobytes(), digest_size=16).digest()


def permuted_dims(node: GraphNode) -> tuple[int, ...]:
    """Return the order of dimensions that a node of a payload makes, empty where it is unknown."""
    kind = operation(node.target)
    if kind not in PERMUTING:
        return ()
    literals = [argument.literal for argument in node.args if not argument.values]
    literals += [node.attributes.get(name) for name in _ORDERS]
    for found in literals:
        order = _integers(found)
        if order and sorted(dim % len(order) for dim in order) == list(range(len(order))):
            return tuple(dim % len(order) for dim in order)
    return ()


def integers(node: GraphNode) -> tuple[int, ...]:
    """Return the constant arguments of a node up to the first that has other than integers."""
    found: list[int] = []
    for argument in node.args:
        if argument.values:
            continue
        literal = argument.literal
        own = [literal] if isinstance(literal, int) else _integers(literal)
        if not own or isinstance(literal, bool):
            break
        found += own
    return tuple(found)


def _integers(found: object) -> list[int]:
    if not isinstance(found, (list, tuple, np.ndarray)):
        return []
    items = [*cast("Any", found)]
    return (
        [int(one) for one in items] if all(isinstance(o, (int, np.integer)) for o in items) else []
    )
