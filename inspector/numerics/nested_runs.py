"""Runs the graphs that nodes hold: branches, loops, and what is inside recorded delegates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

from inspector.api.lowered_programs import CALL
from inspector.api.torch_bridge import Torch, load_torch
from inspector.numerics.flat_graph import Scope, inner_name
from inspector.numerics.unknown import UNKNOWN, Pair


class NestedRuns(Protocol):
    """Runs one nested graph."""

    def inner(
        self, module: Torch, given: Sequence[Pair], scope: Scope, *, counted: bool = True
    ) -> list[Pair]:
        """Run a nested graph; see ``GraphRun.inner``."""
        ...

    def inside(self, name: str, given: Sequence[Pair], scope: Scope) -> list[Pair]:
        """Run the program inside a recorded delegate; see ``GraphRun.inside``."""
        ...


def pair_of(item: Any, values: Mapping[Any, Pair]) -> Pair:  # noqa: ANN401
    """Return an argument of a node on both sides."""
    return values[item] if hasattr(item, "op") else (item, item)


def flat_items(item: Any) -> Iterator[Any]:  # noqa: ANN401
    """Yield what is in nested lists."""
    if isinstance(item, (tuple, list)):
        for each in cast("Sequence[Any]", item):
            yield from flat_items(each)
    else:
        yield item


def _pairs(items: Any, values: Mapping[Any, Pair]) -> list[Pair]:  # noqa: ANN401
    return [pair_of(item, values) for item in flat_items(items)]


def _module(item: Any, values: Mapping[Any, Pair]) -> Torch:  # noqa: ANN401
    return values[item][0]


def _truth(value: Any) -> bool | None:  # noqa: ANN401
    return None if value is UNKNOWN else bool(value)


def _joined(results: Sequence[Pair]) -> Pair:
    """Return the results of a nested graph as those of the node."""
    return tuple(pair[0] for pair in results), tuple(pair[1] for pair in results)


def _side(pairs: Sequence[Pair], side: int) -> list[Pair]:
    """Return pairs of which only one side is known."""
    return [(pair[0], UNKNOWN) if side == 0 else (UNKNOWN, pair[1]) for pair in pairs]


def _cond(run: NestedRuns, node: Any, values: Mapping[Any, Pair], scope: Scope) -> Pair:  # noqa: ANN401
    chosen = values[node.args[0]] if hasattr(node.args[0], "op") else (node.args[0],) * 2
    given = _pairs(node.args[3], values)
    first, second = _truth(chosen[0]), _truth(chosen[1])
    results: list[Pair] = []
    for number, truth in ((0, True), (1, False)):
        if truth not in (first, second):
            continue
        both = first == second
        sides = given if both else _side(given, 0 if first is truth else 1)
        place = (*scope, inner_name(node.name, number))
        module = _module(node.args[1 + number], values)
        made = run.inner(module, sides, place, counted=second is truth)
        results = (
            made
            if not results
            else [(a[0], b[1]) for a, b in _by_side(results, made, truth, first)]
        )
    return _joined(results)


def _by_side(
    old: Sequence[Pair], new: Sequence[Pair], truth: bool, first: bool | None
) -> list[tuple[Pair, Pair]]:
    ahead, behind = (new, old) if first is truth else (old, new)
    return list(zip(ahead, behind, strict=True))


def _map(run: NestedRuns, node: Any, values: Mapping[Any, Pair], scope: Scope) -> Pair:  # noqa: ANN401
    module = _module(node.args[0], values)
    columns, rest = _pairs(node.args[1], values), _pairs(node.args[2], values)
    place = (*scope, inner_name(node.name, 0))
    rows = [
        run.inner(module, [*(_row(column, index) for column in columns), *rest], place)
        for index in range(_length(columns))
    ]
    return _joined(_stacked(rows))


def _scan(run: NestedRuns, node: Any, values: Mapping[Any, Pair], scope: Scope) -> Pair:  # noqa: ANN401
    module = _module(node.args[0], values)
    carried, columns = _pairs(node.args[1], values), _pairs(node.args[2], values)
    rest = _pairs(node.args[3], values) if len(node.args) > 3 else []
    place = (*scope, inner_name(node.name, 0))
    rows: list[list[Pair]] = []
    for index in range(_length(columns)):
        given = [*carried, *(_row(column, index) for column in columns), *rest]
        made = run.inner(module, given, place)
        carried, row = made[: len(carried)], made[len(carried) :]
        rows.append(row)
    return _joined([*carried, *_stacked(rows)])


def _while(run: NestedRuns, node: Any, values: Mapping[Any, Pair], scope: Scope) -> Pair:  # noqa: ANN401
    asks, does = _module(node.args[0], values), _module(node.args[1], values)
    carried = _pairs(node.args[2], values)
    rest = _pairs(node.args[3], values) if len(node.args) > 3 else []
    places = [(*scope, inner_name(node.name, number)) for number in (0, 1)]
    going = [True, True]
    while True:
        asked = run.inner(asks, [*carried, *rest], places[0], counted=going[1])[0]
        going = [on and _truth(value) is True for on, value in zip(going, asked, strict=True)]
        unknown = [_truth(value) is None for value in asked]
        carried = [
            (UNKNOWN if unknown[0] else pair[0], UNKNOWN if unknown[1] else pair[1])
            for pair in carried
        ]
        if not any(going):
            return _joined(carried)
        made = run.inner(does, [*carried, *rest], places[1], counted=going[1])
        carried = [
            (new[0] if going[0] else old[0], new[1] if going[1] else old[1])
            for new, old in zip(made, carried, strict=True)
        ]


def _delegate(run: NestedRuns, node: Any, values: Mapping[Any, Pair], scope: Scope) -> Pair:  # noqa: ANN401
    given = _pairs(node.args[1:], values)
    place = (*scope, inner_name(node.name, 0))
    return _joined(run.inside(node.args[0], given, place))


def _length(columns: Sequence[Pair]) -> int:
    for pair in columns:
        for value in pair:
            if value is not UNKNOWN:
                return len(value)
    return 0


def _row(column: Pair, index: int) -> Pair:
    first, second = (UNKNOWN if value is UNKNOWN else value[index] for value in column)
    return first, second


def _stacked(rows: Sequence[Sequence[Pair]]) -> list[Pair]:
    torch = load_torch()
    found: list[Pair] = []
    for column in zip(*rows, strict=True):
        sides = [
            UNKNOWN
            if any(pair[side] is UNKNOWN for pair in column)
            else torch.stack([pair[side] for pair in column])
            for side in (0, 1)
        ]
        found.append((sides[0], sides[1]))
    return found


Nested = Callable[[NestedRuns, Any, Mapping[Any, Pair], Scope], Pair]
NESTED: dict[str, Nested] = {
    "cond": _cond,
    "map_impl": _map,
    "scan": _scan,
    "while_loop": _while,
    CALL: _delegate,
}
