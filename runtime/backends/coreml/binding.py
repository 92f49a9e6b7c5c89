"""Binds operators of a program: their arguments are named, in any order.

Arguments that the program computes or stores in a weight file are tensors. Others are literals,
bound when the payload is loaded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, cast

import torch
from torch import Tensor

from runtime.backends.coreml import (
    compressed,
    elementwise,
    gathering,
    heads,
    images,
    layers,
    shapes,
)
from runtime.backends.coreml.given import Given
from runtime.backends.graph import Fixed, Operand, Operation
from schema.graph import Argument, Graph, GraphNode


def _read_state(input: Tensor) -> Tensor:
    return input


def _write_state(input: Tensor, data: Tensor) -> Tensor:
    del input
    return data


OPERATORS: dict[str, Callable[..., Any]] = {
    **elementwise.TABLE,
    **shapes.TABLE,
    **gathering.TABLE,
    **images.TABLE,
    **heads.TABLE,
    **layers.TABLE,
    **compressed.TABLE,
    "read_state": _read_state,
    "write_state": _write_state,
}
"""By name, without branches and loops."""
_PLAIN_TENSORS = ("data", "input", "ls", "source_val", "values", "x", "y")
_LISTS = ("loop_vars", "ref_tensors", "values")
_EPSILON = {"inverse": 1e-4, "log": 1e-45, "rsqrt": 1e-12}


def bind_operator(node: GraphNode, graph: Graph) -> Operation | None:
    """Return the call of a node, None for an operator that is not known in this form."""
    run = OPERATORS.get(node.target)
    if run is None or (node.target == "write_state" and not node.outputs):
        return None
    parameters, tensors = _parameters(run)
    operands: dict[str, Operand] = {}
    if node.target.startswith("constexpr_"):  # before iOS 18 its parameters are attributes
        facts = node.attributes.items()
        operands = {name: Fixed(one) for name, one in facts if name in parameters}
    for argument in node.args:
        found = operand_of(argument, graph)
        if found is None:
            return None
        operands[argument.name] = found
    if node.target in _EPSILON and "epsilon" not in operands:
        operands["epsilon"] = Fixed(_epsilon(node, graph))
    if "**" not in parameters and not operands.keys() <= set(parameters):
        return None
    return _call(run, parameters, tensors, operands)


@cache
def _parameters(run: Callable[..., Any]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the names of parameters, ``**`` among them where any may follow, and the tensors."""
    entries = inspect.signature(run).parameters
    names = tuple("**" if one.kind is one.VAR_KEYWORD else name for name, one in entries.items())
    tensors = {
        name
        for name, one in entries.items()
        if "Tensor" in str(one.annotation)
        or (one.annotation is one.empty and name in _PLAIN_TENSORS)
    }
    return names, frozenset(tensors)


def operand_of(argument: Argument, graph: Graph) -> Operand | None:
    """Return the value of an argument, None for names and literals in an order that is lost."""
    if argument.values and argument.literal is not None:
        return None
    if not argument.values:
        return Fixed(argument.literal)
    found: list[str | Fixed] = [_one(name, graph) for name in argument.values]
    if argument.name in _LISTS or len(found) > 1:
        return tuple(
            Fixed(tensor_of(one.value)) if isinstance(one, Fixed) else one for one in found
        )
    return found[0]


def _one(name: str, graph: Graph) -> str | Fixed:
    value = graph.values[name]
    return name if value.constant or value.literal is None else Fixed(value.literal)


def _call(
    run: Callable[..., Any],
    parameters: Sequence[str],
    tensors: frozenset[str],
    operands: Mapping[str, Operand],
) -> Operation:
    fixed: dict[str, Given] = {}
    given: dict[str, Operand] = {}
    for name, one in operands.items():
        if not isinstance(one, Fixed):
            given[name] = one
        elif name not in tensors:
            fixed[name] = one.value
        else:
            given[name] = Fixed(tensor_of(one.value))
    order = [name for name in parameters if name in given] + [
        name for name in given if name not in parameters
    ]
    called = partial(run, **fixed) if fixed else run
    values = tuple(given[name] for name in order)
    if order == list(parameters[: len(order)]):
        return Operation(called, values)

    def by_name(*taken: Given) -> Given:
        return called(**dict(zip(order, taken, strict=True)))

    return Operation(by_name, values)


def tensor_of(literal: Given) -> Given:
    """Return a literal as a tensor: halves are computed in float32, as everywhere."""
    if literal is None or isinstance(literal, (str, Tensor)):
        return literal
    first: Given = literal
    while isinstance(first, (tuple, list)):
        items = cast("Sequence[Given]", first)
        first = items[0] if items else 0.0
    kinds = ((bool, torch.bool), (int, torch.int32), (float, torch.float32))
    dtype = next((dtype for kind, dtype in kinds if isinstance(first, kind)), None)
    return literal if dtype is None else torch.tensor(literal, dtype=dtype)


def _epsilon(node: GraphNode, graph: Graph) -> float:
    """Return the default in the dtype of the value: in float16 two of them are zero."""
    value, tensor = _EPSILON[node.target], graph.values[node.outputs[0]].tensor
    half = tensor is not None and tensor.dtype == "float16"
    return torch.tensor(value, dtype=torch.float16).item() if half else value
