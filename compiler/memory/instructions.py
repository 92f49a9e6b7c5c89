"""The instructions of a method before values have indices, with labels for jumps."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch

Slot = tuple[torch.fx.Node, int | str]  # a result of a node, 0 for its only one; or a helper value


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """A node that becomes a call of a kernel or of a delegate."""

    node: torch.fx.Node


@dataclass(frozen=True, slots=True)
class PlannedView:
    """A node that is a view of its first argument's memory; no instruction."""

    node: torch.fx.Node


@dataclass(frozen=True, slots=True)
class SizedView:
    """A node that is a view of its first argument's memory, with sizes known at run time.

    Attributes:
        node: its origin
        sizes: integers, nodes that compute them, and at most one -1 for the inferred size
    """

    node: torch.fx.Node
    sizes: tuple[int | torch.fx.Node, ...]


@dataclass(frozen=True, slots=True)
class Raw:
    """A call of a kernel with given arguments.

    Attributes:
        node: its origin
        name: of the kernel
        overload: of the kernel
        args: slots or scalars, results included, as the runtime expects them
    """

    node: torch.fx.Node
    name: str
    overload: str
    args: tuple[Slot | int | bool | None, ...]


@dataclass(frozen=True, slots=True)
class Write:
    """A call of an operator that writes to its arguments.

    Attributes:
        node: the call
        targets: the tensors that are written, by the name of the argument
    """

    node: torch.fx.Node
    targets: dict[str, Slot]


@dataclass(frozen=True, slots=True)
class Move:
    """Moves a value to another slot, memory included."""

    node: torch.fx.Node
    source: Slot | int | float | bool
    target: Slot


@dataclass(frozen=True, slots=True)
class Label:
    """A jump target; not an instruction."""

    name: tuple[torch.fx.Node, str]


@dataclass(frozen=True, slots=True)
class Jump:
    """Jumps to a label if a condition is false; unconditionally for the constant False."""

    node: torch.fx.Node
    condition: Slot | bool
    target: Label


Step = OperatorCall | PlannedView | SizedView | Raw | Write | Move | Label | Jump
"""One step of a method."""


def is_instruction(step: Step) -> bool:
    """Return whether a step becomes an instruction."""
    return not isinstance(step, (PlannedView, Label))


def slot_of(node: torch.fx.Node) -> Slot:
    """Return the slot of a node: that of its source for ``getitem``."""
    if node.op == "call_function" and node.target is operator.getitem:
        source, index = node.args
        assert isinstance(source, torch.fx.Node)  # results are not nested
        assert isinstance(index, int)
        return source, index
    return node, 0


def results_of(node: torch.fx.Node) -> tuple[Any, ...]:
    """Return the fake results of a node."""
    value = node.meta.get("val")
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
