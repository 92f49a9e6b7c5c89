"""Matmul and linear."""

from __future__ import annotations

from runtime.kernels.rule import Rule, result
from runtime.untyped import aten

TABLE: dict[str, Rule] = {
    "aten::addmm.out": result(aten.addmm.default),
    "aten::bmm.out": result(aten.bmm.default),
    "aten::linear.out": result(aten.linear.default),
    "aten::mm.out": result(aten.mm.default),
}
