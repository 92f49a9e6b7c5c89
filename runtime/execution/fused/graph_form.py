"""The form of a graph: which operators it calls in which order, before torch creates it.

Graphs of one form, such as those of the layers of a network, share one function: torch creates it
once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast
from weakref import WeakValueDictionary

import torch

Tensor = torch.Tensor
_torch: Any = torch
_c: Any = _torch._C
_NAMES = {int: "IntType", float: "FloatType", bool: "BoolType", Tensor: "TensorType"}

Kind = tuple[str, Any]
"""A type of torch: as a string, and itself."""

_CONSTANTS: dict[str, Kind] = {}  # by their types in Python
_ACCEPTED: set[Hashable] = set()  # operators with types of arguments, as many as programs use
_FUNCTIONS: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()  # of loaded methods


class UnscriptableError(Exception):
    """An operator call that a graph cannot repeat."""


@cache
def kind_of(kind: type) -> Kind:
    """Return the type of torch for a type of Python; a list is one of integers."""
    found = _c.ListType(_c.IntType.get()) if kind is list else getattr(_c, _NAMES[kind]).get()
    return str(found), found


@dataclass(frozen=True, slots=True)
class _Node:
    """An operator of a graph.

    Attributes:
        name: without overload
        given: values that it gets
        kinds: types of its results
        value: that it stands for, if it is a constant
    """

    name: str
    given: Sequence[int]
    kinds: Sequence[Kind]
    value: Any = None

    def create(self, graph: Any, values: Any) -> Any:  # noqa: ANN401 - types of torch
        """Create it at the end of a graph of torch, given its values by number; return it."""
        node = graph.create(self.name, [values[one] for one in self.given], len(self.kinds))
        for value, (_, kind) in zip(node.outputs(), self.kinds, strict=True):
            value.setType(kind)
        return graph.insertNode(node)


class GraphForm:
    """The operators of a graph; its values are numbered from 0."""

    __slots__ = ("_constants", "_inputs", "_key", "_kinds", "_nodes")

    def __init__(self) -> None:
        self._kinds: list[Kind] = []  # of each value
        self._inputs: list[tuple[int, type]] = []
        self._nodes: list[tuple[int, _Node]] = []  # each with its first result
        self._key: list[Hashable] = []
        self._constants: dict[tuple[str, str], int] = {}

    def input(self, kind: type) -> int:
        """Return a new input; scalars are passed before tensors."""
        self._kinds.append(kind_of(kind))
        value = len(self._kinds) - 1
        self._inputs.append((value, kind))
        self._key.append(kind)
        return value

    def constant(self, value: Any) -> int:  # noqa: ANN401 - any constant of a graph
        """Return a constant."""
        text = repr(value)
        key = (type(value).__name__, text)
        found = self._constants.get(key)
        if found is None:
            node = _Node("prim::Constant", (), [_kind_of_constant(value)], value)
            found = self._constants[key] = self._add(" ".join(key), node)[0]
        return found

    def operator(
        self, text: str, name: str, given: Sequence[int], kinds: Sequence[Kind]
    ) -> Sequence[int]:
        """Return the results of an operator.

        Args:
            text: its schema, or its name with the overload
            name: without overload
            given: its arguments
            kinds: types of the results

        Raises: UnscriptableError if torch reads it as another overload
        """
        node = _Node(name, tuple(given), kinds)
        key = (text, *[self._kinds[one][0] for one in given])
        if key not in _ACCEPTED:
            self._check(text, node)
            _ACCEPTED.add(key)
        return self._add(text, node)

    def _check(self, text: str, node: _Node) -> None:
        graph, values = _c.Graph(), dict[int, Any]()
        for one in node.given:
            values[one] = graph.addInput()
            values[one].setType(self._kinds[one][1])
        found = str(node.create(graph, values).schema())
        if found != text and not found.startswith(f"{text}("):
            raise UnscriptableError(f"{text} is read as {found}")

    def constructed(self, values: Sequence[int], kind: Kind) -> int:
        """Return a list."""
        node = _Node("prim::ListConstruct", tuple(values), [kind])
        return self._add(f"{node.name} {kind[0]}", node)[0]

    def unpacked(self, value: int, kinds: Sequence[Kind]) -> Sequence[int]:
        """Return the items of a list."""
        node = _Node("prim::ListUnpack", (value,), kinds)
        return self._add(f"{node.name} {len(kinds)}", node)

    def _add(self, text: str, node: _Node) -> Sequence[int]:
        first = len(self._kinds)
        self._kinds += node.kinds
        self._nodes.append((first, node))
        self._key.append((text, node.given))
        return range(first, len(self._kinds))

    def function(self, result: int) -> Callable[..., Any]:
        """Return the graph as a function of its inputs that returns a value."""
        key = (*self._key, result)
        found = _FUNCTIONS.get(key)
        if found is None:
            found = _c._create_function_from_graph("stretch", self._graph(result))
            _FUNCTIONS[key] = found
        return found

    def _graph(self, result: int) -> Any:  # noqa: ANN401 - torch's graph has no type
        graph = _c.Graph()
        values: list[Any] = [None] * len(self._kinds)
        inputs = sorted(self._inputs, key=lambda one: one[1] is Tensor)
        for value, kind in inputs:
            values[value] = graph.addInput()
            values[value].setType(kind_of(kind)[1])
        for first, node in self._nodes:
            if node.name == "prim::Constant":
                values[first] = graph.insertConstant(node.value)
            else:
                created = list(node.create(graph, values).outputs())
                values[first : first + len(created)] = created
        graph.registerOutput(values[result])
        return graph


def _kind_of_constant(value: Any) -> Kind:  # noqa: ANN401 - any constant of a graph
    name = type(value).__name__
    if isinstance(value, list):
        name = " ".join([name, *{type(item).__name__ for item in cast("list[Any]", value)}])
    found = _CONSTANTS.get(name)
    if found is None:
        graph = _c.Graph()  # its values are valid as long as it exists
        kind = graph.insertConstant(value).type()
        found = _CONSTANTS[name] = (str(kind), kind)
    return found
