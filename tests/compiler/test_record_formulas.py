"""Sizes in records are formulas that every reader of records takes."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy import functions

from compiler.record.arguments import size

FloorDiv: Any = functions.FloorDiv  # its base has types of its own
LOOSE, WHOLE = sympy.Symbol("s27"), sympy.Symbol("s3", integer=True, positive=True)
"""As torch reads a symbol from a record, and as an export makes it."""


@pytest.mark.parametrize("symbol", [LOOSE, WHOLE], ids=["read", "exported"])
@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda s: s, lambda s: s),
        (lambda s: FloorDiv(s, 1), lambda s: s),  # read again it is the symbol, not a formula
        (lambda s: FloorDiv(4 * FloorDiv(s, 1), s), lambda _: sympy.Integer(4)),
        (lambda s: 16 * sympy.Max(1, FloorDiv(s, 1)), lambda s: 16 * sympy.Max(1, s)),
        (lambda s: FloorDiv(s + 1, 2), lambda s: FloorDiv(s + 1, 2)),
    ],
    ids=["symbol", "by_one", "by_itself", "within", "rounded"],
)
def test_a_size_is_written_simplified(make: Any, wanted: Any, symbol: sympy.Symbol) -> None:
    shapes = ShapeEnv()
    shapes.add_backed_var_to_val(symbol, 6)
    formula = make(symbol)
    written = size(shapes.create_symintnode(formula, hint=int(formula.subs(symbol, 6))))
    found = written["as_expr"]["expr_str"] if "as_expr" in written else written["as_int"]
    assert str(found).replace(" ", "") == str(wanted(symbol)).replace(" ", "")
