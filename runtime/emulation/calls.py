"""Calls of torch's kernels for the nodes of a recorded graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from runtime.emulation.recorded import GraphCall, RecordedGraph
from runtime.errors import ErrorCode, ExecutionError
from runtime.kernels.literals import literal
from runtime.kernels.named_by_files import operator_of_file
from runtime.memory.slots import dtype_of
from runtime.untyped import aten, from_buffer
from schema.dtypes.scalar_type import numel
from schema.etrecord import TensorData
from schema.graph import Argument, Graph, GraphNode, NodeKind

_IGNORED = ("Device", "Layout")
_BORDERS = (NodeKind.PLACEHOLDER, NodeKind.OUTPUT)


def operator_of(node: GraphNode) -> Callable[..., Any]:
    """Return the operator that a node calls.

    Raises: ExecutionError NotSupported for other nodes than calls of known operators
    """
    if node.kind is not NodeKind.CALL:
        raise _refused(f"{node.name} is not an operator call but {node.kind.value}")
    if node.target in DIM_ORDER:
        return DIM_ORDER[node.target]
    found = operator_of_file(node.target)
    if found is None:
        raise _refused(f"torch has no operator {node.target} that only computes")
    return found


def call_of(node: GraphNode) -> GraphCall:
    """Return the call of a node.

    Raises: ExecutionError NotSupported for other nodes than calls of known operators, and for
        arguments that mix values and literals
    """
    run = operator_of(node)
    entries: list[Any] = [*getattr(getattr(run, "_schema", None), "arguments", ())]
    positional: list[tuple[Argument, str]] = []
    named: dict[str, tuple[Argument, str]] = {}
    kinds = {entry.name: str(getattr(entry, "real_type", entry.type)) for entry in entries}
    kinds = kinds or _DIM_ORDER_KINDS
    for place, argument in enumerate(node.args):
        entry = entries[place] if place < len(entries) else None
        name = argument.name or (entry.name if entry is not None else "")
        kind = kinds.get(name, "")
        if argument.values and argument.literal is not None:
            raise _refused(f"argument {argument.name!r} of {node.name} mixes values and literals")
        in_place = entry is not None and entry.name == name and not entry.kwarg_only
        if in_place or (not entries and not place):
            positional.append((argument, kind))
        elif not any(word in kind for word in _IGNORED):
            named[name] = argument, kind
    return GraphCall(node.name, node.inputs, node.outputs, partial(_called, run, positional, named))


def graph_of(
    graph: Graph, constants: Mapping[str, Any], outputs: Sequence[str] | None = None
) -> RecordedGraph:
    """Return a recorded graph ready to run.

    Args:
        graph: of plain operators
        constants: tensors by name
        outputs: values to return; None for all of the user's

    Raises: ExecutionError NotSupported where it is more than plain operators
    """
    calls = tuple(call_of(node) for node in graph.nodes if node.kind not in _BORDERS)
    results = graph.outputs if outputs is None else outputs
    return RecordedGraph(calls, graph.inputs, tuple(results), constants)


def _called(
    run: Callable[..., Any],
    positional: Sequence[tuple[Argument, str]],
    named: Mapping[str, tuple[Argument, str]],
    values: Mapping[str, Any],
) -> Any:  # noqa: ANN401 - results
    given = [_value(argument, kind, values) for argument, kind in positional]
    return run(*given, **{name: _value(*each, values) for name, each in named.items()})


def _value(argument: Argument, kind: str, values: Mapping[str, Any]) -> Any:  # noqa: ANN401
    if argument.values:
        found = [values[name] for name in argument.values]
        return found if "List" in kind else found[0]
    if argument.literal is None and kind.startswith("List"):
        return []  # an empty list of values
    return literal(argument.literal, kind)


def tensor_of(saved: TensorData) -> torch.Tensor:
    """Return a saved tensor.

    Raises: ExecutionError NotSupported where the record does not hold its bytes
    """
    dtype = dtype_of(saved.scalar_type)
    if not numel(saved.sizes):
        return torch.empty(saved.sizes, dtype=dtype)
    if saved.data is None or saved.big_endian:
        raise _refused("the record does not hold the bytes of a parameter")
    flat = from_buffer(saved.data, dtype, len(saved.data) // dtype.itemsize)
    return flat.as_strided(saved.sizes, saved.strides)


def _refused(reason: str) -> ExecutionError:
    return ExecutionError(ErrorCode.NotSupported, reason, remedy="")


def _clone_dim_order(
    tensor: torch.Tensor, *, non_blocking: bool = False, dim_order: list[int] | None = None
) -> torch.Tensor:
    del non_blocking  # copies on one device are synchronous
    return _in_order(tensor.clone(), dim_order)


def _to_dim_order_copy(
    tensor: torch.Tensor,
    *,
    dim_order: list[int] | None = None,
    **options: Any,  # noqa: ANN401 - of aten._to_copy
) -> torch.Tensor:
    return _in_order(aten._to_copy.default(tensor, **options), dim_order)


def _in_order(tensor: torch.Tensor, dim_order: list[int] | None) -> torch.Tensor:
    if dim_order is None:
        return tensor
    back = [dim_order.index(axis) for axis in range(len(dim_order))]
    return tensor.permute(dim_order).contiguous().permute(back)


DIM_ORDER: dict[str, Callable[..., Any]] = {
    "dim_order_ops._clone_dim_order.default": _clone_dim_order,
    "dim_order_ops._to_dim_order_copy.default": _to_dim_order_copy,
}
_DIM_ORDER_KINDS = {"dtype": "ScalarType", "layout": "Layout", "device": "Device"}
