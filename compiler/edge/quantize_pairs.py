"""Finds pairs of dequantize and quantize that restore the integers they read."""

from __future__ import annotations

from typing import Any

import torch

Node = torch.fx.Node
_QUANTIZE = "quantized_decomposed::quantize_per_tensor"
_DEQUANTIZE = "quantized_decomposed::dequantize_per_tensor"
_PARAMETERS = 5  # scale, zero point, smallest, largest, dtype
# For 8 and 16 bits, float32 represents every integer times a normal scale with an error far below
# half a step.
_EXACT = (torch.int8, torch.uint8, torch.int16, torch.uint16)
_LARGEST_SCALE = 1e30  # the products of larger ones overflow


def integers_before(op: Any, args: tuple[Any, ...]) -> Node | None:  # noqa: ANN401
    """Return the integers that a quantize would recompute, None if it is not redundant.

    Such a pair remains if the operator between *dequantize* and *quantize* is a no-op.
    Quantize clamps to its range, so the original integers must lie in it.

    Args:
        op: ATen overload about to be called
        args: its arguments in the edge graph
    """
    if not _names(op, _QUANTIZE) or len(args) != _PARAMETERS + 1:
        return None
    dequantize, parameters = args[0], args[1:]
    if not _is(dequantize, _DEQUANTIZE) or dequantize.kwargs:
        return None
    integers: Any = dequantize.args[0]
    if tuple(dequantize.args[1:]) != tuple(parameters) or not isinstance(integers, Node):
        return None
    scale, _, low, high, dtype = parameters
    normal = isinstance(scale, float) and torch.finfo(torch.float32).tiny <= scale < _LARGEST_SCALE
    if not normal or dtype not in _EXACT or integers.meta["val"].dtype != dtype:
        return None
    full = torch.iinfo(dtype)
    in_range = _is(integers, _QUANTIZE) and integers.args[3:] == dequantize.args[3:]
    return integers if in_range or (low, high) == (full.min, full.max) else None


def _is(node: Any, name: str) -> bool:  # noqa: ANN401
    return isinstance(node, Node) and node.op == "call_function" and _names(node.target, name)


def _names(op: Any, name: str) -> bool:  # noqa: ANN401
    schema = getattr(op, "_schema", None)
    return schema is not None and (schema.name, schema.overload_name) == (name, "")
