"""Calls with bodies: cond, map, scan and while_loop, each body a separate edge graph.

Inputs and outputs of a body are contiguous, and a body never returns an input or the same value
twice: its results can then be moved or copied without inspecting it. Scalars that a body needs as
tensors are constants of the program, passed after its other operands.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from compiler.dialect.dim_order import CLONE_DIM_ORDER, TO_DIM_ORDER_COPY, is_contiguous
from compiler.dialect.ops import edge_op
from compiler.dialect.templates import ScalarConstant, describe_output, walk
from compiler.edge.graph_lowering import GraphLowering
from compiler.errors import UnsupportedError
from compiler.untyped import SYMBOLIC


def lower_control_flow(outer: GraphLowering, node: torch.fx.Node, args: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """Create the call and its bodies; return the nodes of its results.

    Raises: UnsupportedError if it is not control flow that can be compiled
    """
    name = getattr(node.target, "__name__", str(node.target))
    extra: list[torch.fx.Node] = []
    sources = [a for a in node.args if isinstance(a, torch.fx.Node) and a.op == "get_attr"]
    if name not in ("cond", "map_impl", "scan", "while_loop"):
        raise UnsupportedError(f"control flow ({name}) cannot be compiled")
    bodies = [_BodyLowering(outer, source, extra) for source in sources]
    for body in bodies:
        body.run()
    references = [outer.graph.create_node("get_attr", body.finish()) for body in bodies]
    operands = [walk(lambda leaf: _operand(outer, leaf), a) for a in args]
    new_args = _with_extra(name, references, operands, tuple(extra))
    values = _values(outer, node.meta["val"])
    call = outer.call(node.target, new_args, {}, values)
    results = [outer.call(operator.getitem, (call, i), {}, v) for i, v in enumerate(values)]
    for result in results:
        outer.symbols.learn(result)
    return tuple(
        value if isinstance(value, SYMBOLIC) else result
        for value, result in zip(values, results, strict=True)
    )


def _with_extra(
    name: str,
    bodies: list[torch.fx.Node],
    operands: list[Any],
    extra: tuple[torch.fx.Node, ...],
) -> tuple[Any, ...]:
    if name == "cond":
        return (operands[0], *bodies, (*operands[3], *extra))
    if name == "while_loop":
        return (*bodies, tuple(operands[2]), (*operands[3], *extra))
    if name == "map_impl":
        return (*bodies, [*operands[1]], [*operands[2], *extra])
    return (*bodies, [*operands[1]], [*operands[2]], (*operands[3], *extra))


def _operand(outer: GraphLowering, leaf: Any) -> Any:  # noqa: ANN401
    leaf = outer.node_of(leaf)
    if isinstance(leaf, torch.fx.Node) and isinstance(leaf.meta["val"], torch.Tensor):
        return contiguous(outer, leaf)
    return leaf


def contiguous(lowering: GraphLowering, node: torch.fx.Node) -> torch.fx.Node:
    """Return a tensor in contiguous layout, unchanged if it is contiguous."""
    value: torch.Tensor = node.meta["val"]
    if is_contiguous(value):
        return node
    order = {"dim_order": [*range(value.dim())]}
    return lowering.call(edge_op(TO_DIM_ORDER_COPY), (node,), order, lowering.plain(value))


def _values(outer: GraphLowering, value: Any) -> tuple[Any, ...]:  # noqa: ANN401
    values: Any = (value,) if isinstance(value, torch.Tensor) else value
    return tuple(outer.plain(v) for v in values)


class _BodyLowering(GraphLowering):
    def __init__(
        self, outer: GraphLowering, source: torch.fx.Node, extra: list[torch.fx.Node]
    ) -> None:
        self.outer = outer
        self.name = _free_name(outer, str(source.target))
        self.extra = extra
        self.extra_here: dict[torch.fx.Node, torch.fx.Node] = {}
        self.last_placeholder: torch.fx.Node | None = None
        super().__init__(outer.shared, getattr(outer.owner, str(source.target)))
        # reserves the name; finish() stores the new body there
        outer.bodies[self.name] = self.owner

    def run(self) -> None:
        self.lower(self.owner.graph.nodes)

    def finish(self) -> str:
        """Lift all scalars that any body of the call needs, and return the body's name."""
        for node in self.extra:
            self._take_in(node)
        owned = torch.nn.Module()
        for name, body in self.bodies.items():
            setattr(owned, name, body)
        self.outer.bodies[self.name] = torch.fx.GraphModule(owned, self.graph)
        return self.name

    def placeholder(self, node: torch.fx.Node) -> None:
        new = self.graph.placeholder(node.name)
        new.name = node.name
        new.meta = {**node.meta, "val": self.plain(node.meta["val"])}
        self.built[node] = self.last_placeholder = new
        if isinstance(new.meta["val"], SYMBOLIC):
            self.built[node] = new.meta["val"]
        self.symbols.learn(new)

    def constant(self, scalar: ScalarConstant) -> torch.fx.Node:
        return self._handed_in(self.outer.constant(scalar))

    def held(self, tensor: torch.Tensor) -> torch.fx.Node:
        return self._handed_in(self.outer.held(tensor))

    def _handed_in(self, needed: torch.fx.Node) -> torch.fx.Node:
        if needed not in self.extra:
            self.extra.append(needed)
        return self._take_in(needed)

    def _take_in(self, needed: torch.fx.Node) -> torch.fx.Node:
        # Bodies of one call meet scalars in different orders; the call passes them in a single
        # order.
        for node in self.extra[: self.extra.index(needed) + 1]:
            if node not in self.extra_here:
                self.extra_here[node] = self._one_more_input(node)
        return self.extra_here[needed]

    def _one_more_input(self, node: torch.fx.Node) -> torch.fx.Node:
        with self._behind_inputs():
            new = self.graph.placeholder(node.name)
        new.meta = {"val": node.meta["val"]}
        self.last_placeholder = new
        return new

    def _behind_inputs(self) -> Any:  # noqa: ANN401
        if self.last_placeholder is not None:
            return self.graph.inserting_after(self.last_placeholder)
        return self.graph.inserting_before(next(iter(self.graph.nodes), None))

    def wrote_input(self, node: torch.fx.Node, new: Any) -> None:  # noqa: ANN401
        raise UnsupportedError(f"a body of control flow writes to its operand {node.name}")

    def output(self, node: torch.fx.Node) -> None:
        given: Any = node.args[0]
        single = not isinstance(given, (list, tuple))
        seen: set[torch.fx.Node] = set()
        results: list[Any] = []
        for leaf in [given] if single else given:  # pyright: ignore[reportUnknownVariableType]
            results.append(self._result(self.node_of(self.new(leaf)), seen))
        self.graph.output(results[0] if single else tuple(results)).meta = dict(node.meta)
        describe_output(self.graph)

    def _result(self, value: Any, seen: set[torch.fx.Node]) -> Any:  # noqa: ANN401
        if not isinstance(value, torch.fx.Node) or not isinstance(value.meta["val"], torch.Tensor):
            return value
        result = contiguous(self, value)
        if result.op == "placeholder" or result in seen:
            order = {"dim_order": [*range(result.meta["val"].dim())]}
            result = self.call(edge_op(CLONE_DIM_ORDER), (result,), order, result.meta["val"])
        seen.add(result)
        return result


def _free_name(outer: GraphLowering, name: str) -> str:
    if name not in outer.bodies:
        return name
    return next(
        f"{name}_{i}" for i in range(len(outer.bodies) + 1) if f"{name}_{i}" not in outer.bodies
    )
