"""Dequantized values that leave a partition twice, for vendors that return reals.

OpenVINO's front end skips `dequantize`, so that two of one stored value are one tensor with two
names, which it refuses as results of a partition ("Tensor name is not a number").
"""

from __future__ import annotations

from typing import Any

import torch

_CONVERTS = "quantized_decomposed.dequantize_per_"


def merge_equal_dequantizes(program: Any) -> None:  # noqa: ANN401 - an exported program
    """Let equal dequantizes of a program be one node.

    Args:
        program: that belongs to nothing else; changed
    """
    first: dict[str, torch.fx.Node] = {}
    again: list[torch.fx.Node] = []
    for node in program.graph_module.graph.nodes:
        if _CONVERTS in str(node.target):
            kept = first.setdefault(str((node.target, node.args, node.kwargs)), node)
            if kept is not node:
                node.replace_all_uses_with(kept)
                again.append(node)
    for node in again:
        program.graph_module.graph.erase_node(node)
    if not again:
        return
    results: Any = program.graph_module.graph.output_node().args[0]
    for spec, result in zip(program.graph_signature.output_specs, results, strict=True):
        if isinstance(result, torch.fx.Node):
            spec.arg.name = result.name
    program.graph_module.recompile()
