"""The interface of a program: its inputs in the order of the call, and states that stay."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import cast

from runtime.backends.graph.registers import refused
from schema.dtypes.scalar_type import scalar_type
from schema.graph import Graph, GraphNode, GraphValue, NodeKind
from schema.payloads import Constant, Payload
from schema.payloads.model import INLINE

_LARGEST = 8 << 30  # bytes of all states: those of a language model are below


def with_interface(payload: Payload, graph: Graph, partition: int) -> Payload:
    """Return a payload whose inputs are those of the call; states are constants that nodes write.

    They are zero before the first run.

    Raises: DelegateError if the folder names other inputs or outputs than the program has
    """
    states = cast("tuple[str, ...]", graph.attributes.get("states", ()))
    inputs = [name for name in graph.inputs if name not in states]
    names = [payload.external_ids[place] for place in sorted(payload.external_ids)]
    given, made = names[: len(inputs)], names[len(inputs) :]
    if names and (sorted(given) != sorted(inputs) or not set(made) <= set(graph.outputs)):
        why = f"the folder names {', '.join(names)}; the program has inputs {', '.join(inputs)}"
        raise refused(f"{why} and outputs {', '.join(graph.outputs)}", partition)
    values = {**graph.values, **{name: _state(graph.values[name], partition) for name in states}}
    total = sum(values[name].constant_bytes or 0 for name in states)
    if total > _LARGEST:
        raise refused(f"states of {total} bytes; at most {_LARGEST} are held", partition)
    zeros = tuple(_zeros(values[name]) for name in states)
    built = replace(
        graph,
        nodes=tuple(_with_target(node, states) for node in graph.nodes),
        values=values,
        inputs=tuple(given if names else inputs),
        outputs=tuple(made if names else graph.outputs),
    )
    return replace(payload, graph=built, constants=(*payload.constants, *zeros))


def _with_target(node: GraphNode, states: tuple[str, ...]) -> GraphNode:
    """Return a node that writes a state with the state as its result."""
    if node.target != "write_state" or node.outputs or node.kind is not NodeKind.CALL:
        return node
    targets = [name for one in node.args if one.name == "input" for name in one.values]
    return replace(node, outputs=tuple(name for name in targets if name in states))


def _state(value: GraphValue, partition: int) -> GraphValue:
    sizes = value.tensor.sizes if value.tensor is not None else ("?",)
    if value.tensor is None or not all(isinstance(size, int) for size in sizes):
        raise refused(f"state {value.name} has no fixed size", partition)
    nbytes = (
        math.prod(int(size) for size in sizes) * scalar_type(value.tensor.scalar_type).item_bytes
    )
    return replace(value, constant=f"{value.name} (state)", constant_bytes=nbytes)


def _zeros(value: GraphValue) -> Constant:
    count = value.constant_bytes or 0
    return Constant(value.constant, count, INLINE, memoryview(bytes(count)))
