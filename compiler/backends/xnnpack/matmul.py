"""Serialization of matmul and linear layers."""

from __future__ import annotations

from typing import Any

import torch

from compiler.backends.xnnpack.facts import is_transposition, op_of, rank_of, shape_of, static_size
from compiler.backends.xnnpack.layout import plain
from compiler.backends.xnnpack.lowering import Lowering
from compiler.backends.xnnpack.precision import ConfigPrecisionType
from compiler.backends.xnnpack.quantization import home_of
from compiler.backends.xnnpack.steps import PayloadStep
from compiler.backends.xnnpack.weights import (
    IntegerWeight,
    bias_of,
    filed_as_bias,
    filed_as_weight,
    filter_of,
    parameters,
)
from compiler.untyped import aten
from schema.payloads.xnnpack import nodes as n
from schema.payloads.xnnpack.model import NO_VALUE

Node = torch.fx.Node
TRANSPOSED = 1
_PLACES = {
    aten.linear.default: (0, 1, 2),
    aten.mm.default: (0, 1, -1),
    aten.addmm.default: (1, 2, 0),
}
"""Argument indices of input, weight and bias of a layer."""


def linear(lowering: Lowering, step: PayloadStep) -> None:
    """Write a linear layer; its weight may be computed."""
    given_at, weight_at, bias_at = _PLACES[op_of(step.node)]
    args: Any = step.node.args
    given, written = args[given_at], args[weight_at]
    layout = plain(rank_of(given))
    source = lowering.operand(given, layout)
    if step.is_dynamic:
        source = lowering.rows(given, layout, 1)
    if home_of(written, lowering.steps.facts) is None:
        _computed(lowering, step, source, (weight_at, bias_at))
        return
    weight, bias = parameters(lowering, step, weight_at, bias_at)
    # A transposed weight is read untransposed; mm and addmm expect [in, out].
    as_stored = op_of(step.node) is aten.linear.default or is_transposition(written)
    if weight.dtype is torch.int8:
        data = weight if as_stored else weight.T.contiguous()
        _quantized(lowering, step, source, (IntegerWeight(data, 0, data.shape[0]), bias))
        return
    flags = 0 if as_stored else TRANSPOSED
    shift = NO_VALUE
    if bias is not None:
        # Kernels of bfloat16 add a bias of float32.
        wide = bias.float() if bias.dtype is torch.bfloat16 else bias
        with filed_as_bias(lowering, step, bias_at):
            shift = lowering.fixed(wide.reshape(-1))
    with filed_as_weight(lowering, step, weight_at):
        ident = lowering.fixed(weight)
    _product(lowering, step, (source, ident, shift), flags)


def _computed(lowering: Lowering, step: PayloadStep, source: int, places: tuple[int, int]) -> None:
    """Write a layer whose weight is given or computed at run time."""
    args: Any = step.node.args
    weight_at, bias_at = places
    weight = lowering.operand(args[weight_at], plain(2))
    given = args[bias_at] if 0 <= bias_at < len(args) else None
    bias = NO_VALUE if given is None else lowering.operand(given, plain(1))
    flags = 0 if op_of(step.node) is aten.linear.default else TRANSPOSED
    _product(lowering, step, (source, weight, bias), flags)


def _quantized(
    lowering: Lowering,
    step: PayloadStep,
    source: int,
    weights: tuple[IntegerWeight, torch.Tensor | None],
) -> None:
    """Write a linear layer with an integer weight."""
    whole, bias = weights
    node: Any = step.node
    given_at, weight_at, bias_at = _PLACES[op_of(node)]
    with filed_as_weight(lowering, step, weight_at):
        weight = filter_of(lowering, step, whole)
    alone = step.pattern.precision is ConfigPrecisionType.FP32
    if not alone or bias is None:
        with filed_as_bias(lowering, step, bias_at):
            shift = bias_of(lowering, step, bias, node.args[given_at])
        _product(lowering, step, (source, weight, shift), 0)
        return
    # The floating-point kernels with such a weight support no bias: it is added afterwards.
    product = lowering.inner(node, tuple(map(static_size, shape_of(node))))
    form = n.FullyConnected("FullyConnected", source, weight, NO_VALUE, product, 0)
    lowering.writer.node(form, step.handles)
    with filed_as_bias(lowering, step, bias_at):
        shift = lowering.fixed(bias.float().reshape(-1))
    lowering.add(step, n.Binary("Add", product, shift, lowering.result(node)))


def _product(lowering: Lowering, step: PayloadStep, ids: tuple[int, int, int], flags: int) -> None:
    built = lowering.result(step.node)
    lowering.add(step, n.FullyConnected("FullyConnected", *ids, built, flags))


def bmm(lowering: Lowering, step: PayloadStep) -> None:
    """Write a batch matmul; the second operand may be read transposed."""
    args: Any = step.node.args
    flags = 0 if step.transposed is None else TRANSPOSED
    first, second = (lowering.operand(given, plain(3)) for given in args)
    built = lowering.result(step.node)
    lowering.add(step, n.Binary("BatchMatrixMultiply", first, second, built, flags))
