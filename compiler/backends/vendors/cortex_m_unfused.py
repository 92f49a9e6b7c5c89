"""Activations that the passes of Cortex-M leave on integers, which no operator computes.

Its quantizer takes each hardswish, and each hardsigmoid behind a layer. Where the passes cannot
fuse one with that layer, they have already removed the quantization around it, so that the plain
operator would compute on the stored integers. It is given the real values again, and what it
returns is quantized, as in the graph before the passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from compiler.backends.vendors.options import OptionError

_LEFT = ("hardswish", "hardsigmoid")
_STORED = (torch.int8, torch.int16)


def with_real_values(module: torch.fx.GraphModule, operators: Any) -> int:  # noqa: ANN401
    """Put the quantization around activations that are left on integers back; return how many.

    Args:
        module: after the passes of Cortex-M; changed
        operators: of the package's edge dialect, of the namespace ``cortex_m``

    Raises: OptionError if the passes have not kept the scales of one
    """
    left = [node for node in module.graph.nodes if _is_left(node)]
    for node in left:
        before, after = (_scales(node, key) for key in ("input_qparams", "output_qparams"))
        stored: Any = node.args[0]
        with module.graph.inserting_before(node):
            real = module.graph.call_function(
                operators.dequantize_per_tensor.default, (stored, *before)
            )
        with module.graph.inserting_after(node):
            rounded = module.graph.call_function(operators.quantize_per_tensor.default)
        rounded.meta = dict(node.meta)
        node.replace_all_uses_with(rounded)
        rounded.args = (node, *after)
        node.args = (real, *node.args[1:])
        real.meta = {"val": stored.meta["val"].to(torch.float32)}
        node.meta = {**node.meta, "val": node.meta["val"].to(torch.float32)}
    if left:
        module.recompile()
    return len(left)


def _is_left(node: torch.fx.Node) -> bool:
    name = str(node.target).rpartition("aten.")[2].split(".")[0].rstrip("_")
    first: Any = node.args[0] if node.args else None
    value = first.meta.get("val") if isinstance(first, torch.fx.Node) else None
    return name in _LEFT and isinstance(value, torch.Tensor) and value.dtype in _STORED


def _scales(node: torch.fx.Node, key: str) -> tuple[Any, ...]:
    """Return scale, zero point, range and dtype that the passes have folded into a node."""
    folded: Mapping[int, Any] = node.meta.get(key) or {}
    found = folded.get(0)
    if found is None or not isinstance(found.scale, float):
        raise OptionError(
            f"cortex-m: its passes left {node.name} ({node.target}) on integers without their scale"
        )
    return (found.scale, found.zp, found.qmin, found.qmax, found.dtype)
