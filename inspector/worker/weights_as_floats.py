"""Weights of 4 bits that a compile has stored in floating point, as no kernel takes them."""

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


def weights_as_floats(
    programs: Mapping[str, ExportedProgram], verdicts: Mapping[str, Sequence[Verdict]]
) -> str:
    """Return a warning about layers whose weights of 4 bits a backend holds as floats, or nothing.

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
        f"the weights of 4 bits of {layers_are} in the file as floats: {', '.join(sorted(names))} "
        "multiplies them by activations of 8 bits only; 8da4w quantizes those, too"
    )


def _plain_layers(program: ExportedProgram) -> list[Any]:
    """Return the weights of 4 bits whose layer reads activations in floating point."""
    found: list[Any] = []
    for node in program.graph.nodes:
        if _name(node) != _DEQUANTIZE.replace(".", "::"):
            continue
        bounds = tuple(node.args[_LOWEST : _LOWEST + 2])
        if bounds == _HALF_BYTE and not any(map(_reads_dynamic, node.users)):
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
