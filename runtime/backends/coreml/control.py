"""Branches and loops: nested blocks, each an engine of its own.

A block reads values of the blocks around it. Those become inputs that follow its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from torch import Tensor

from runtime.backends.coreml.binding import operand_of
from runtime.backends.coreml.given import Given
from runtime.backends.graph import Operand, Operation
from runtime.backends.graph.engine import GraphEngine
from runtime.delegates.interface import DelegateTracer
from schema.graph import Graph, GraphNode, GraphValue

CONTROL = ("cond", "while_loop")
_UNTRACED = DelegateTracer(None, (0, 0))


def enclosed(blocks: Mapping[str, Graph]) -> dict[str, Graph]:
    """Return the blocks with the values of outer ones that they read as further inputs."""
    found: dict[str, Graph] = {}
    for name in blocks:
        _enclose(name, blocks, found)
    return found


def _enclose(name: str, blocks: Mapping[str, Graph], found: dict[str, Graph]) -> Graph:
    if name in found:
        return found[name]
    block = blocks[name]
    values: dict[str, GraphValue] = dict(block.values)
    used = [*(one for node in block.nodes for one in node.inputs), *block.outputs]
    for inner in (one for node in block.nodes for one in node.subgraphs):
        built = _enclose(inner, blocks, found)
        for one in built.inputs[len(blocks[inner].inputs) :]:
            values.setdefault(one, built.values[one])
            used.append(one)
    own = {*block.inputs, *(one for node in block.nodes for one in node.outputs)}
    loose = [
        one
        for one in dict.fromkeys(used)
        if one not in own and not values[one].constant and values[one].literal is None
    ]
    found[name] = replace(block, values=values, inputs=(*block.inputs, *loose))
    return found[name]


def bind_control(
    blocks: Mapping[str, Graph],
    engine: Callable[[Graph], GraphEngine],
    node: GraphNode,
    graph: Graph,
) -> Operation | None:
    """Return the call of a branch or a loop, None for one that lacks its blocks.

    Args:
        blocks: enclosed
        engine: returns what runs a block
        node: to be bound
        graph: that it is in
    """
    arguments = {one.name: operand_of(one, graph) for one in node.args}
    first = arguments.get("pred" if node.target == "cond" else "loop_vars")
    if len(node.subgraphs) != 2 or first is None:
        return None
    inner = [blocks[name] for name in node.subgraphs]
    engines = [engine(one) for one in inner]
    count = 0 if node.target == "cond" else len(node.outputs)
    outer = tuple[Operand, ...](tuple(one.inputs[count:]) for one in inner)
    run = _branch if node.target == "cond" else _loop

    def called(*given: Given) -> list[Given]:
        return run(engines, *given)

    return Operation(called, (first, *outer))


def _branch(
    engines: Sequence[GraphEngine], pred: Given, then: Sequence[Given], other: Sequence[Given]
) -> list[Given]:
    if _is_true(pred):
        return engines[0].run(then, _UNTRACED)
    return engines[1].run(other, _UNTRACED)


def _loop(
    engines: Sequence[GraphEngine],
    loop_vars: Sequence[Given],
    of_condition: Sequence[Given],
    of_body: Sequence[Given],
) -> list[Given]:
    condition, body = engines
    state = list(loop_vars)
    while _is_true(condition.run([*state, *of_condition], _UNTRACED)[0]):
        state = body.run([*state, *of_body], _UNTRACED)
    return state


def _is_true(value: Given) -> bool:
    return bool(value.any()) if isinstance(value, Tensor) else bool(value)
