"""Checks that a partitioner changed only tags and notes of a program."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch.export import ExportedProgram

from compiler.dialect.templates import walk
from compiler.interface.partitioner import name_of
from compiler.memory.specs import raw_bytes
from compiler.partition.tags import PartitionContractError
from schema.objects.plural import plural

_KEPT = ("val", "debug_handle", "stack_trace", "nn_module_stack", "from_node")


def check_unchanged(partitioner: object, given: ExportedProgram, tagged: ExportedProgram) -> None:
    """Compare a tagged program with the one it is a copy of.

    Compiler metadata of a node is restored if it was changed or removed.

    Raises: PartitionContractError naming the first node, or weight, that differs
    """
    difference = _difference(given.graph_module, tagged.graph_module) or _other_data(given, tagged)
    if not difference and given.graph_signature != tagged.graph_signature:
        difference = "its signature differs"
    if difference:
        raise PartitionContractError(
            f"The partitioner {name_of(partitioner)} should not modify the graph module: "
            f"{difference}"
        )


def _difference(given: torch.fx.GraphModule, tagged: torch.fx.GraphModule) -> str:
    before, after = list(given.graph.nodes), list(tagged.graph.nodes)
    for old, new in zip(before, after, strict=False):
        if _facts(old) != _facts(new):
            return f"{old.format_node()} has become {new.format_node()}"
        before_it, after_it = _value(old.meta.get("val")), _value(new.meta.get("val"))
        if before_it != after_it and old.op != "output":  # which only repeats those of the results
            return f"the value of {old.name} was {before_it} and has become {after_it}"
        new.meta.update({key: old.meta[key] for key in _KEPT if key in old.meta})
        inner = _inner(given, old)
        if inner is not None:
            found = _inner(tagged, new)
            text = _difference(inner, found) if found is not None else "it was removed"
            if text:
                return f"in {old.name}, {text}"
    if len(before) != len(after):
        return f"it has {plural(len(after), 'node')}, was given {len(before)}"
    return ""


def _value(value: Any) -> str:  # noqa: ANN401
    """Return the properties of a value that planning and emission read: dtype, sizes, strides."""
    if isinstance(value, torch.Tensor):
        sizes = ", ".join(map(str, value.shape))
        strides = ", ".join(map(str, value.stride()))
        return f"{str(value.dtype).removeprefix('torch.')}[{sizes}] of strides {strides}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_value, cast("list[Any]", value)))
    return str(value)


def _other_data(given: ExportedProgram, tagged: ExportedProgram) -> str:
    """Return the first weight or constant of a program that was replaced, if any."""
    for before, after in (
        (given.state_dict, tagged.state_dict),
        (given.constants, tagged.constants),
    ):
        for name, old in before.items():
            new = after.get(name)
            if new is old or not isinstance(old, torch.Tensor):
                continue
            if not isinstance(new, torch.Tensor) or not _holds_the_same(old, new):
                return f"{name} has other content"
    return ""


def _holds_the_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    alike = one.dtype == other.dtype and one.shape == other.shape
    return alike and raw_bytes(one.detach()) == raw_bytes(other.detach())


def _inner(module: torch.fx.GraphModule, node: torch.fx.Node) -> torch.fx.GraphModule | None:
    found = getattr(module, str(node.target), None) if node.op == "get_attr" else None
    return found if isinstance(found, torch.fx.GraphModule) else None


def _facts(node: torch.fx.Node) -> Any:  # noqa: ANN401
    args, kwargs = walk(_named, (tuple(node.args), dict(node.kwargs)))
    return node.op, node.name, str(node.target), args, kwargs


def _named(leaf: Any) -> Any:  # noqa: ANN401
    if isinstance(leaf, torch.fx.Node):
        return "node", leaf.name
    return repr(leaf)
