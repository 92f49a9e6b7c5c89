"""Weights in integers, for vendors that read real ones only.

OpenVINO's front end skips `dequantize` (it knows NNCF's multiplication by a scale), so that a
layer would read the stored integers; and a pair of `quantize_per_channel` and
`dequantize_per_channel` on a real weight it converts to other values.
"""

from __future__ import annotations

from typing import Any

import torch

_READS = "quantized_decomposed.dequantize_per_"


def give_real_weights(program: Any) -> int:  # noqa: ANN401 - an exported program
    """Store the weights that a program dequantizes as their real values; return how many.

    Args:
        program: that belongs to nothing else; changed
    """
    signature: Any = program.graph_signature
    places: dict[str, str] = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **signature.inputs_to_lifted_tensor_constants,
    }
    written = {*signature.buffers_to_mutate.values()}
    count = 0
    for stored in [node for node in program.graph.nodes if node.name in places]:
        readers = [*stored.users]
        if not readers or not all(_reads(one, stored) for one in readers):
            continue
        if len({str(one.args) for one in readers}) > 1 or places[stored.name] in written:
            continue
        given = [_value(program, places, one) for one in readers[0].args]
        if any(isinstance(one, torch.fx.Node) for one in given):
            continue
        operator: Any = getattr(readers[0].target, "_op", readers[0].target)
        _store(program, places[stored.name], operator(*given, **readers[0].kwargs))
        stored.meta["val"] = readers[0].meta["val"]
        for one in readers:
            one.replace_all_uses_with(stored)
            program.graph.erase_node(one)
        count += 1
    if count:
        program.graph_module.recompile()
    return count


def _reads(node: torch.fx.Node, stored: torch.fx.Node) -> bool:
    return _READS in str(node.target) and node.args[0] is stored


def _value(program: Any, places: dict[str, str], arg: Any) -> Any:  # noqa: ANN401
    """Return an argument, a constant as its tensor."""
    if not isinstance(arg, torch.fx.Node) or arg.name not in places:
        return arg
    name = places[arg.name]
    held: Any = program.state_dict.get(name)
    return program.constants.get(name, arg) if held is None else held


def _store(program: Any, name: str, value: torch.Tensor) -> None:  # noqa: ANN401
    home: Any = program.state_dict if name in program.state_dict else program.constants
    home[name] = value.detach()
