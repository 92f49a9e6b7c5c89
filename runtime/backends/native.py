"""The native backend: payloads are ATen calls with named arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from runtime.backends.graph import Fixed, GraphBackend, Operand, Operation, OperatorTable
from runtime.backends.graph.torch_call import call_of, literal, torch_operator
from runtime.emulation.calls import DIM_ORDER
from schema.graph import Argument, Graph, GraphNode

_PYTHON: dict[str, Callable[..., Any]] = {
    f"_operator.{name}": getattr(operator, name)
    for name in ("getitem", "add", "sub", "mul", "floordiv", "lt", "gt", "ge", "le", "eq", "ne")
}


def bind(node: GraphNode, graph: Graph) -> Operation | None:
    """Return the call of a node, None for an unknown operator."""
    del graph
    own = _PYTHON.get(node.target) or DIM_ORDER.get(node.target)
    if own is not None:
        plain = [one for one in node.args if one.literal is not None or one.values]
        return Operation(
            own, tuple(map(_operand, plain[:2] if node.target in _PYTHON else plain[:1]))
        )
    run = torch_operator(node.target)
    return None if run is None else call_of(run, node.args, lambda _name, _kind: None)


def _operand(argument: Argument) -> Operand:
    return argument.values[0] if argument.values else Fixed(literal(argument.literal, ""))


class NativeBackend(GraphBackend):
    """Runs payloads of the native partitioner."""

    id = "NativeBackend"
    table = OperatorTable(bind)
