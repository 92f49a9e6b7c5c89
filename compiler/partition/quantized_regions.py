"""Nodes that are quantized together: what lies between dequantize and quantize nodes.

A backend of integers cannot take a part of such a region: the value at the cut would be real.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

_QUANTIZE, _DEQUANTIZE = "quantize_per", "dequantize_per"
CONVERTS = "its partition would only quantize or dequantize, beside nodes that a rule keeps out"
ALONE = "is quantized together with it and cannot be taken out alone"


def is_quantization(operator: str) -> bool:
    """Return whether an operator quantizes or dequantizes."""
    return _QUANTIZE in operator or _DEQUANTIZE in operator


def is_dequantize(operator: str) -> bool:
    """Return whether an operator dequantizes."""
    return _DEQUANTIZE in operator


def only_converts(operators: Iterable[str]) -> bool:
    """Return whether calls of these operators only convert to integers and back."""
    computing = [name for name in operators if "getitem" not in name]
    return bool(computing) and all(map(is_quantization, computing))


def converted_outside(
    node: Any,  # noqa: ANN401
    operator_of: Callable[[Any], str],
    delegated: Callable[[Any], bool],
) -> str:
    """Return why a node that converts a value stays outside: nothing it converts for is inside.

    Args:
        node: a call that no partitioner took
        operator_of: returns the name of a node's operator
        delegated: whether a partition has a node

    Returns: a sentence that names what is outside; empty for another operator, and where
        something that it converts for is delegated
    """
    operator = operator_of(node)
    if not is_quantization(operator):
        return ""
    back = is_dequantize(operator)
    beside = [*node.users] if back else node.all_input_nodes[:1]
    if not beside or any(map(delegated, beside)):
        return ""
    kinds = {"placeholder": "an input of the program", "output": "an output of the program"}
    names = dict.fromkeys(str(kinds.get(one.op, one.name)) for one in beside)
    verb = "dequantizes for" if back else "quantizes"
    return f"it {verb} {', '.join(names)}, outside of every partition"


def whole_regions(
    vetoed: Mapping[Any, tuple[str, str]],
    nodes: Iterable[Any],
    operator_of: Callable[[Any], str],
) -> dict[Any, tuple[str, str]]:
    """Return what else stays out with vetoed nodes, by the rule and why.

    Args:
        vetoed: by node, the rule of the user and why
        nodes: all calls of the graph
        operator_of: returns the name of a node's operator
    """
    nodes = list(nodes)
    calls = {node for node in nodes if not is_quantization(operator_of(node))}
    quantized = len(calls) != len({*nodes})
    found: dict[Any, tuple[str, str]] = {}
    for node, (rule, _) in vetoed.items() if quantized else ():
        if node not in calls:
            continue
        text = f"{node.name} ({operator_of(node)}), which a rule keeps out, {ALONE}"
        region = _region(node, calls)
        if not any(is_quantization(operator_of(one)) for one in _beside(region, {*nodes})):
            continue  # of a program that is quantized in part: nothing is converted for these
        for other in region - {node}:
            if other not in vetoed:
                found.setdefault(other, (rule, text))
    return found


def _region(node: Any, calls: set[Any]) -> set[Any]:  # noqa: ANN401
    """Return a node and the calls that it is joined to by real values."""
    found, left = {node}, [node]
    while left:
        one = left.pop()
        around = [user for user in one.users if user in calls and _is_real(one)]
        around += [read for read in one.all_input_nodes if read in calls and _is_real(read)]
        left += [other for other in around if other not in found]
        found.update(around)
    return found


def _beside(region: Iterable[Any], calls: set[Any]) -> set[Any]:
    """Return the calls that a region reads and that read it."""
    beside = {one for node in region for one in (*node.users, *node.all_input_nodes)}
    return beside & calls


def _is_real(node: Any) -> bool:  # noqa: ANN401
    value = node.meta.get("val")
    return bool(getattr(getattr(value, "dtype", None), "is_floating_point", False))
