"""Where the elements of a payload's values are in the recorded values that they are.

A payload has steps for layouts of its own: images with channels last, rows without a batch. These
are followed from the inputs on, element by element; what an operator makes has the layout of what
it reads, unless the operator has one by its definition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.join.lowered_kinds import becomes, operation
from inspector.numerics.element_moves import (
    MOST_ELEMENTS,
    PERMUTING,
    SPLITTING,
    ElementMove,
    arrangement,
    cut_places,
    digest,
    permuted,
    recorded_cut,
    shaped,
    strides_in,
)
from inspector.numerics.flat_graph import FlatNode, Value
from inspector.numerics.grades import FLOW
from inspector.numerics.moved import recorded_dims
from inspector.numerics.payload_values import CAST, PayloadValues, is_moving, logged_sizes
from inspector.numerics.shared_handles import DelegateEvent
from inspector.numerics.traced import is_dense
from schema.dtypes.scalar_type import numel

Places = NDArray[np.int64]
# Kinds that TOSA defines with channels last, of whatever layout the program has.
_OF_IMAGES = frozenset(
    [
        "AVG_POOL2D",
        "CONV2D",
        "CONV3D",
        "DEPTHWISE_CONV2D",
        "MAX_POOL2D",
        "RESIZE",
        "TRANSPOSE_CONV2D",
    ]
)
_OF_ROWS = frozenset(("MATMUL",))  # and columns, by definition
_LINEAR = operation("linear")
_IMAGE_DIMS = (3, 4, 5)
_MOST_STEPS = 16  # between a slice and the value that it is cut out of
_MOST_PLACES = 1 << 25  # kept together, 256 MiB; most values have one of a few layouts


class ElementPlaces:
    """Places of the elements of values, as far as they are known: int64[elements] each."""

    def __init__(self, values: PayloadValues) -> None:
        self._values = values
        self._found: dict[str, Places] = {}
        self._layouts: dict[bytes, Places] = {}
        self._hashed: dict[int, bytes] = {}  # by the id of an array among the layouts
        self._straight: dict[int, Places] = {}
        self._alike: dict[str, str] = {}  # result -> the first one of its step, equally large
        self._last: dict[tuple[int, ...], Places] = {}
        self._left = _MOST_PLACES
        self._in_images = any(one.kind in _OF_IMAGES for one in values.events)
        self._outputs = {n: v for n, v in values.border.items() if n in values.writers}
        for name, value in values.border.items():
            if name not in values.writers and (places := self.recorded(value)) is not None:
                self._note(name, places)

    def update(self) -> None:
        """Follow the elements through what has become known: payloads are in their order."""
        for event in self._values.events:
            name = event.writes[0]
            if name not in self._found and (places := self._places(event)) is not None:
                self._note(name, places)
                for other in event.writes[1:]:  # results that are alike have one layout
                    if self._sizes_of(other) == self._sizes_of(name) is not None:
                        self._note(other, places)
                        self._alike[other] = name

    def _sizes_of(self, name: str) -> tuple[int, ...] | None:
        return self._values.sizes(self._values.of(name))

    def _note(self, name: str, places: Places) -> None:
        """Keep the places of a value; equal ones are held once."""
        found = self._hashed.get(id(places)) or digest(places)
        if found not in self._layouts:
            if not self._has_room(places):
                return
            self._layouts[found] = places
            self._hashed[id(places)] = found
        self._found[name] = self._layouts[found]

    def _has_room(self, places: Places) -> bool:
        """Count what is kept from now on; return whether it may be."""
        fits = places.size <= self._left
        self._left -= places.size if fits else 0
        return fits

    def digest(self, event: DelegateEvent) -> bytes:
        """Return a digest of the places of an event, empty if they are not known."""
        places = self._found.get(event.writes[0])
        return b"" if places is None else self._hashed[id(places)]

    def cut(self, event: DelegateEvent) -> tuple[Value, Places] | None:
        """Return the value that a slice of the payload is cut out of, and which elements it takes.

        Through views, pads with a constant and slices before it, as Arm's compiler makes them of
        a slice with a step. None if that is not known.
        """
        found = self._elements(event, _MOST_STEPS) if event.cut else None
        return None if found is None or bool((found[1] < 0).any()) else found

    def _elements(self, event: DelegateEvent, steps: int) -> tuple[Value, Places] | None:
        """Return the known value that an event has elements of, and which; constants are -1."""
        data, logged = self._values.data(event), logged_sizes(event)
        sizes = self._logged(data[0]) if len(data) == 1 else None
        if sizes is None or logged is None or numel(logged) > MOST_ELEMENTS:
            return None
        value, places = self._values.of(data[0]), self._found.get(data[0])
        if value is None or places is None:
            before = self._values.writers.get(data[0])
            inner = self._elements(before, steps - 1) if before is not None and steps else None
            if inner is None:
                return None
            value, places = inner
        found: Places | None = None
        if event.cut:
            found = cut_places(shaped(places, sizes), event.cut)
        elif is_moving(event):
            dims = event.dims if operation(event.kind) in PERMUTING else None
            order = None if dims == () else arrangement(sizes, [ElementMove(logged, dims)])
            found = None if order is None else places[shaped(order, (-1,))]
        elif becomes("aten::cat", event.kind):
            found = _padded(shaped(places, sizes), logged, event.reads.index(data[0]) > 0)
        return None if found is None else (value, found)

    def recorded_cuts(self, value: Value) -> Iterator[tuple[Value, Places]]:
        """Yield the values that a recorded result is cut out of, and which elements it takes.

        The value behind its operand first; of slices of slices those before as well.
        """
        producers, places = self._values.graph.producers, None
        while value in producers:
            node, number = producers[value]
            sizes = self._values.sizes(node.reads[0]) if node.reads else None
            cut = () if sizes is None else recorded_cut(node.node, sizes, number)
            whole = self.recorded(node.reads[0]) if cut else None
            taken = None if whole is None else cut_places(shaped(whole, sizes or ()), cut)
            if taken is None:
                return
            places = taken if places is None else taken[places]
            value = self._values.root(node.reads[0])
            yield value, places

    def recorded(self, value: Value) -> Places | None:
        """Return the places of a recorded value in the one that it moves, None if unknown."""
        root = self._values.source(value)
        sizes = self._values.sizes(root)
        maker = self._values.graph.producers.get(value)
        moves = [] if value == root or maker is None else self._recorded_moves(maker[0])
        found = None if sizes is None or moves is None else arrangement(sizes, moves)
        return None if found is None else shaped(found, (-1,))

    def in_layout(self, event: DelegateEvent, node: FlatNode) -> DelegateEvent | None:
        """Return an event with its tensors in the sizes of a node, None if that is not known.

        Their elements keep their places in memory.
        """
        sizes, places = self._values.sizes(node.writes[0]), self._found.get(event.writes[0])
        asked = None if places is None else self.recorded(node.writes[0])
        if not all(is_dense(one) for each in event.passes for one in each):
            return None
        strides = (
            None
            if sizes is None or places is None or asked is None
            else strides_in(places, shaped(asked, sizes))
        )
        if sizes is None or strides is None:
            return None
        passes = tuple(
            tuple(replace(one, sizes=sizes, strides=strides) for one in each)
            for each in event.passes
        )
        return replace(event, nodes=(node.node.name,), grade=FLOW, passes=passes)

    # ---- one step
    def _places(self, event: DelegateEvent) -> Places | None:
        logged = logged_sizes(event)
        if logged is None or numel(logged) > MOST_ELEMENTS or self._left <= 0:
            return None
        if is_moving(event):
            return self._moved(event, logged)
        root = self._values.of(event.writes[0])
        data = self._values.data(event)
        if event.kind == CAST and [self._values.of(name) for name in data] == [root]:
            return self._found.get(data[0])
        sizes = self._values.sizes(root)
        if root is None or sizes is None or numel(sizes) != numel(logged):
            return None
        if event.writes[0] in self._outputs:
            return self.recorded(self._outputs[event.writes[0]])
        if event.cut:
            source, taken = self.cut(event) or (None, None)
            cuts = (one for value, one in self.recorded_cuts(root) if value == source)
            return self._inside(taken, next(cuts, None))
        node = self._values.computing(event, root) or self._values.makers.get(root)
        if node is None:
            return None
        if event.kind in _OF_IMAGES and operation(node.operator) != _LINEAR:
            return self._channels_last(sizes) if _is_last(logged, sizes) else None
        cuts = operation(node.operator) in SPLITTING
        found = self._split(event, node, logged) if cuts else None
        return self._computed(event, node, logged) if found is None else found

    def _moved(self, event: DelegateEvent, logged: tuple[int, ...]) -> Places | None:
        source = event.reads[0] if event.reads else ""
        places, sizes = self._found.get(source), self._logged(source)
        permutes = operation(event.kind) in PERMUTING
        if places is None or sizes is None or (permutes and not event.dims):
            return None
        found = arrangement(sizes, [ElementMove(logged, event.dims if permutes else None)])
        return None if found is None else places[shaped(found, (-1,))]

    def _computed(
        self, event: DelegateEvent, node: FlatNode, logged: tuple[int, ...]
    ) -> Places | None:
        """Return the places of what is computed from values whose places are known."""
        sizes = self._values.sizes(node.writes[0]) or ()
        straight = self._in_order(numel(sizes))
        alike: dict[bytes, Places] = {}
        last: list[bool] = []
        kept: list[bool] = []  # of each operand, whether it is laid out as the recorded one
        data = self._values.data(event)
        for name, read, places in self._operands(data, node):
            in_order = places is not None and np.array_equal(places, self._in_order(places.size))
            kept.append(in_order and self._logged(name) == read)
            if places is None:
                continue
            image = len(read) in _IMAGE_DIMS
            if not image or self._is_arranged(read):
                last.append(image and np.array_equal(places, self._channels_last(read)))
            whole = read == sizes and _plain(self._logged(name) or ()) == _plain(logged)
            rows = operation(node.operator) == _LINEAR and in_order
            if whole:
                alike[digest(places)] = places
            elif rows and sizes[-1:] == logged[-1:]:
                alike[digest(straight)] = straight
        if alike:
            return next(iter(alike.values())) if len(alike) == 1 else None
        if all(kept) and len(kept) >= len(data) > 0 and logged == sizes:
            return straight
        if last and all(last) and _is_last(logged, sizes):
            return self._channels_last(sizes)
        return straight if self._is_straight(event, logged, sizes) else _by_sizes(sizes, logged)

    def _split(
        self, event: DelegateEvent, node: FlatNode, logged: tuple[int, ...]
    ) -> Places | None:
        """Return the places of a part of a value that has its dimensions in another order."""
        sizes = self._values.sizes(node.writes[0]) or ()
        operands = self._operands(self._values.data(event), node)
        orders = {
            dims
            for name, read, places in operands
            if places is not None
            for dims in _orders(places, read, self._logged(name) or ())
            if _is_in_order(logged, sizes, dims)
        }
        return permuted(sizes, orders.pop()) if len(orders) == 1 else None

    def _operands(
        self, data: Sequence[str], node: FlatNode
    ) -> Iterator[tuple[str, tuple[int, ...], Places | None]]:
        """Yield operands that a node reads: name, recorded sizes, and places in these if known."""
        for name in data:
            for value in node.reads:
                read = self._values.sizes(value)
                if read is not None and self._values.of(name) == self._values.root(value):
                    yield name, read, self._inside(self._found.get(name), self.recorded(value))

    def _is_straight(
        self, event: DelegateEvent, logged: tuple[int, ...], sizes: tuple[int, ...]
    ) -> bool:
        """Return whether the sizes of a value leave no other layout than the recorded one."""
        images = self._in_images and event.kind not in _OF_ROWS
        open_layout = images and _is_last(logged, sizes) and self._is_arranged(sizes)
        return _plain(logged) == _plain(sizes) and not open_layout

    def _inside(self, places: Places | None, asked: Places | None) -> Places | None:
        """Return places in what lies at others, None unless both have the same elements."""
        if places is None or asked is None or places.size != asked.size:
            return None
        straight = self._in_order(asked.size)
        if np.array_equal(asked, straight):  # of most; sorting a million takes 0.1 s
            return places
        if np.array_equal(asked, places):
            return straight
        order = np.argsort(asked)
        at: Any = np.searchsorted(asked, places, sorter=order)
        found = order[np.minimum(at, order.size - 1)] if order.size else order
        return found if np.array_equal(asked[found], places) else None

    def _in_order(self, count: int) -> Places:
        found = self._straight.get(count)
        if found is None:
            found = np.arange(count)
            if self._has_room(found):
                self._straight[count] = found
        return found

    def _channels_last(self, sizes: tuple[int, ...]) -> Places:
        found = self._last.get(sizes)
        if found is None:
            found = permuted(sizes, _channels_last(sizes))
            if self._has_room(found):
                self._last[sizes] = found
        return found

    def _is_arranged(self, sizes: tuple[int, ...]) -> bool:
        """Return whether channels last puts any element elsewhere."""
        return not np.array_equal(self._channels_last(sizes), self._in_order(numel(sizes)))

    def _logged(self, name: str) -> tuple[int, ...] | None:
        writer = self._values.writers.get(self._alike.get(name, name))
        if writer is not None:
            return logged_sizes(writer)
        return self._values.sizes(self._values.border.get(name))

    def _recorded_moves(self, node: FlatNode) -> list[ElementMove] | None:
        """Return the moves from the root of a recorded value to it, None if one is unknown."""
        graph, moves = self._values.graph, list[ElementMove]()
        for _ in range(len(graph.nodes)):
            sizes = self._values.sizes(node.writes[0])
            permutes = operation(node.operator) in PERMUTING
            dims = tuple(recorded_dims(node, len(sizes or ()))) if permutes else None
            if sizes is None or dims == ():
                return None
            moves.append(ElementMove(sizes, dims))
            maker = graph.producers.get(node.reads[0])
            if maker is None or not self._values.moves(maker[0]):
                break
            node = maker[0]
        return moves[::-1]


def _padded(places: Any, sizes: Sequence[int], behind: bool) -> Places | None:  # noqa: ANN401 - of numpy
    """Return places with -1 where a constant is put before or behind them, None for other sizes."""
    own = places.shape
    longer = [dim for dim, size in enumerate(sizes) if own[dim : dim + 1] != (size,)]
    if len(own) != len(sizes) or len(longer) != 1 or own[longer[0]] > sizes[longer[0]]:
        return None
    dim, more = longer[0], sizes[longer[0]] - own[longer[0]]
    widths = [
        (more * behind, more * (not behind)) if at == dim else (0, 0) for at in range(len(own))
    ]
    padded: Any = np.pad(places, widths, constant_values=-1)
    return padded.reshape(-1)


def _by_sizes(sizes: tuple[int, ...], logged: tuple[int, ...]) -> Places | None:
    """Return the places of a value whose dimensions its sizes tell apart: no two are equal."""
    if len({*sizes}) < len(sizes) or sorted(logged) != sorted(sizes):
        return None
    return permuted(sizes, tuple(map(sizes.index, logged)))


def _orders(
    places: Places, sizes: tuple[int, ...], logged: tuple[int, ...]
) -> Iterator[tuple[int, ...]]:
    """Yield the orders of dimensions in which the elements of a value have some places."""
    if len(sizes) != len(logged) or len(sizes) > max(_IMAGE_DIMS):
        return
    for dims in permutations(range(len(sizes))):
        if _is_in_order(logged, sizes, dims) and np.array_equal(permuted(sizes, dims), places):
            yield dims


def _is_in_order(logged: Sequence[int], sizes: Sequence[int], dims: Sequence[int]) -> bool:
    return len(sizes) == len(dims) and [*logged] == [sizes[dim] for dim in dims]


def _plain(sizes: Sequence[int]) -> list[int]:
    return [size for size in sizes if size != 1]


def _channels_last(sizes: Sequence[int]) -> tuple[int, ...]:
    return (0, *range(2, len(sizes)), 1)


def _is_last(logged: Sequence[int], sizes: Sequence[int]) -> bool:
    """Return whether a value may be logged with channels last."""
    if len(sizes) not in _IMAGE_DIMS:
        return False
    return _plain(logged) == _plain([sizes[dim] for dim in _channels_last(sizes)])
