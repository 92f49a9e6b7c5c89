"""The native backend: payloads are ATen calls with named arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from typing_extensions import override

from runtime.backends.graph import Fixed, GraphBackend, Operand, Operation, OperatorTable
from runtime.backends.graph.engine import GraphEngine
from runtime.backends.graph.states import with_zero_states
from runtime.backends.graph.torch_call import call_of, literal, torch_operator
from runtime.emulation.calls import DIM_ORDER
from schema.graph import Argument, Graph, GraphNode
from schema.payloads import Payload
from schema.payloads.native.graph import STATE_WRITES, STATES, items_of

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
    return None if run is None else _mixed(node, call_of(run, node.args, lambda _name, _kind: None))


def _mixed(node: GraphNode, call: Operation) -> Operation:
    """Return a call whose lists have their literals between the values, as the payload has them."""
    listed: dict[Operand, Any] = {
        argument.values: node.attributes.get(items_of(argument.name))
        for argument in node.args
        if items_of(argument.name) in node.attributes
    }
    if not listed:
        return call
    operands = (
        _list(listed[one]) if isinstance(one, tuple) and one in listed else one
        for one in call.operands
    )
    return replace(call, operands=tuple(operands))


def _list(items: Any) -> Operand:  # noqa: ANN401 - names among literals
    return tuple(one if isinstance(one, str) else Fixed(one) for one in items)


def _operand(argument: Argument) -> Operand:
    return argument.values[0] if argument.values else Fixed(literal(argument.literal, ""))


def _state_writes(graph: Graph) -> Mapping[str, str]:
    found: Any = graph.attributes.get(STATE_WRITES, {})
    return found


class NativeBackend(GraphBackend):
    """Runs payloads of the native partitioner."""

    id = "NativeBackend"
    table = OperatorTable(bind, state_writes=_state_writes)

    @override
    def engine(self, payload: Payload, partition: int) -> GraphEngine:
        """Return what runs a payload; buffers without bytes are zero before the first run."""
        states: Any = payload.graph.attributes.get(STATES, ()) if payload.graph else ()
        if payload.graph is not None and states:
            payload = with_zero_states(payload, payload.graph, states, partition)
        return super().engine(payload, partition)
