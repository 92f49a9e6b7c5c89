"""Lowers calls of mutating operators."""

from __future__ import annotations

import operator
from typing import Any

import torch

from compiler.dialect.mutating_ops import WITH_BASES, WRITE, first_written, written_by
from compiler.dialect.ops import EdgeOp, edge_op
from compiler.dialect.templates import walk
from compiler.edge.control_flow import contiguous
from compiler.edge.graph_lowering import GraphLowering
from compiler.errors import UnsupportedError
from compiler.untyped import OpOverload

_BASES, _PLACE = "_all_bases", "_base_index"


def lower_write(outer: GraphLowering, node: torch.fx.Node) -> tuple[Any, ...]:
    """Create the call; return the nodes of its results.

    Raises: UnsupportedError for an operator that writes in a way that has no such form
    """
    op = _checked(node.args[0])
    given: dict[str, Any] = dict(node.kwargs)
    value: Any = node.meta["val"]
    names = written_by(op)
    count = first_written(node)
    places = {name: count + place for place, name in enumerate(names)}
    if node.target is WITH_BASES:
        given, places = _without_bases(op, given, count)
    _check_apart(op, [given[name] for name in names])
    kwargs = {name: walk(lambda leaf: _operand(outer, leaf), v) for name, v in given.items()}
    values = tuple(
        outer.plain(v)
        for v in (
            *value[:count],
            *(value[places[name]] if name in places else None for name in names),
        )
    )
    call = outer.call(WRITE, (op.op,), kwargs, values)
    built = [_result(outer, call, place, v) for place, v in enumerate(values)]
    results: list[Any] = [*built[:count], *(None for _ in value[count:])]
    for place, name in enumerate(names):
        if name in places:
            results[places[name]] = built[count + place]
    return tuple(results)


def _checked(target: Any) -> EdgeOp:  # noqa: ANN401
    if not isinstance(target, OpOverload):
        raise UnsupportedError(f"{target} writes to its arguments and is not an operator")
    op = edge_op(target)
    schema: Any = target._schema
    for one in schema.arguments:
        if one.alias_info is not None and "List[" in str(one.type):
            raise UnsupportedError(f"{op.name()} writes to a list of tensors, {one.name}")
    if any(one.alias_info is not None for one in schema.returns):
        raise UnsupportedError(
            f"{op.name()} returns an argument that it mutates; return nothing instead"
        )
    return op


def _without_bases(
    op: EdgeOp, given: dict[str, Any], count: int
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the arguments, contiguous where mutated, and the indices of their results."""
    bases: Any = given.pop(_BASES)
    names = {formal.name for formal in op.op._schema.arguments}
    plain = {name: value for name, value in given.items() if name in names}
    places: dict[str, int] = {}
    for name in written_by(op):
        about = {k: v for k, v in given.items() if k.startswith(f"_{name}_")}
        place = about.pop(f"_{name}{_PLACE}")
        if any(value is not True for value in about.values()):  # `alias` means the entire tensor
            raise UnsupportedError(
                f"{op.name()} writes to a view; compile the program as torch.export returned it"
            )
        plain[name] = None if place is None else bases[place]
        if place is not None:
            places[name] = count + place
    return plain, places


def _check_apart(op: EdgeOp, written: list[Any]) -> None:
    nodes = [one for one in written if one is not None]
    if len(set(nodes)) < len(nodes):
        raise UnsupportedError(f"{op.name()} writes to one tensor through two of its arguments")


def _operand(outer: GraphLowering, leaf: Any) -> Any:  # noqa: ANN401
    found = outer.node_of(outer.new(leaf))
    if isinstance(found, torch.fx.Node) and isinstance(found.meta["val"], torch.Tensor):
        return contiguous(outer, found)
    return found


def _result(outer: GraphLowering, call: torch.fx.Node, place: int, value: Any) -> Any:  # noqa: ANN401
    if value is None:
        return None
    built = outer.call(operator.getitem, (call, place), {}, value)
    outer.symbols.learn(built)
    return built
