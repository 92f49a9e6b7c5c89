"""Graphs of models that were never built, and what an edit makes of them, with the true pairs."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace

from inspector.graph.model_graph import ModelEdge, ModelGraph, ModelNode, Weight
from schema.graph import (
    Argument,
    GraphNode,
    GraphValue,
    ModuleFrame,
    NodeKind,
    TensorMeta,
)

KINDS = ("edited", "shifted", "resized", "swapped")
_LAYER = ("convolution", "batch_norm", "relu", "linear", "permute_copy", "add", "softmax", "mul")
_FLOAT = 6
_WEIGHTED = ("convolution", "batch_norm", "linear")


@dataclass(frozen=True)
class Op:
    """One operator of a model.

    Attributes:
        key: who it is, whatever becomes of the graph around it
        operator: what it computes
        layer: number of its layer
        width: channels of its result
        literal: an argument
        reads: keys of what it reads
        backend: empty when it is not delegated
        delegate: its partition
    """

    key: int
    operator: str
    layer: int
    width: int
    literal: object
    reads: tuple[int, ...]
    backend: str = ""
    delegate: int | None = None


def large_ops(count: int, seed: int) -> list[Op]:
    """Return a model of layers, each a chain with a shortcut over it."""
    pick = random.Random(seed)
    found: list[Op] = []
    width = 16
    for key in range(count):
        layer, place = divmod(key, len(_LAYER))
        operator = _LAYER[place]
        if operator in ("convolution", "linear"):
            width = pick.choice((8, 16, 24, 32, 64))
        reads = [key - 1] if key else []
        if operator == "add" and key > 5:
            reads.append(key - pick.randint(2, 5))
        literal = pick.randint(0, 3) if operator in ("softmax", "mul") else None
        found.append(Op(key, operator, layer, width, literal, tuple(reads)))
    return found


def built(ops: list[Op], *, batch: int = 1, lineage: bool = True) -> ModelGraph:
    """Return the graph an export of the model has: names are numbered in its order.

    Args:
        ops: the model
        batch: first size of every tensor
        lineage: whether modules, lines and exported names are recorded
    """
    counts: Counter[str] = Counter()
    places = {op.key: number for number, op in enumerate(ops)}
    nodes: list[ModelNode] = []
    edges: list[ModelEdge] = []
    for number, op in enumerate(ops):
        reads = [places[key] for key in op.reads if key in places and places[key] < number]
        edges += [ModelEdge(read, number, f"v{read}", None) for read in reads]
        nodes.append(_node(number, op, reads, counts[op.operator], batch, lineage))
        counts[op.operator] += 1
    by_name = {node.name: node.id for node in nodes}
    return ModelGraph("forward", "record", tuple(nodes), tuple(edges), by_name)


def _node(
    number: int, op: Op, reads: list[int], again: int, batch: int, lineage: bool
) -> ModelNode:
    suffix = f"_{again}" if again else ""
    place = _LAYER.index(op.operator) if op.operator in _LAYER else 99
    path = f"layers.{op.layer}.{place}"
    args = [Argument("", (f"v{read}",)) for read in reads]
    if op.literal is not None:
        args.append(Argument("", (), op.literal))
    node = GraphNode(
        f"aten_{op.operator}_default{suffix}",
        NodeKind.CALL,
        f"aten.{op.operator}.default",
        tuple(args),
        (f"v{number}",),
        debug_handle=number + 1 if lineage else None,
        modules=(ModuleFrame(path, "torch.nn.Module"),) if lineage else (),
        stack_trace=f'File "model.py", line {10 + place}, in forward' if lineage else "",
        from_node=(f"{op.operator}{suffix}.{140000 + batch}",) if lineage else (),
    )
    weights = ()
    if op.operator in _WEIGHTED:
        name = f"{path}.weight" if lineage else f"c{number}"
        weights = (Weight(name, f"float32 [{op.width}]", op.width * 4),)
    meta = TensorMeta(_FLOAT, (batch, op.width))
    value = GraphValue(f"v{number}", meta)
    return ModelNode(number, node.name, node, (), op.delegate, op.backend, None, weights, (value,))


def large_graph(count: int, seed: int) -> ModelGraph:
    """Return the graph of a model of so many operators."""
    return built(large_ops(count, seed))


def edited_ops(ops: list[Op], share: float, seed: int) -> list[Op]:
    """Return a model in which some operators are gone, new, or others."""
    pick = random.Random(seed)
    found: list[Op] = []
    fresh = 10_000_000
    for op in ops:
        what = pick.random() / share
        if what < 1:
            continue
        if what < 2:
            fresh += 1
            found.append(replace(op, key=fresh, operator="gelu"))
        found.append(op)
    return found


def shifted_ops(ops: list[Op], at: int) -> list[Op]:
    """Return a model with one layer more, by which all later layers have another number."""
    new = [replace(op, key=20_000_000 + op.key, layer=at, width=48) for op in ops if op.layer == at]
    found: list[Op] = []
    for op in ops:
        if op.layer == at and op is next(one for one in ops if one.layer == at):
            found += new
        found.append(replace(op, layer=op.layer + 1) if op.layer >= at else op)
    return found


def swapped_ops(ops: list[Op], seed: int) -> list[Op]:
    """Return the same model whose independent neighbours stand in another order."""
    pick = random.Random(seed)
    found = list(ops)
    for number in range(len(found) - 1):
        one, two = found[number], found[number + 1]
        if one.key not in two.reads and pick.random() < 0.5:
            found[number], found[number + 1] = two, one
    return found


def changed_graph(old: ModelGraph, kind: str, seed: int) -> tuple[ModelGraph, int]:
    """Return another graph, and how many nodes of the first one are in it.

    Args:
        old: what ``large_graph`` made, with seed 1
        kind: edited, shifted, resized, swapped or unlike
        seed: of the edit
    """
    ops = large_ops(len(old.nodes), seed=1)
    if kind == "unlike":
        return built(large_ops(len(ops), seed + 100)), 0
    if kind == "edited":
        new = edited_ops(ops, 0.01, seed)
        return built(new), sum(op.key < 10_000_000 for op in new)
    if kind == "shifted":
        return built(shifted_ops(ops, len(ops) // 40)), len(ops)
    if kind == "swapped":
        return built(swapped_ops(ops, seed)), len(ops)
    return built(ops, batch=4), len(ops)
