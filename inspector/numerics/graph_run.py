"""Runs a recorded graph twice at once: on reference values, and on the values a run has logged.

The two go through the graph side by side, a node at a time, and values are freed after their last
use, so that no more than the live tensors of two runs are in memory.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, cast

from inspector.api.lowered_programs import inside_of
from inspector.api.torch_bridge import Torch, load_torch
from inspector.numerics.flat_graph import Scope
from inspector.numerics.nested_runs import NESTED, flat_items, pair_of
from inspector.numerics.unknown import UNKNOWN, Pair

Node: TypeAlias = Any  # of torch.fx


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
        self._inside = inside_of(program)
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
        with load_torch().no_grad():
            self._whole(self._program, inputs, ())

    def inside(self, name: str, given: Sequence[Pair], scope: Scope) -> list[Pair]:
        """Run the program inside a recorded delegate; its state is its own.

        Args:
            name: in its call
            given: its inputs, in order
            scope: with its own name

        Returns: results for the user; none for a delegate that is not known
        """
        program = self._inside.get(name)
        if program is None:
            return []
        names = [str(each) for each in program.graph_signature.user_inputs]
        results = self._whole(program, dict(zip(names, given, strict=False)), scope)
        kinds = [spec.kind.name for spec in program.graph_signature.output_specs]
        pairs = zip(kinds, results, strict=False)
        return [pair for kind, pair in pairs if kind == "USER_OUTPUT"]

    def _whole(self, program: Any, inputs: Mapping[str, Pair], scope: Scope) -> list[Pair]:  # noqa: ANN401
        signature = program.graph_signature
        specs = {spec.arg.name: spec for spec in signature.input_specs}
        given = [
            self._input(program, specs[node.name], inputs, scope)
            for node in program.graph_module.graph.nodes
            if node.op == "placeholder"
        ]
        results = self.inner(program.graph_module, given, scope)
        for spec, pair in zip(signature.output_specs, results, strict=False):
            if spec.kind.name == "BUFFER_MUTATION":
                self._state.values[_held(scope, spec.target)] = pair
        return results

    def _input(
        self,
        program: Any,  # noqa: ANN401
        spec: Any,  # noqa: ANN401
        inputs: Mapping[str, Pair],
        scope: Scope,
    ) -> Pair:
        kind = spec.kind.name
        if kind == "USER_INPUT":
            constant = getattr(spec.arg, "value", None)
            return inputs.get(
                spec.arg.name, (UNKNOWN, UNKNOWN) if constant is None else (constant,) * 2
            )
        if kind == "BUFFER":
            name = _held(scope, spec.target)
            if name not in self._state.values:
                held = program.state_dict.get(spec.target)
                held = program.constants[spec.target] if held is None else held
                self._state.values[name] = (held.detach().clone(), held.detach().clone())
            return self._state.values[name]
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
                return [pair_of(item, values) for item in flat_items(node.args[0])]
            else:
                values[node] = self._node(node, values, scope, times)
            for done in last.get(node, ()):
                values.pop(done, None)
        return []

    def _node(self, node: Node, values: Mapping[Any, Pair], scope: Scope, times: int) -> Pair:
        nested = NESTED.get(getattr(node.target, "__name__", ""))
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


def _held(scope: Scope, name: str) -> str:
    """Return under which name a buffer is kept: those of delegates are their own."""
    return "/".join((*scope, name))


def _last_uses(graph: Torch) -> dict[Any, list[Any]]:
    """Return for each node the values not needed after it."""
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
