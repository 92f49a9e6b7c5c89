"""Symbolic sizes as nodes: each symbol read once from an input, each expression computed once."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable
from typing import Any

import torch

from compiler.errors import UnsupportedError
from compiler.untyped import NUMBER_OPERATORS, SYMBOLIC, expression_of, floordiv, of_integers

_sympy: Any = importlib.import_module("sympy")  # it has no types
_BY_NAME = {name: target for target, name in NUMBER_OPERATORS.items()}
_IF, _NOT = _BY_NAME["sym_ite"], _BY_NAME["sym_not"]
_OF_FORMULAS = {
    "Add": "add",
    "Mul": "mul",
    "FloorDiv": "floordiv",
    "CleanDiv": "floordiv",
    "PythonMod": "mod",
    "Mod": "mod",
    "StrictGreaterThan": "gt",
    "GreaterThan": "ge",
    "StrictLessThan": "lt",
    "LessThan": "le",
    "Equality": "eq",
    "IntTrueDiv": "truediv",
    "FloatTrueDiv": "truediv",
    "Max": "sym_max",
    "Min": "sym_min",
    "ToFloat": "sym_float",
    "TruncToInt": "sym_int",
    "TruncToFloat": "trunc",
    "CeilToInt": "ceil",
    "RoundToInt": "round",
    "Not": "sym_not",
}


class Symbols:
    """Creates the nodes that compute symbolic sizes in one graph."""

    def __init__(self, graph: torch.fx.Graph, describe: Callable[[], dict[str, Any]]) -> None:
        """Initialize without symbols.

        Args:
            graph: nodes are added at its insertion point
            describe: returns the metadata of a new node
        """
        self._graph = graph
        self._describe = describe
        self._created: dict[Any, Any] = {}
        self._homes: dict[Any, tuple[Any, int | None, Any]] = {}

    def learn(self, placeholder: torch.fx.Node) -> None:
        """Record the symbols in the sizes of an input, or of a symbolic scalar."""
        value = placeholder.meta["val"]
        if isinstance(value, SYMBOLIC):
            self._homes.setdefault(expression_of(value), (placeholder, None, value))
        elif isinstance(value, torch.Tensor):
            for dimension, size in enumerate(value.shape):
                if isinstance(size, torch.SymInt):
                    self._homes.setdefault(expression_of(size), (placeholder, dimension, size))

    def node(self, size: Any) -> Any:  # noqa: ANN401 - an int where it is static
        """Return the node of a symbolic size.

        Raises: UnsupportedError if it depends on data or on a formula without an operator
        """
        return self._of(of_integers(size.node.expr), size.node.shape_env)

    def _of(self, expression: Any, shape_env: Any) -> Any:  # noqa: ANN401
        if expression.is_Integer:
            return int(expression)
        if type(expression).__name__ == "ToFloat" and _is_condition(expression.args[0]):
            # torch finds no range for a condition as a float
            expression = _sympy.Piecewise((1.0, expression.args[0]), (0.0, True))
        if expression.is_number or (expression.is_Boolean and not expression.args):
            return bool(expression) if expression.is_Boolean else float(expression)
        if expression not in self._created:
            self._created[expression] = self._make(expression, shape_env)
        return self._created[expression]

    def _make(self, expression: Any, shape_env: Any) -> Any:  # noqa: ANN401
        home = self._homes.get(expression)
        if home is not None:
            placeholder, dimension, value = home
            if dimension is None:
                return placeholder
            return self._size_of(placeholder, dimension, value)
        if expression.is_Symbol:
            return self._solved(expression, shape_env)
        if _is_power(expression):
            return self._product(expression, shape_env)
        kind = type(expression).__name__
        if kind == "Piecewise":
            return self._chosen(expression.args, expression, shape_env)
        if kind in ("And", "Or"):
            return self._logic(expression.args, expression, shape_env)
        if kind == "Unequality":
            equal = self._of(expression.negated, shape_env)
            return self._call(_NOT, (equal,), _symbolic(expression, shape_env))
        make = _BY_NAME.get(_OF_FORMULAS.get(kind, ""))
        if make is None:
            raise UnsupportedError(f"the size {expression} has no operator in the runtime")
        parts = [self._of(part, shape_env) for part in expression.args]
        if len(parts) == 1:
            return self._call(make, (parts[0],), _symbolic(expression, shape_env))
        return self._joined(make, parts, expression, shape_env)

    def _chosen(self, cases: Any, expression: Any, shape_env: Any) -> Any:  # noqa: ANN401
        """Return the value of the first case whose condition holds; the last one always does."""
        value, condition = cases[0].args
        if condition.is_Boolean and not condition.args:
            return self._of(value, shape_env)
        rest = self._chosen(cases[1:], expression, shape_env)
        args = (self._of(condition, shape_env), self._of(value, shape_env), rest)
        shown = expression.func(*cases) if len(cases) < len(expression.args) else expression
        return self._call(_IF, args, _symbolic(shown, shape_env))

    def _logic(self, parts: Any, expression: Any, shape_env: Any) -> Any:  # noqa: ANN401
        both = type(expression).__name__ == "And"
        first = self._of(parts[0], shape_env)
        if len(parts) == 1:
            return first
        rest = self._logic(parts[1:], expression, shape_env)
        args = (first, rest, False) if both else (first, True, rest)
        return self._call(_IF, args, _symbolic(expression.func(*parts), shape_env))

    def _size_of(self, home: torch.fx.Node, dimension: int, value: Any) -> Any:  # noqa: ANN401
        read = torch.ops.aten.sym_size.int, (home, dimension), value
        if home.op != "placeholder":
            return self._call(*read)
        # Sizes of inputs are read at the beginning; reading one later would extend its lifetime.
        nodes = iter(self._graph.nodes)
        first = next((node for node in nodes if node.op != "placeholder"), None)
        if first is None:
            return self._call(*read)
        with self._graph.inserting_before(first):
            return self._call(*read)

    def _joined(self, make: Any, parts: list[Any], expression: Any, shape_env: Any) -> Any:  # noqa: ANN401
        result = parts[0]
        for count, part in enumerate(parts[1:], 2):
            shown = expression.func(*expression.args[:count])
            result = self._call(make, (result, part), _symbolic(shown, shape_env))
        return result

    def _product(self, power: Any, shape_env: Any) -> Any:  # noqa: ANN401
        base, exponent = power.args
        factor = result = self._of(base, shape_env)
        for count in range(2, int(exponent) + 1):
            shown = _symbolic(base**count, shape_env)
            result = self._call(operator.mul, (result, factor), shown)
        return result

    def _solved(self, symbol: Any, shape_env: Any) -> Any:  # noqa: ANN401
        """Return a symbol that is found only in a multiple and a sum, as in a size 2*s0 + 1."""
        for known in self._homes:
            factor = known.coeff(symbol)
            offset = known - factor * symbol
            if not (factor.is_Integer and factor and offset.is_Integer):
                continue
            found = self._of(known, shape_env)
            if offset:
                multiple = _symbolic(known - offset, shape_env)
                found = self._call(operator.add, (found, -int(offset)), multiple)
            if factor == 1:
                return found
            return self._call(floordiv, (found, int(factor)), _symbolic(symbol, shape_env))
        raise UnsupportedError(f"the size {symbol} depends on data, not on the size of an input")

    def _call(self, target: Any, args: tuple[Any, ...], value: Any) -> torch.fx.Node:  # noqa: ANN401
        node = self._graph.create_node("call_function", target, args)
        node.meta = {**self._describe(), "val": value}
        return node


def _is_power(expression: Any) -> bool:  # noqa: ANN401
    """Return whether an expression is a small integer power."""
    if type(expression).__name__ not in ("Pow", "PowByNatural"):
        return False
    base, exponent = expression.args
    return bool(base.is_integer) and bool(exponent.is_Integer) and 2 <= int(exponent) <= 8


def _is_condition(expression: Any) -> bool:  # noqa: ANN401
    return bool(expression.is_Relational or expression.is_Boolean)


def _symbolic(expression: Any, shape_env: Any) -> Any:  # noqa: ANN401
    if _is_condition(expression):
        return shape_env.create_symboolnode(expression)
    make = shape_env.create_symintnode if expression.is_integer else shape_env.create_symfloatnode
    return make(expression, hint=None)
