"""Runs a recorded graph twice at once: on reference values, and on the values a run has logged.

The two go through the graph side by side, a node at a time, and values are let go after their last
use, so that no more than the live tensors of two runs are in memory.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, cast

from inspector.api.torch_bridge import Torch, load_torch
from inspector.numerics.flat_graph import Scope, inner_name


class Unknown:
    """Stands for a value that cannot be known; so is everything that is computed of it."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = Unknown()
Node: TypeAlias = Any  # of torch.fx
Pair = tuple[Any, Any]  # value of the reference, value of the run


class Observer(Protocol):
    """Looks at what nodes make."""

    def made(self, scope: Scope, name: str, pair: list[Any], times: int) -> None:
        """Take what a node made on both sides; put what the run goes on with into the second.

        Args:
            scope: nested graphs around the node
            name: of the node
            pair: made of the reference's values, and of the run's
            times: how often the run has been in this nested graph before
        """
        ...


@dataclass
class State:
    """Buffers that keep their content from one run to the next, by name, on both sides."""

    values: dict[str, Pair] = field(default_factory=dict[str, Pair])


class GraphRun:
    """Runs one exported program as often as wanted."""

    def __init__(self, program: Any, state: State, observer: Observer) -> None:  # noqa: ANN401
        """Take the program.

        Args:
            program: a ``torch.export.ExportedProgram``
            state: buffers that outlive runs
            observer: looks at what nodes make
        """
        self._program = program
        self._state = state
        self._observer = observer
        self._visits: dict[Scope, int] = {}
        self.errors: dict[tuple[Scope, str], str] = {}

    @property
    def user_inputs(self) -> tuple[str, ...]:
        """Return the names of the inputs."""
        return tuple(str(name) for name in self._program.graph_signature.user_inputs)

    @property
    def writes(self) -> bool:
        """Return whether an operator writes into what it is given, so that inputs may change."""
        return any(
            getattr(getattr(node.target, "_schema", None), "is_mutable", False)
            for module in self._program.graph_module.modules()
            for node in getattr(getattr(module, "graph", None), "nodes", ())
            if node.op == "call_function"
        )

    def run(self, inputs: Mapping[str, Pair]) -> None:
        """Run everything; state is changed.

        Args:
            inputs: by name; what is not there is unknown
        """
        self._visits = {}
        signature = self._program.graph_signature
        specs = {spec.arg.name: spec for spec in signature.input_specs}
        given: list[Pair] = []
        graph = self._program.graph_module.graph
        for node in graph.nodes:
            if node.op == "placeholder":
                given.append(self._input(specs[node.name], inputs))
        with load_torch().no_grad():
            results = self._graph(self._program.graph_module, given, (), 0)
        for spec, pair in zip(signature.output_specs, results, strict=False):
            if spec.kind.name == "BUFFER_MUTATION":
                self._state.values[spec.target] = pair

    def _input(self, spec: Any, inputs: Mapping[str, Pair]) -> Pair:  # noqa: ANN401
        kind = spec.kind.name
        if kind == "USER_INPUT":
            constant = getattr(spec.arg, "value", None)
            return inputs.get(
                spec.arg.name, (UNKNOWN, UNKNOWN) if constant is None else (constant,) * 2
            )
        program = self._program
        if kind == "BUFFER":
            if spec.target not in self._state.values:
                held = program.state_dict.get(spec.target)
                held = program.constants[spec.target] if held is None else held
                self._state.values[spec.target] = (held.detach().clone(), held.detach().clone())
            return self._state.values[spec.target]
        held = program.state_dict.get(spec.target)
        if held is None:
            held = program.constants.get(spec.target, UNKNOWN)
        return held, held

    # ---- one graph
    def _graph(self, module: Torch, given: Sequence[Pair], scope: Scope, times: int) -> list[Pair]:
        values: dict[Any, Pair] = {}
        last = _last_uses(module.graph)
        waiting = iter(given)
        for node in module.graph.nodes:
            if node.op == "placeholder":
                values[node] = next(waiting, (UNKNOWN, UNKNOWN))
                if scope:
                    values[node] = self._seen(scope, node.name, [*values[node]], times)
            elif node.op == "get_attr":
                held = _attribute(module, node.target)
                values[node] = (held, held)
            elif node.op == "output":
                return [_pair_of(item, values) for item in _flat(node.args[0])]
            else:
                values[node] = self._node(node, values, scope, times)
            for done in last.get(node, ()):
                values.pop(done, None)
        return []

    def _node(self, node: Node, values: Mapping[Any, Pair], scope: Scope, times: int) -> Pair:
        nested = _NESTED.get(getattr(node.target, "__name__", ""))
        if nested is not None and _is_higher_order(node.target):
            pair: list[Any] = [*nested(self, node, values, scope)]
        else:
            place = (scope, node.name)
            pair = [self._call(node, values, side, place) for side in (0, 1)]
        if node.target is operator.getitem:
            return pair[0], pair[1]
        return self._seen(scope, node.name, pair, times)

    def _seen(self, scope: Scope, name: str, pair: list[Any], times: int) -> Pair:
        self._observer.made(scope, name, pair, times)
        return pair[0], pair[1]

    def _call(
        self,
        node: Node,
        values: Mapping[Any, Pair],
        side: int,
        place: tuple[Scope, str],
    ) -> object:
        known = True

        def of(argument: Any) -> Any:  # noqa: ANN401
            nonlocal known
            value = values[argument][side]
            known = known and value is not UNKNOWN
            return value

        fx = load_torch().fx.node
        args, kwargs = fx.map_arg(node.args, of), fx.map_arg(node.kwargs, of)
        if not known:
            return UNKNOWN
        try:
            found = node.target(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever a kernel raises on odd values
            if side == 0:
                self.errors.setdefault(place, f"{type(error).__name__}: {_first_line(error)}")
            return UNKNOWN
        return cast("object", found)

    # ---- nested graphs
    def inner(
        self, module: Torch, given: Sequence[Pair], scope: Scope, *, counted: bool = True
    ) -> list[Pair]:
        """Run a nested graph.

        Args:
            module: the graph
            given: its inputs
            scope: with its own name
            counted: whether the run went through it
        """
        times = self._visits.get(scope, 0)
        if counted:
            self._visits[scope] = times + 1
        return self._graph(module, given, scope, times)


def _pair_of(item: Any, values: Mapping[Any, Pair]) -> Pair:  # noqa: ANN401
    return values[item] if hasattr(item, "op") else (item, item)


def _flat(item: Any) -> Iterator[Any]:  # noqa: ANN401
    if isinstance(item, (tuple, list)):
        for each in cast("Sequence[Any]", item):
            yield from _flat(each)
    else:
        yield item


def _last_uses(graph: Torch) -> dict[Any, list[Any]]:
    """Return for each node the values nobody needs after it."""
    last: dict[Any, Any] = {}
    for node in graph.nodes:
        last[node] = node  # what nobody reads goes at once
        for needed in node.all_input_nodes:
            last[needed] = node
    found: dict[Any, list[Any]] = {}
    for needed, node in last.items():
        found.setdefault(node, []).append(needed)
    return found


def _attribute(module: Torch, name: str) -> Any:  # noqa: ANN401
    for part in name.split("."):
        module = getattr(module, part)
    return module


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else ""


def _is_higher_order(target: Any) -> bool:  # noqa: ANN401
    return isinstance(target, load_torch()._ops.HigherOrderOperator)


def _pairs(items: Any, values: Mapping[Any, Pair]) -> list[Pair]:  # noqa: ANN401
    return [_pair_of(item, values) for item in _flat(items)]


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


def _cond(run: GraphRun, node: Any, values: Mapping[Any, Pair], scope: Scope) -> Pair:  # noqa: ANN401
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


def _map(run: GraphRun, node: Any, values: Mapping[Any, Pair], scope: Scope) -> Pair:  # noqa: ANN401
    module = _module(node.args[0], values)
    columns, rest = _pairs(node.args[1], values), _pairs(node.args[2], values)
    place = (*scope, inner_name(node.name, 0))
    rows = [
        run.inner(module, [*(_row(column, index) for column in columns), *rest], place)
        for index in range(_length(columns))
    ]
    return _joined(_stacked(rows))


def _scan(run: GraphRun, node: Any, values: Mapping[Any, Pair], scope: Scope) -> Pair:  # noqa: ANN401
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


def _while(run: GraphRun, node: Any, values: Mapping[Any, Pair], scope: Scope) -> Pair:  # noqa: ANN401
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


_Nested = Callable[[GraphRun, Any, Mapping[Any, Pair], Scope], Pair]
_NESTED: dict[str, _Nested] = {
    "cond": _cond,
    "map_impl": _map,
    "scan": _scan,
    "while_loop": _while,
}
