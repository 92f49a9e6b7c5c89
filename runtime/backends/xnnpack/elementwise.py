"""Elementwise nodes and batch matmul."""

from __future__ import annotations

from collections.abc import Callable

import torch

from runtime.backends.xnnpack.checks import TRANSPOSED
from runtime.backends.xnnpack.model import PayloadNode
from runtime.backends.xnnpack.node_calls import NodeCall, Values, chain, same_representation
from runtime.backends.xnnpack.representation import Change, Tensor, from_real, to_real
from runtime.untyped import aten
from schema.payloads.xnnpack import nodes as n

UNARY: dict[str, Change] = {
    "Abs": torch.abs,
    "Ceiling": torch.ceil,
    "Cos": torch.cos,
    "Exp": torch.exp,
    "Floor": torch.floor,
    "Gelu": aten.gelu.default,
    "Hardswish": aten.hardswish.default,
    "Log": torch.log,
    "Negate": torch.neg,
    "ReciprocalSquareRoot": torch.rsqrt,
    "Sigmoid": torch.sigmoid,
    "Sin": torch.sin,
    "SquareRoot": torch.sqrt,
    "Square": torch.square,
    "Tanh": torch.tanh,
}
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Add": torch.add,
    "Div": torch.div,
    "Maximum": torch.maximum,
    "Minimum": torch.minimum,
    "Multiply": torch.mul,
    "PReLU": lambda real, slope: torch.where(real < 0, real * slope, real),
    "Subtract": torch.sub,
}
_UNBOUNDED = frozenset({"Maximum", "Minimum", "PReLU"})


def unary(node: PayloadNode, values: Values) -> NodeCall:
    """Bind an elementwise unary function."""
    return _function(node, values, UNARY[node.kind])


def leaky_relu(node: PayloadNode, values: Values) -> NodeCall:
    """Bind LeakyReLU."""
    assert isinstance(node.form, n.LeakyReLU)
    slope = node.form.negative_slope
    return _function(node, values, lambda real: aten.leaky_relu.default(real, slope))


def elu(node: PayloadNode, values: Values) -> NodeCall:
    """Bind ELU."""
    assert isinstance(node.form, n.ELU)
    alpha = node.form.alpha
    return _function(node, values, lambda real: aten.elu.default(real, alpha))


def softmax(node: PayloadNode, values: Values) -> NodeCall:
    """Bind Softmax along the last dimension."""
    return _function(node, values, lambda real: torch.softmax(real, -1))


def _function(node: PayloadNode, values: Values, function: Change) -> NodeCall:
    source, target = values[node.inputs[0]], values[node.outputs[0]]
    run = chain(to_real(source), function, from_real(target))
    assert run is not None
    return NodeCall(run, node.inputs)


def convert(node: PayloadNode, values: Values) -> NodeCall:
    """Bind Convert and Copy, which change the dtype or copy the value."""
    source, target = values[node.inputs[0]], values[node.outputs[0]]
    if same_representation(source, target):
        return NodeCall(_same, node.inputs)
    return NodeCall(chain(to_real(source), from_real(target)) or _same, node.inputs)


def clamp(node: PayloadNode, values: Values) -> NodeCall:
    """Bind Clamp, with the bounds of the node."""
    source, target = values[node.inputs[0]], values[node.outputs[0]]
    return NodeCall(chain(to_real(source), from_real(target, node.bounds)) or _same, node.inputs)


def _same(held: Tensor) -> Tensor:
    return held


def binary(node: PayloadNode, values: Values) -> NodeCall:
    """Bind a function of two elements; shapes are broadcast."""
    function = BINARY[node.kind]
    left, right = (to_real(values[ident]) for ident in node.inputs)
    bounds = None if node.kind in _UNBOUNDED else node.bounds
    done = from_real(values[node.outputs[0]], bounds)
    if left is None and right is None and done is None:
        return NodeCall(function, node.inputs)
    first, second, last = left or _same, right or _same, done or _same

    def run(a: Tensor, b: Tensor) -> Tensor:
        return last(function(first(a), second(b)))

    return NodeCall(run, node.inputs)


def matmul(node: PayloadNode, values: Values) -> NodeCall:
    """Bind BatchMatrixMultiply."""
    assert isinstance(node.form, n.Binary)
    left, right = (to_real(values[ident]) for ident in node.inputs)
    done = from_real(values[node.outputs[0]], node.bounds)
    transposed = bool(node.form.flags & TRANSPOSED)

    def run(a: Tensor, b: Tensor) -> Tensor:
        a, b = left(a) if left else a, right(b) if right else b
        found = torch.matmul(a, b.transpose(-1, -2) if transposed else b)
        return done(found) if done else found

    return NodeCall(run, node.inputs)
