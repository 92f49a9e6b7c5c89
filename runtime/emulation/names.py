"""Maps the values of a plan to the values of the graph that it was emitted from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from schema.graph import Argument, Graph, GraphNode, NodeKind
from schema.program import model as m

Handles = Mapping[int, Sequence[int]]
_PASSES = 4


def reads(node: GraphNode) -> Iterable[str]:
    """Return the names of the values that a node reads."""
    return (name for argument in node.args for name in argument.values)


def fits(plan: m.ExecutionPlan, index: int, graph: Graph, name: str) -> bool:
    """Return whether a value of the plan can be a value of the graph, by sizes and dtype."""
    value = plan.values[index].val if 0 <= index < len(plan.values) else None
    other = graph.values.get(name)
    tensor = None if other is None else other.tensor
    if tensor is None:
        return True
    if not isinstance(value, m.Tensor):
        return False
    sizes = len(value.sizes) == len(tensor.sizes) and all(
        not isinstance(requested, int) or found == requested
        for found, requested in zip(value.sizes, tensor.sizes, strict=False)
    )
    return sizes and value.scalar_type == tensor.scalar_type


def _is_numeric(value: object) -> bool:
    several = cast("Sequence[object]", value if isinstance(value, (tuple, list)) else (value,))
    return all(isinstance(one, (int, float)) for one in several)


class ValueMatcher:
    """Matches the kernel calls of a plan with nodes of the graph; ambiguous ones stay unmatched.

    Args:
        graph: edge graph of the method
        plan: its plan, of one chain
        handles: debug handles of each instruction
        known: names of inputs and outputs of the method
    """

    def __init__(
        self, graph: Graph, plan: m.ExecutionPlan, handles: Handles, known: Mapping[int, str]
    ) -> None:
        self._graph = graph
        self._plan = plan
        self._handles = handles
        self.of = dict(known)
        self.nodes: dict[int, GraphNode] = {}
        instructions = plan.chains[0].instructions if plan.chains else ()
        calls = [(at, entry.instr_args) for at, entry in enumerate(instructions)]
        self._calls = [(at, args) for at, args in calls if isinstance(args, m.KernelCall)]
        self._delegates = [(at, args) for at, args in calls if isinstance(args, m.DelegateCall)]
        for _ in range(_PASSES):
            before = len(self.nodes)
            for at, args in self._calls:
                if at not in self.nodes:
                    self._match(at, args)
            if len(self.nodes) == before:
                break

    def results(self, place: int, args: Sequence[int]) -> int:
        """Return how many of the last arguments of a delegate call are its results.

        Args:
            place: of the instruction
            args: value indices
        """
        made = {*self._plan.inputs}
        made.update(out for at, call in self._calls if at < place for out in self._outs(call))
        made.update(*(call.args for at, call in self._delegates if at < place))
        fixed = (index in made or not self._is_made(index) for index in reversed(args))
        return next((count for count, given in enumerate(fixed) if given), len(args))

    def _is_made(self, index: int) -> bool:
        value = self._plan.values[index].val if 0 <= index < len(self._plan.values) else None
        return isinstance(value, m.Tensor) and value.allocation_info is not None

    def _match(self, at: int, call: m.KernelCall) -> None:
        found = self.candidates(at, call, self.of)
        if len(found) != 1:
            return
        node = found[0]
        self.nodes[at] = node
        self.of = {**self.names(node, call), **self.of}

    def names(self, node: GraphNode, call: m.KernelCall) -> dict[int, str]:
        """Return value index -> name for what a call reads and writes if it computes a node."""
        single = (
            (index, argument.values[0])
            for argument, index in zip(node.args, call.args, strict=False)
            if len(argument.values) == 1 and argument.literal is None
        )
        return {**dict(single), **dict(zip(self._outs(call), node.outputs, strict=False))}

    def candidates(self, at: int, call: m.KernelCall, of: Mapping[int, str]) -> Sequence[GraphNode]:
        """Return the nodes that a call can compute.

        Args:
            at: place of the instruction
            call: its arguments
            of: value index -> name, as far as known
        """
        outs, used = self._outs(call), {*of.values()}
        return [
            node
            for node in self._candidates(at, call)
            if self._agrees(node, call, outs, of)
            and all(
                name not in used or of.get(index) == name
                for index, name in zip(outs, node.outputs, strict=False)
            )
        ]

    def _outs(self, call: m.KernelCall) -> Sequence[int]:
        last = call.args[-1] if call.args else -1
        value = self._plan.values[last].val if 0 <= last < len(self._plan.values) else None
        return value.items if isinstance(value, m.TensorList) else (last,)

    def _candidates(self, at: int, call: m.KernelCall) -> Iterable[GraphNode]:
        if not 0 <= call.op_index < len(self._plan.operators):
            return ()
        operator = self._plan.operators[call.op_index].name.replace("::", ".")
        handles = {*self._handles.get(at, ())}
        return (
            node
            for node in self._graph.nodes
            if node.kind is NodeKind.CALL
            and node.debug_handle in handles
            and node.target.startswith(f"{operator}.")
        )

    def _agrees(
        self, node: GraphNode, call: m.KernelCall, outs: Sequence[int], of: Mapping[int, str]
    ) -> bool:
        for index, name in zip(outs, node.outputs, strict=False):
            if of.get(index, name) != name or not fits(self._plan, index, self._graph, name):
                return False
        return all(
            self._may_be(argument, index, of)
            for argument, index in zip(node.args, call.args, strict=False)
        )

    def _may_be(self, argument: Argument, index: int, of: Mapping[int, str]) -> bool:
        """Return whether an argument of a node can be a value of the plan."""
        if not argument.values:
            sides = self._numbers(index), argument.literal
            return None in sides or not all(map(_is_numeric, sides)) or sides[0] == sides[1]
        name = argument.values[0] if len(argument.values) == 1 else None
        return name is None or of.get(index, name) == name

    def _numbers(self, index: int) -> object:
        """Return a number or the numbers of a list, None for other values."""
        value = self._plan.values[index].val if 0 <= index < len(self._plan.values) else None
        if isinstance(value, m.IntList):
            return tuple(self._numbers(item) for item in value.items)
        if isinstance(value, m.Int):
            return value.int_val
        return value.double_val if isinstance(value, m.Double) else None

    def placed(self, names: Sequence[str], args: Sequence[int]) -> tuple[str, ...] | None:
        """Return names in the order of values, None if the order is ambiguous.

        Args:
            names: of the graph
            args: value indices, as many as names
        """
        found = [self.of.get(index, "") for index in args]
        found = [name if name in names or name.startswith("constant ") else "" for name in found]
        left = [name for name in names if name not in found]
        for place, index in enumerate(args):
            if found[place]:
                continue
            possible = [name for name in left if fits(self._plan, index, self._graph, name)]
            open_places = sum(not name for name in found)
            if len(possible) != 1 and (open_places > 1 or not possible):
                return None
            found[place] = possible[0]
            left.remove(possible[0])
        return None if left or len(args) != len(found) else tuple(found)
