"""The interface of a program: its inputs in the order of the call, and states that stay."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from runtime.backends.graph.registers import refused
from runtime.backends.graph.states import with_zero_states
from schema.graph import Graph, GraphNode, NodeKind
from schema.payloads import Payload


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
    built = replace(
        graph,
        nodes=tuple(_with_target(node, states) for node in graph.nodes),
        inputs=tuple(given if names else inputs),
        outputs=tuple(made if names else graph.outputs),
    )
    return with_zero_states(payload, built, states, partition)


def _with_target(node: GraphNode, states: tuple[str, ...]) -> GraphNode:
    """Return a node that writes a state with the state as its result."""
    if node.target != "write_state" or node.outputs or node.kind is not NodeKind.CALL:
        return node
    targets = [name for one in node.args if one.name == "input" for name in one.values]
    return replace(node, outputs=tuple(name for name in targets if name in states))
