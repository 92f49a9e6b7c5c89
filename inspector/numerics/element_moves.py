"""Views and permutations of one value: equal where they put its elements in the same places."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from inspector.join.lowered_kinds import operation
from schema.dtypes.scalar_type import numel
from schema.graph import GraphNode

Cut = tuple[int, int, int, int]  # dimension, start, stop, step
SPLITTING = frozenset(("split", "split_with_sizes"))
CUTTING = SPLITTING | {"select", "slice"}
PERMUTING = frozenset(("permute", "transpose"))
MOST_ELEMENTS = 1 << 20  # of a value whose elements are followed
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
    if numel(tuple(sizes)) > MOST_ELEMENTS:
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


def shaped(places: NDArray[np.int64], sizes: Sequence[int]) -> Any:  # noqa: ANN401 - numpy's own type has gaps
    """Return places in the sizes of a value."""
    whole: Any = places
    return whole.reshape(tuple(sizes))


def digest(places: NDArray[np.int64] | None) -> bytes:
    """Return a digest of places in the order of memory, empty without any: they may be many."""
    return b"" if places is None else hashlib.blake2b(places.tobytes(), digest_size=16).digest()


def permuted(sizes: tuple[int, ...], dims: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the places of the elements of a value whose dimensions are in another order."""
    return shaped(np.arange(numel(sizes)), sizes).transpose(dims).reshape(-1)


def cut_places(places: NDArray[np.int64], cut: Sequence[Cut]) -> NDArray[np.int64] | None:
    """Return which of the places a slice takes, in order; None if it names no dimension of them."""
    whole: Any = places
    found = [slice(None)] * places.ndim
    for dim, start, stop, step in cut:
        if not 0 <= dim < places.ndim or step < 1:
            return None
        found[dim] = slice(start, stop, step)
    return whole[tuple(found)].reshape(-1)


def recorded_cut(node: GraphNode, sizes: Sequence[int], number: int = 0) -> tuple[Cut, ...]:
    """Return what a result of a recorded slice, selection or split takes of a value.

    Empty if that is not known.

    Args:
        node: of the record
        sizes: of the value it reads
        number: of the result
    """
    kind = operation(node.target)
    given = {one.name: one.literal for one in node.args if not one.values}
    dim = given.get("dim", 0)
    if kind not in CUTTING or not isinstance(dim, int) or not -len(sizes) <= dim < len(sizes):
        return ()
    dim, size = dim % len(sizes), sizes[dim]
    if kind in SPLITTING:
        return _part(dim, given.get("split_sizes", given.get("split_size")), number)
    start = given.get("index" if kind == "select" else "start")
    start = 0 if start is None and kind == "slice" else start
    end, step = given.get("end"), given.get("step", 1)
    end = size if end is None else end
    if not isinstance(start, int) or not isinstance(end, int) or not isinstance(step, int):
        return ()
    if kind == "select":
        return ((dim, start % size, start % size + 1, 1),) if -size <= start < size else ()
    return ((dim, *slice(start, end).indices(size)[:2], step),)


def _part(dim: int, lengths: object, number: int) -> tuple[Cut, ...]:
    if isinstance(lengths, int):
        return ((dim, lengths * number, lengths * (number + 1), 1),)
    own = integers_of(lengths)
    begin = sum(own[:number])
    return ((dim, begin, begin + own[number], 1),) if number < len(own) else ()


def strides_in(places: NDArray[np.int64], asked: NDArray[np.int64]) -> tuple[int, ...] | None:
    """Return the steps with which a value in memory is read in another order.

    None if no steps do that, or the places are not the same.

    Args:
        places: of the elements in memory
        asked: places in the wanted sizes
    """
    if places.size != asked.size or not places.size:
        return None
    at: Any = np.zeros(places.size, np.int64)
    at[places] = np.arange(places.size)
    wanted = at[asked]
    strides: list[int] = []
    found: Any = np.zeros(asked.shape, np.int64)
    for dim, size in enumerate(asked.shape):
        one_on = tuple(int(dim == one) for one in range(asked.ndim))
        first = wanted[one_on] - wanted[(0,) * asked.ndim] if size > 1 else numel(asked.shape[dim:])
        strides.append(int(first))
        shape = tuple(size if one == dim else 1 for one in range(asked.ndim))
        found += shaped(np.arange(int(size)), shape) * strides[-1]
    return tuple(strides) if np.array_equal(found, wanted) else None


def permuted_dims(node: GraphNode, given: Mapping[str, object]) -> tuple[int, ...]:
    """Return the order of dimensions that a node of a payload makes, empty where it is unknown.

    Args:
        node: of the payload
        given: its arguments that are constants of the payload, by their role
    """
    kind = operation(node.target)
    if kind not in PERMUTING:
        return ()
    literals = [argument.literal for argument in node.args if not argument.values]
    literals += [side.get(name) for side in (node.attributes, given) for name in _ORDERS]
    for found in literals:
        order = integers_of(found)
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
        own = [literal] if isinstance(literal, int) else integers_of(literal)
        if not own or isinstance(literal, bool):
            break
        found += own
    return tuple(found)


def begin_alike(one: Sequence[int], other: Sequence[int]) -> bool:
    """Return whether constant arguments agree as far as both are given."""
    count = min(len(one), len(other))
    return count > 0 and one[:count] == other[:count]


def integers_of(found: object) -> list[int]:
    """Return a list of integers as such, empty for everything else."""
    if not isinstance(found, (list, tuple, np.ndarray)):
        return []
    items = [*cast("Any", found)]
    return (
        [int(one) for one in items] if all(isinstance(o, (int, np.integer)) for o in items) else []
    )
