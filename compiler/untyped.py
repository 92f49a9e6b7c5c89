"""The untyped or private names of torch that the compiler uses."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
import torch._prims_common as prims
import torch.fx.passes.infra.pass_base as pass_base
import torch.utils._python_dispatch as dispatch
import torch.utils._sympy.functions as formulas
import torch.utils._sympy.value_ranges as value_ranges
from torch.export import ExportedProgram

_torch: Any = torch
aten: Any = torch.ops.aten
check: Callable[[Any], None] = _torch._check
native: Any = _torch._C
OpOverload: type[Any] = _torch._ops.OpOverload
OpOverloadPacket: type[Any] = _torch._ops.OpOverloadPacket
HigherOrderOperator: type[Any] = _torch._ops.HigherOrderOperator
SYMBOLIC: tuple[type[Any], ...] = (torch.SymInt, torch.SymFloat, torch.SymBool)
DispatchMode: type[Any] = cast("Any", dispatch).TorchDispatchMode
PassResult: Any = cast("Any", pass_base).PassResult
PromotionKind: Any = cast("Any", prims).ELEMENTWISE_TYPE_PROMOTION_KIND
elementwise_dtypes: Callable[..., tuple[torch.dtype, torch.dtype]] = cast(
    "Any", prims
).elementwise_dtypes
_operator: Any = operator
_math: Any = math
_builtins: Any = builtins
floordiv: Callable[..., Any] = _operator.floordiv
NUMBER_OPERATORS: dict[Any, str] = {
    _operator.add: "add",
    _operator.sub: "sub",
    _operator.mul: "mul",
    _operator.floordiv: "floordiv",
    _operator.mod: "mod",
    _operator.truediv: "truediv",
    _operator.eq: "eq",
    _operator.gt: "gt",
    _operator.ge: "ge",
    _operator.lt: "lt",
    _operator.le: "le",
    _torch.sym_max: "sym_max",
    _torch.sym_min: "sym_min",
    _torch.sym_float: "sym_float",
    _torch.sym_int: "sym_int",
    _torch.sym_ite: "sym_ite",
    _torch.sym_not: "sym_not",
    _builtins.round: "round",
    _operator.neg: "neg",
    _math.ceil: "ceil",
    _math.trunc: "trunc",
}
"""Operators on scalars, and their names in the runtime."""
_sympy: Any = cast("Any", formulas).sympy
_DIVISIONS: tuple[Any, ...] = (cast("Any", formulas).FloorDiv,)  # the base of CleanDiv
_bound: Callable[..., Any] = cast("Any", value_ranges).bound_sympy


def expression_of(size: Any) -> Any:  # noqa: ANN401
    """Return the formula of a symbolic size or condition."""
    return size.node.expr


def ranges_of(program: ExportedProgram) -> dict[Any, Any]:
    """Return the range of each symbol of a program."""
    return dict(cast("Any", program).range_constraints)


def exactly(value: int) -> Any:  # noqa: ANN401
    """Return the range of a constant."""
    return cast("Any", value_ranges).ValueRanges(value, value)


def largest(expression: Any, ranges: Mapping[Any, Any]) -> int | None:  # noqa: ANN401
    """Return the largest value of a formula, None if unbounded.

    A divisor of sizes is not 0 wherever the division is computed, so neither is any symbol in
    a product that divides.
    """
    formula, known = simplified(expression), dict(ranges)
    divisors: set[Any] = set()
    for division in formula.atoms(*_DIVISIONS):
        divisors |= {factor for factor in division.args[1].as_ordered_factors() if factor in known}
    for symbol in divisors:
        low, high = known[symbol].lower, known[symbol].upper
        if low < 1 <= high:
            known[symbol] = cast("Any", value_ranges).ValueRanges(1, high)
    most = _bound(formula, known).upper
    return int(most) if most.is_Integer else None


def of_integers(expression: Any) -> Any:  # noqa: ANN401
    """Return a formula simplified as one of integers, as the symbols of sizes are.

    Those that torch reads from a file are not declared so, and even ``s0 // 1`` stays as it is.
    """
    loose = [one for one in expression.free_symbols if one.name[0] in "su" and not one.is_integer]
    if not loose:
        return expression
    typed = {one: _sympy.Dummy(one.name, integer=True) for one in loose}
    found = expression.xreplace(typed)
    return found.xreplace({value: key for key, value in typed.items()})


def simplified(expression: Any) -> Any:  # noqa: ANN401
    """Return a formula of integers with exact divisions simplified."""
    if expression.is_Atom:
        return expression
    return of_integers(expression).replace(_is_division, _divided)


def _is_division(part: Any) -> bool:  # noqa: ANN401
    return isinstance(part, _DIVISIONS)


def _divided(division: Any) -> Any:  # noqa: ANN401
    try:
        ratio = _sympy.cancel(division.args[0] / division.args[1])
    except _sympy.PolynomialError:  # of a formula with cases
        return division
    return ratio if ratio.as_numer_denom()[1] == 1 else division
