"""Runs a recorded graph of core operators on torch's kernels."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch

from runtime.errors import ErrorCode, ExecutionError
from runtime.memory.slots import dtype_of
from runtime.untyped import dtype_named, from_buffer
from schema.dtypes.scalar_type import numel
from schema.etrecord import TensorData
from schema.graph import Argument, GraphNode, NodeKind

_ops: Any = torch.ops
_IGNORED = ("Device", "Layout")
# Modules that register the operators of a namespace.
_LISTED_IN = {
    "quantized_decomposed": "torch.ao.quantization.fx._decomposed",
    "torchao": "torchao.quantization.quant_primitives",
}


@dataclass(frozen=True, slots=True)
class GraphCall:
    """A bound operator call.

    Attributes:
        node: in the record
        run: the operator
        schema: type of each argument, by name
    """

    node: GraphNode
    run: Callable[..., Any]
    schema: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Subgraph:
    """The graph that a partition was lowered from.

    Attributes:
        calls: its operators, in order
        inputs: names of its inputs, in the order of the partition's
        outputs: names of its outputs, in the order of the partition's
        constants: tensors by name
    """

    calls: tuple[GraphCall, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, torch.Tensor]
    _done: Sequence[Sequence[str]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Compute the last use of each value once."""
        object.__setattr__(self, "_done", _last_reads(self.calls, self.outputs))

    def run(self, inputs: Sequence[Any], report: Callable[[GraphNode, Any], None]) -> list[Any]:
        """Return the outputs for some inputs.

        Args:
            inputs: tensors and scalars
            report: called with each node and its results
        """
        values: dict[str, Any] = dict(self.constants)
        values.update(zip(self.inputs, inputs, strict=True))
        for call, done in zip(self.calls, self._done, strict=True):
            results = _called(call, values)
            report(call.node, results)
            several = isinstance(results, tuple | list)
            found: Sequence[Any] = cast("Sequence[Any]", results) if several else (results,)
            values.update(zip(call.node.outputs, found, strict=False))
            for name in done:
                values.pop(name, None)
        return [values[name] for name in self.outputs]


def _last_reads(calls: Sequence[GraphCall], outputs: Sequence[str]) -> list[list[str]]:
    """Return for each call the values without a later use."""
    done: list[list[str]] = []
    seen = set(outputs)
    for call in reversed(calls):
        fresh = {*call.node.outputs, *call.node.inputs} - seen
        done.append([*fresh])
        seen |= fresh
    return done[::-1]


def bound(node: GraphNode) -> GraphCall:
    """Return the call of a node.

    Raises: ExecutionError NotSupported for other nodes than calls of known operators
    """
    if node.kind is not NodeKind.CALL:
        raise _refused(f"{node.name} is not an operator call but {node.kind.value}")
    if node.target in _DIM_ORDER:
        return GraphCall(node, _DIM_ORDER[node.target], {})
    namespace, _, rest = node.target.partition(".")
    name, _, overload = rest.rpartition(".")
    _list_operators(namespace)
    try:
        run = getattr(getattr(getattr(_ops, namespace), name), overload)
    except AttributeError:
        raise _refused(f"torch has no operator {node.target}") from None
    arguments: list[Any] = list(run._schema.arguments)
    return GraphCall(node, run, {entry.name: _kind(entry) for entry in arguments})


def _list_operators(namespace: str) -> None:
    """Import the package that registers these operators; without it they stay unknown."""
    if namespace in _LISTED_IN:
        with contextlib.suppress(ImportError):
            importlib.import_module(_LISTED_IN[namespace])


def _kind(entry: Any) -> str:  # noqa: ANN401 - torch's argument has no type
    return str(getattr(entry, "real_type", entry.type)) + ("*" if entry.kwarg_only else "")


def _called(call: GraphCall, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - results
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for place, argument in enumerate(call.node.args):
        names = list(call.schema)
        name = argument.name or (names[place] if place < len(names) else "")
        kind = call.schema.get(name, "")
        if not call.schema or (place < len(names) and names[place] == name and kind[-1:] != "*"):
            positional.append(_value(argument, kind, values))
        elif not any(word in kind for word in _IGNORED):
            named[name] = _value(argument, kind, values)
    return call.run(*positional, **named)


def _value(argument: Argument, kind: str, values: Mapping[str, Any]) -> Any:  # noqa: ANN401
    literal = argument.literal
    if argument.values and literal is not None:
        raise _refused(f"argument {argument.name!r} mixes values and literals")
    if argument.values:
        found = [values[name] for name in argument.values]
        return found if "List" in kind else found[0]
    if isinstance(literal, str) and ("ScalarType" in kind or "MemoryFormat" in kind):
        return _named(literal.removeprefix("torch."), kind)
    if literal is None and kind.startswith("List"):
        return []  # an empty list of values
    if isinstance(literal, tuple):
        return list(cast("tuple[Any, ...]", literal))
    if isinstance(literal, str) and ("float" in kind or "number" in kind):
        return float(literal)
    return literal


def _named(name: str, kind: str) -> Any:  # noqa: ANN401 - of torch
    """Return the dtype or memory format of this name."""
    found = dtype_named(name) if "ScalarType" in kind else getattr(torch, name, None)
    if found is None:
        raise _refused(f"torch has no {name}")
    return found


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


def _clone_dim_order(tensor: torch.Tensor, *_more: Any) -> torch.Tensor:  # noqa: ANN401
    return tensor.clone()


def _to_dim_order_copy(tensor: torch.Tensor, *more: Any) -> torch.Tensor:  # noqa: ANN401
    named = [dtype_named(entry) for entry in more if isinstance(entry, str)]
    dtype = next((entry for entry in named if entry is not None), tensor.dtype)
    return tensor.to(dtype, copy=True)


_DIM_ORDER: dict[str, Callable[..., Any]] = {
    "dim_order_ops._clone_dim_order.default": _clone_dim_order,
    "dim_order_ops._to_dim_order_copy.default": _to_dim_order_copy,
}
