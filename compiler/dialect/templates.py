"""Templates: the edge operators that an operator is lowered to, for one kind of arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from compiler.untyped import SYMBOLIC


@dataclass(frozen=True, slots=True)
class Input:
    """The argument node with this index, counted through nested lists."""

    index: int


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of the step with this index."""

    index: int


@dataclass(frozen=True, slots=True)
class ScalarConstant:
    """A scalar that becomes a constant tensor; with None its Python type determines the dtype."""

    value: bool | int | float | complex
    dtype: torch.dtype | None


@dataclass(frozen=True, slots=True)
class TemplateStep:
    """A node to create: operator, arguments, and the fake result."""

    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    value: Any


@dataclass(frozen=True, slots=True)
class Template:
    """The steps of one operator, and the reference to its result."""

    steps: tuple[TemplateStep, ...]
    result: Any


def walk(change: Callable[[Any], Any], tree: Any) -> Any:  # noqa: ANN401
    """Return nested lists, tuples and dicts with every leaf changed."""
    if isinstance(tree, (list, tuple)):
        items = [walk(change, item) for item in tree]  # pyright: ignore[reportUnknownVariableType]
        return items if isinstance(tree, list) else tuple(items)
    if isinstance(tree, dict):
        return {name: walk(change, item) for name, item in tree.items()}  # pyright: ignore[reportUnknownVariableType]
    return change(tree)


def nodes_in(tree: Any) -> list[torch.fx.Node]:  # noqa: ANN401
    """Return the nodes among the leaves, in order, with repetitions."""
    found: list[torch.fx.Node] = []

    def note(leaf: Any) -> None:  # noqa: ANN401
        if isinstance(leaf, torch.fx.Node):
            found.append(leaf)

    walk(note, tree)
    return found


def tensors_in(tree: Any) -> list[torch.Tensor]:  # noqa: ANN401
    """Return the tensors among the leaves, in order."""
    found: list[torch.Tensor] = []

    def note(leaf: Any) -> None:  # noqa: ANN401
        if isinstance(leaf, torch.Tensor):
            found.append(leaf)

    walk(note, tree)
    return found


def metadata_key(op: Any, args: Any, kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return the key of an operator's template: dtypes, shapes and strides, without names."""
    named = tuple((name, _key(value)) for name, value in sorted(kwargs.items()))
    return op, _key(args), named


def _key(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, torch.fx.Node):
        return _key_of_value(value.meta["val"])
    if isinstance(value, (list, tuple)):
        return tuple([_key(item) for item in value])  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, SYMBOLIC):
        return "symbol", type(value), str(value)
    return value.__class__, repr(value) if isinstance(value, float) else value


def _key_of_value(value: Any) -> Any:  # noqa: ANN401
    if not isinstance(value, torch.Tensor):
        return str(value)
    rows: Any = (tuple(value.shape), value.stride())
    numbers = [tuple([n if isinstance(n, int) else str(n) for n in row]) for row in rows]
    return value.dtype, *numbers


def describe_output(graph: torch.fx.Graph) -> None:
    """Set the metadata of the output node to the values of the results, as partitioners expect."""
    last = next(iter(reversed(graph.nodes)), None)
    if last is not None and last.op == "output":
        last.meta["val"] = walk(_value, last.args[0])


def _value(leaf: Any) -> Any:  # noqa: ANN401
    return leaf.meta.get("val") if isinstance(leaf, torch.fx.Node) else leaf
