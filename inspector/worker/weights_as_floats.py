"""Quantized weights that a compile has stored in floating point, as no kernel takes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch.export import ExportedProgram

from schema.backends import backend_of
from schema.etrecord.parts.verdicts import NodeOutcome, Verdict

_DEQUANTIZE = "torchao.dequantize_affine"
_DYNAMIC = "torchao::choose_qparams_affine"  # of activations that are quantized while it runs
_LOWEST = 5  # place of the smallest integer among the arguments, before the largest
_HALF_BYTE = (-8, 7)
_LAYER = "aten::linear"


def weights_as_floats(
    programs: Mapping[str, ExportedProgram], verdicts: Mapping[str, Sequence[Verdict]]
) -> str:
    """Return a warning about layers whose weights a backend holds as floats, or nothing.

    Args:
        programs: quantized, by method
        verdicts: of all nodes, by method
    """
    most, names = 0, set[str]()
    for method, program in programs.items():
        taken = [backend_of(one.backend) for one in verdicts.get(method, ()) if _is_taken(one)]
        holding = {one.name for one in taken if one.holds_half_bytes_as_floats}
        layers = len(_plain_layers(program)) if holding else 0
        if layers and taken:
            most, names = max(most, min(layers, len(taken))), names | holding
    if not names:
        return ""
    layers_are = "a linear layer is" if most == 1 else f"{most} linear layers are"
    return (
        f"the quantized weights of {layers_are} in the file as floats: {', '.join(sorted(names))} "
        "multiplies those of 4 bits by activations of 8 bits only (8da4w), and those of 8 bits "
        "with one scale for each channel only (int8 or 8da8w without a group)"
    )


def _plain_layers(program: ExportedProgram) -> list[Any]:
    """Return the weights of linear layers in bits, groups and activations without a kernel."""
    found: list[Any] = []
    for node in program.graph.nodes:
        if _name(node) != _DEQUANTIZE.replace(".", "::"):
            continue
        layers = [user for user in node.users if _name(user) == _LAYER]
        if not layers:
            continue
        if tuple(node.args[_LOWEST : _LOWEST + 2]) == _HALF_BYTE:
            without = not any(map(_reads_dynamic, layers))
        else:
            without = node.args[1][-1] != node.args[0].meta["val"].shape[-1]
        if without:
            found.append(node)
    return found


def _reads_dynamic(layer: Any) -> bool:  # noqa: ANN401 - a node
    """Return whether an input of a layer is quantized while the program runs."""
    return any(_name(root) == _DYNAMIC for root in _behind(layer.all_input_nodes))


def _behind(nodes: Iterable[Any]) -> Iterable[Any]:
    """Yield what the arguments of a dequantized input come from, three calls deep."""
    level = list(nodes)
    for _ in range(3):
        level = [one for node in level for one in node.all_input_nodes]
        yield from level


def _is_taken(one: Verdict) -> bool:
    return one.operator.startswith(_DEQUANTIZE) and one.outcome is NodeOutcome.DELEGATED


def _name(node: Any) -> str:  # noqa: ANN401
    return str(getattr(getattr(node.target, "_schema", None), "name", ""))
