"""The form of a graph: which operators it calls in which order, as torch reads it from a string.

Graphs of one form, such as those of the layers of a network, share one function: torch creates it
once.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Sequence
from typing import Any, cast
from weakref import WeakValueDictionary

import torch

Tensor = torch.Tensor
_torch: Any = torch
_c: Any = _torch._C

Kind = str
"""A type as graphs write it, such as ``Tensor`` and ``int[]``."""

KINDS: dict[type, Kind] = {
    bool: "bool",
    float: "float",
    int: "int",
    list: "int[]",
    Tensor: "Tensor",
    type(None): "NoneType",
}
"""Types of graphs by those of Python; a list is one of integers."""

_NUMBERS = frozenset(KINDS[kind] for kind in (float, int))
_ACCEPTED: set[Hashable] = set()  # operators with types of arguments, as many as programs use
_FUNCTIONS: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()  # of loaded methods


class UnscriptableError(Exception):
    """An operator call that a graph cannot repeat."""


class GraphForm:
    """The operators of a graph; its values are numbered from 0."""

    __slots__ = ("_calls", "_constants", "_inputs", "_inserted", "_kinds", "_lines")

    def __init__(self) -> None:
        self._kinds: list[Kind] = []  # of each value
        self._inputs: list[int] = []
        self._lines: list[str] = []
        self._calls: list[tuple[str, str, Hashable]] = []  # name, schema and key of an operator
        self._constants: dict[tuple[str, str], int] = {}
        self._inserted: dict[int, Any] = {}  # constants that strings do not keep exactly

    def input(self, kind: type) -> int:
        """Return a new input; scalars are passed before tensors."""
        self._kinds.append(KINDS[kind])
        value = len(self._kinds) - 1
        self._inputs.append(value)
        return value

    def constant(self, value: Any) -> int:  # noqa: ANN401 - any constant of a graph
        """Return a constant."""
        key = type(value).__name__, repr(value)
        found = self._constants.get(key)
        if found is None:
            literal = _literal(value)
            if literal is None:
                self._kinds.append(_kind_of(value))
                found = len(self._kinds) - 1
                self._inserted[found] = value
            else:
                found = self._add([literal[0]], literal[1])[0]
            self._constants[key] = found
        return found

    def operator(
        self,
        text: str,
        name: str,
        given: Sequence[int],
        kinds: Sequence[Kind],
        requested: Sequence[Kind] | None = None,
    ) -> Sequence[int]:
        """Return the results of an operator.

        Args:
            text: its schema, or its name with the overload
            name: without overload
            given: its arguments
            kinds: types of the results
            requested: types of the arguments in the schema, None for those that are given

        Raises: UnscriptableError if torch reads it as another overload
        """
        types = [self._kinds[one] for one in given]
        key = (text, *types)
        if key not in _ACCEPTED and not (
            requested is None or all(map(_is_taken, types, requested))
        ):
            self._check(text, name, types, kinds)
            _ACCEPTED.add(key)
        self._calls.append((name, text, key))
        return self._add(kinds, _called(name, given))

    def _check(self, text: str, name: str, types: Sequence[Kind], kinds: Sequence[Kind]) -> None:
        """Raise an UnscriptableError if torch reads a call as another overload."""
        form = GraphForm()
        form._kinds += types
        form._inputs += range(len(types))
        form._add(kinds, _called(name, form._inputs))
        graph = _c.parse_ir(form._source(0))  # its nodes are valid as long as it exists
        _agree(graph.findNode(name), text)

    def constructed(self, values: Sequence[int], kind: Kind) -> int:
        """Return a list."""
        return self._add([kind], _called("prim::ListConstruct", values))[0]

    def unpacked(self, value: int, kinds: Sequence[Kind]) -> Sequence[int]:
        """Return the items of a list."""
        return self._add(kinds, _called("prim::ListUnpack", [value]))

    def _add(self, kinds: Sequence[Kind], text: str) -> Sequence[int]:
        first = len(self._kinds)
        self._kinds += kinds
        results = ", ".join([f"%{first + at} : {kind}" for at, kind in enumerate(kinds)])
        self._lines.append(f"{results} = {text}" if kinds else text)
        return range(first, len(self._kinds))

    def _source(self, result: int) -> str:
        kinds = self._kinds
        inputs = sorted(self._inputs, key=lambda one: kinds[one] == KINDS[Tensor])
        inputs = [*self._inserted, *inputs]
        given = ", ".join([f"%{one} : {kinds[one]}" for one in inputs])
        lines = "\n  ".join(self._lines)
        return f"graph({given}):\n  {lines}\n  return (%{result})\n"

    def function(self, result: int) -> Callable[..., Any]:
        """Return the graph as a function of its inputs that returns a value.

        Raises: UnscriptableError if torch reads an operator as another overload
        """
        source = self._source(result)
        key = source, *[repr(value) for value in self._inserted.values()]
        found = _FUNCTIONS.get(key)
        if found is None:
            graph = _c.parse_ir(source)
            self._accept(graph)
            self._insert(graph)
            found = _FUNCTIONS[key] = _c._create_function_from_graph("stretch", graph)
        return found

    def _accept(self, graph: Any) -> None:  # noqa: ANN401 - torch's graph has no type
        """Compare the operators of a graph that have not been looked at in one before."""
        by_name: dict[str, list[tuple[str, Hashable]]] = {}
        for name, text, key in self._calls:
            by_name.setdefault(name, []).append((text, key))
        for name, called in by_name.items():
            for node, (text, key) in zip(graph.findAllNodes(name), called, strict=True):
                _agree(node, text)
                _ACCEPTED.add(key)

    def _insert(self, graph: Any) -> None:  # noqa: ANN401 - torch's graph has no type
        """Insert the constants that are inputs of the string, before all others."""
        if not self._inserted:
            return
        first, inputs = next(graph.nodes(), None), list(graph.inputs())
        for given, value in zip(inputs, self._inserted.values(), strict=False):
            constant = graph.insertConstant(value)
            if first is not None:
                constant.node().moveBefore(first)
            given.replaceAllUsesWith(constant)
        for _ in self._inserted:
            graph.eraseInput(0)


def _called(name: str, given: Sequence[int]) -> str:
    return f"{name}({', '.join([f'%{one}' for one in given])})"


def _is_taken(given: Kind, requested: Kind) -> bool:
    """Return whether an argument is of the type that an overload requests, without conversion."""
    if requested.endswith("?"):
        return given == KINDS[type(None)] or _is_taken(given, requested[:-1])
    return given == requested or (requested == "Scalar" and given in _NUMBERS)


def _agree(node: Any, text: str) -> None:  # noqa: ANN401 - a node of torch
    """Raise an UnscriptableError if torch reads a node as another overload."""
    found = str(node.schema())
    if found != text and not found.startswith(f"{text}("):
        raise UnscriptableError(f"{text} is read as {found}")


def _literal(value: Any) -> tuple[Kind, str] | None:  # noqa: ANN401 - any constant
    """Return the type of a constant and its string, None for one that no string keeps exactly."""
    if value is None:
        return KINDS[type(None)], "prim::Constant()"
    if isinstance(value, bool | int):
        return KINDS[type(value)], f"prim::Constant[value={int(value)}]()"
    if isinstance(value, float) and (not value or sys.float_info.min <= abs(value) < math.inf):
        return KINDS[float], f"prim::Constant[value={value!r}]()"
    if type(value) is list and all(type(item) is int for item in cast("list[Any]", value)):
        return KINDS[list], f"prim::Constant[value={value}]()"
    return None


def _kind_of(value: Any) -> Kind:  # noqa: ANN401 - any constant
    graph = _c.Graph()  # its values are valid as long as it exists
    return graph.insertConstant(value).type().str()
