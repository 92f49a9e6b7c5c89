"""Branches and loops: nested blocks, each an engine of its own.

A block reads values of the blocks around it. Those become inputs that follow its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from runtime.backends.coreml.binding import operand_of
from runtime.backends.graph import Operand, Operation
from runtime.backends.graph.engine import GraphEngine
from runtime.backends.graph.nested import branch, loop
from schema.graph import Graph, GraphNode, GraphValue

CONTROL = ("cond", "while_loop")


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
    engine: Callable[[str], GraphEngine],
    node: GraphNode,
    graph: Graph,
) -> Operation | None:
    """Return the call of a branch or a loop, None for one that lacks its blocks.

    Args:
        blocks: enclosed
        engine: returns the executor of a block, by name
        node: to be bound
        graph: that it is in
    """
    arguments = {one.name: operand_of(one, graph) for one in node.args}
    first = arguments.get("pred" if node.target == "cond" else "loop_vars")
    if len(node.subgraphs) != 2 or first is None:
        return None
    inner = [blocks[name] for name in node.subgraphs]
    engines = tuple(engine(name) for name in node.subgraphs)
    count = 0 if node.target == "cond" else len(node.outputs)
    outer = tuple[Operand, ...](tuple(one.inputs[count:]) for one in inner)
    run = branch if node.target == "cond" else loop
    return Operation(partial(run, engines), (first, *outer), blocks=engines)
