"""Reducers of taps: the full tensor, or statistics of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from compiler.dialect.ops import edge_op
from compiler.errors import UnsupportedError
from compiler.untyped import OpOverload, aten

_P99 = 100  # 1 % of the values are above the 99th percentile
FIELDS = (
    *("min", "max", "mean", "abs_max", "abs_mean", "std", "rms", "l1_norm", "l2_norm"),
    *("nan_count", "inf_count", "zero_count", "p99_abs"),
)

Emit = Callable[[torch.fx.Graph, torch.fx.Node], torch.fx.Node]


@dataclass(frozen=True)
class StatReducer:
    """A function of a tensor that a tap computes.

    Attributes:
        name: key for ``get_reducer`` of built-in reducers
        fields: names of the values in the one-dimensional result; empty for a whole tensor
        emit: adds the nodes of the function to an edge graph at the insertion point and
            returns the last; None traces ``eager`` instead
        eager: the same function in torch
    """

    name: str
    fields: tuple[str, ...]
    emit: Emit | None
    eager: Callable[[torch.Tensor], torch.Tensor]

    def insert(self, graph: torch.fx.Graph, source: torch.fx.Node) -> torch.fx.Node:
        """Add the nodes of the function at the insertion point of an edge graph."""
        if self.emit is not None:
            return self.emit(graph, source)
        return _traced(self.eager, graph, source)


def _traced(
    function: Callable[[torch.Tensor], torch.Tensor], graph: torch.fx.Graph, source: torch.fx.Node
) -> torch.fx.Node:
    fake: Any = source.meta["val"]
    plain: Any = torch.func
    functional = plain.functionalize(function, remove="mutations_and_views")
    with fake.fake_mode:
        traced: Any = make_fx(functional, decomposition_table={aten.sum.default: _sum})(fake)
    built: dict[torch.fx.Node, Any] = {}
    for node in traced.graph.nodes:
        if node.op == "placeholder":
            built[node] = source
        elif node.op == "output":
            return built[node.args[0]]
        elif node.op != "call_function":
            raise UnsupportedError(f"a reducer may not hold a constant tensor, found {node.target}")
        else:
            copied = graph.node_copy(node, built.__getitem__)
            if isinstance(node.target, OpOverload):
                copied.target = edge_op(node.target)
            built[node] = copied
    raise AssertionError  # every graph has an output


def _sum(tensor: torch.Tensor, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    return tensor.sum([*range(tensor.dim())], dtype=dtype)  # the form that has a kernel


def _statistics(tensor: torch.Tensor) -> torch.Tensor:
    values = tensor.detach().to(torch.float32).reshape(-1)
    size, squares = values.abs(), values * values
    mean, mean_square = values.mean(), squares.mean()
    above = max(1, -(-values.numel() // _P99))
    counts = [
        torch.isnan(values).to(torch.float32).sum(0),
        torch.isinf(values).to(torch.float32).sum(0),
        (values == 0).to(torch.float32).sum(0),
    ]
    parts = [
        values.amin(),
        values.amax(),
        mean,
        size.amax(),
        size.mean(),
        (mean_square - mean * mean).abs().sqrt(),  # rounding may make it negative
        mean_square.sqrt(),
        size.sum(0),
        squares.sum(0).sqrt(),
        *counts,
        torch.topk(size, above).values[above - 1],
    ]
    return torch.stack(parts)


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach()


FULL_TENSOR = StatReducer("FULL_TENSOR", (), lambda _graph, source: source, _whole)
STATS = StatReducer("STATS", FIELDS, None, _statistics)
_BUILT_IN = {one.name: one for one in (FULL_TENSOR, STATS)}


def get_reducer(name_or_reducer: str | StatReducer) -> StatReducer:
    """Return a built-in reducer by its name; a reducer is returned as it is.

    Raises: ValueError for an unknown name
    """
    if isinstance(name_or_reducer, StatReducer):
        return name_or_reducer
    if name_or_reducer not in _BUILT_IN:
        known = ", ".join(sorted(_BUILT_IN))
        raise ValueError(f"unknown reducer {name_or_reducer!r}; available: {known}")
    return _BUILT_IN[name_or_reducer]
