"""Where our results differ from the stock runtime's on purpose, and what is not compared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """A difference that is meant.

    Attributes:
        dtypes: names of the element types it shows for
        reason: why ours is kept
        varies: those of them for which it shows on some processors only; the page counts them in
    """

    dtypes: str
    reason: str
    varies: str = ""


_INTEGERS = "uint8 int8 int16 int32 int64"
_FLOATS = "float16 bfloat16 float32 float64"
_BOUNDS = Difference(
    "int32 int64", "stock goes through a float, where the largest integer has no place"
)
_WEIGHTS = Difference(
    _INTEGERS + " float16 bfloat16", "stock adds up in the element type, ours in float32"
)
_ZERO = Difference(_FLOATS, "division by zero keeps the sign that torch gives it")
_REMAINDER = Difference(
    "int8 int16 int32 int64", "stock takes C's remainder, torch the divisor's sign"
)
_PYTHON = Difference("float32", "negative numbers: stock divides as C does, eager as Python does")

DIFFERS: dict[str, Difference] = {
    "aten::_upsample_bilinear2d_aa.out": _WEIGHTS,
    "aten::ceil.out": _BOUNDS,
    "aten::div.Scalar_mode_out": _BOUNDS,
    "aten::div.out_mode": _ZERO,
    "aten::floor.out": _BOUNDS,
    "aten::floor_divide.out": _ZERO,
    "aten::fmod.Scalar_out": _BOUNDS,
    "aten::gelu.out": Difference(
        _FLOATS, "infinity: torch's kernel gives NaN for some layouts", "float16 bfloat16 float32"
    ),
    "aten::grid_sampler_2d.out": _WEIGHTS,
    "aten::pow.Tensor_Scalar_out": Difference("int32 int64", "the power of a bound overflows"),
    "aten::remainder.Scalar_out": _REMAINDER,
    "aten::remainder.Tensor_out": _REMAINDER,
    "aten::sign.out": Difference(_FLOATS, "the sign of NaN is 0 in torch, NaN in stock"),
    "aten::sum.IntList_out": Difference("int64", "stock adds up in a double"),
    "aten::trunc.out": _BOUNDS,
    "aten::upsample_bilinear2d.vec_out": _WEIGHTS,
    "executorch_prim::floordiv.int": _PYTHON,
    "executorch_prim::mod.Scalar": _PYTHON,
    "executorch_prim::mod.int": _PYTHON,
}

NOT_COMPARED: dict[str, str] = {
    "aten::convolution_backward.out": "the stock runtime ends its process",
    "aten::rand.out": "random",
    "aten::randn.out": "random",
    "executorch_prim::et_copy_index.tensor": "compared in the programs with maps and scans",
    "executorch_prim::et_view.default": "compared in the programs with dynamic shapes",
}
