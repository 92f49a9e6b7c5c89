"""Facts about graphs for rules and the payload writer: constants, sizes, arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.dialect.ops import EdgeOp
from compiler.partition.tags import data_of

Node = torch.fx.Node


class Facts:
    """A program's constants: weights, and buffers that are not mutated."""

    def __init__(self, program: ExportedProgram) -> None:
        data = data_of(program)
        stores: Any = (program.state_dict, program.constants)
        self._tensors: dict[str, torch.Tensor] = {}
        self.data = frozenset(data.specs)
        for name, spec in data.specs.items():
            found = next((s[spec.target] for s in stores if spec.target in s), None)
            if name not in data.written and isinstance(found, torch.Tensor):
                self._tensors[name] = found

    def is_constant(self, node: object) -> bool:
        """Return whether a node is a placeholder of constant data."""
        return isinstance(node, Node) and node.op == "placeholder" and node.name in self._tensors

    def tensor(self, node: Node) -> torch.Tensor:
        """Return the data of a constant."""
        return self._tensors[node.name].detach()

    def weight(self, node: object) -> Node | None:
        """Return the constant behind a weight argument, None if it is computed.

        A transposition, which the lowering of a linear layer inserts, is skipped.
        """
        if isinstance(node, Node) and is_transposition(node):
            node = node.args[0]
        return node if isinstance(node, Node) and self.is_constant(node) else None


def op_of(node: Node) -> Any:  # noqa: ANN401 - an operator overload of torch
    """Return the ATen overload of a call, or its target if it is not an edge operator."""
    return node.target.op if isinstance(node.target, EdgeOp) else node.target


def is_transposition(node: object) -> bool:
    """Return whether a node swaps the two dimensions of a matrix."""
    if not isinstance(node, Node) or op_of(node) is not torch.ops.aten.permute_copy.default:
        return False
    order: Any = node.args[1]
    return [*order] in ([1, 0], [-1, -2], [1, -2], [-1, 0])


def value_of(node: Node) -> torch.Tensor:
    """Return the fake tensor of a node, the first one of several."""
    value = node.meta["val"]
    return value[0] if isinstance(value, (tuple, list)) else value  # pyright: ignore[reportUnknownVariableType]


def shape_of(node: Node) -> tuple[Any, ...]:
    """Return the sizes of a node's value, some of which may be symbolic."""
    return tuple(value_of(node).shape)


def rank_of(node: Node) -> int:
    """Return how many dimensions a node's value has."""
    return value_of(node).dim()


def is_tensor(node: object) -> bool:
    """Return whether an argument is a node whose value is a tensor."""
    return isinstance(node, Node) and isinstance(node.meta.get("val"), torch.Tensor)


def static_size(size: Any) -> int:  # noqa: ANN401 - an int or a symbol
    """Return a size, the size of the example if it is symbolic.

    The runtime uses the sizes of its inputs; until then those of the example are used.
    """
    return size if isinstance(size, int) else int(size.node.hint)


def is_symbolic(size: Any) -> bool:  # noqa: ANN401
    """Return whether a size is only known when the program runs."""
    return not isinstance(size, int)


def unknown_sizes(sizes: Iterable[Any]) -> list[str]:
    """Return the sizes that are only known at run time, as written in the graph."""
    return [str(size) for size in sizes if is_symbolic(size)]


def argument(node: Node, name: str) -> Any:  # noqa: ANN401
    """Return an argument of a call by its name in the schema, or its default."""
    for place, given in enumerate(op_of(node)._schema.arguments):
        if given.name == name:
            at_place = node.args[place] if place < len(node.args) else given.default_value
            return node.kwargs.get(name, at_place)
    return None


def numbers(value: Any, count: int, default: int = 0) -> tuple[int, ...]:  # noqa: ANN401
    """Return a list argument expanded to its dimensions: torch accepts one value for all."""
    listed = [value] if isinstance(value, int) else list(value or ())
    if not listed:
        return (default,) * count
    return tuple(listed) * count if len(listed) == 1 else tuple(listed)


def bounds_of(node: Node) -> tuple[float, float] | None:
    """Return the bounds of a clamping activation, None for operators that do not clamp."""
    aten, op = torch.ops.aten, op_of(node)
    if op is aten.relu.default:
        return 0.0, float("inf")
    names = {aten.hardtanh.default: ("min_val", "max_val"), aten.clamp.default: ("min", "max")}
    if op not in names:
        return None
    low, high = (argument(node, name) for name in names[op])
    if not all(v is None or isinstance(v, (int, float)) for v in (low, high)):
        return None
    low, high = -float("inf") if low is None else low, float("inf") if high is None else high
    return float(low), float(high)
