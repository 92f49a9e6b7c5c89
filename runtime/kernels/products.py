"""Matrix products, distances and Fourier transforms."""

from __future__ import annotations

from runtime.kernels.rule import Rule, result
from runtime.untyped import aten

TABLE: dict[str, Rule] = {
    "aten::_fft_c2r.out": result(aten._fft_c2r.default),
    "aten::_fft_r2c.out": result(aten._fft_r2c.default),
    "aten::addmm.out": result(aten.addmm.default),
    "aten::bmm.out": result(aten.bmm.default),
    "aten::linear.out": result(aten.linear.default),
    "aten::mm.out": result(aten.mm.default),
}
