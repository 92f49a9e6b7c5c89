"""For each operator the argument lists it is tried with; tensors are made for each element type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from tests.runtime.one_op import Meta
from tests.runtime.operators.inputs import Maker


@dataclass(frozen=True)
class Case:
    """One call: its arguments, and its out arguments where they do not follow from torch."""

    arguments: list[Any]
    outs: tuple[Meta, ...] | None = None


Cases = Callable[[Maker], Iterable[list[Any] | Case]]


_USUAL = (torch.float32, torch.int64)


def _unary(x: Maker) -> Iterator[list[Any]]:
    yield [x(3, 5)]
    yield [x.edge()]
    if x.dtype in _USUAL:
        yield [x()]
        yield [x(0, 3)]


def _unary_and(*more: Any) -> Cases:
    return lambda x: [[*entry, *more] for entry in _unary(x)]


def _pairs(x: Maker) -> Iterator[list[Any]]:
    yield [x(3, 4), x(4)]
    yield [x.edge(), x.edge().flip(0).contiguous()]
    yield [x(2, 3), x(2, 3).float()]
    if x.dtype in _USUAL:
        yield [x(3, 4), x(3, 4)]
        yield [x(3, 1), x()]
        yield [x(0, 3), x(3)]


def _pairs_and(*more: Any) -> Cases:
    return lambda x: [[*entry, *more] for entry in _pairs(x)]


def _divisors(*more: Any) -> Cases:
    def cases(x: Maker) -> Iterator[list[Any]]:
        yield [x(3, 4), x.positive(3, 4), *more]
        yield [x(3, 4), x.positive(4), *more]
        yield [x(0, 3), x.positive(3), *more]
        if x.dtype.is_floating_point:
            yield [x.edge(), x.edge().flip(0).contiguous(), *more]

    return cases


def _scalars(*more: Any) -> Cases:
    def cases(x: Maker) -> Iterator[list[Any]]:
        for number in (2, 1.5):
            yield [x(3, 4), number, *more]
        yield [x.edge(), 2, *more]

    return cases


def _along(*more: Any) -> Cases:
    def cases(x: Maker) -> Iterator[list[Any]]:
        yield [x(2, 3, 4), 1, *more]
        yield [x(2, 3, 4), -1, *more]
        yield [x.edge(), 0, *more]

    return cases


def _over(*more: Any) -> Cases:
    def cases(x: Maker) -> Iterator[list[Any]]:
        for keep in (False, True):
            yield [x(2, 3, 4), [1], keep, *more]
            yield [x(2, 3, 4), [0, 2], keep, *more]
        yield [x.edge(), [0], False, *more]

    return cases


def _padded(rank: int, pads: int) -> Cases:
    return lambda x: [[x(1, 2, *(5,) * rank), [1, 2] * pads], [x(2, *(4,) * rank), [1] * 2 * pads]]


def _one(make: Callable[[Maker], list[Any]]) -> Cases:
    return lambda x: [make(x)]


def _filled(*sizes: int, arguments: Callable[[Maker], list[Any]]) -> Cases:
    return lambda x: [Case(arguments(x), ((x.dtype, sizes),))]


def _names(text: str) -> list[str]:
    return text.split()


UNARY = _names(
    """abs acos acosh asin asinh atan atanh bitwise_not ceil cos cosh erf exp expm1 floor isinf
isnan log log10 log1p log2 logical_not neg reciprocal relu round rsqrt sigmoid sign sin sinh sqrt
tan tanh trunc alias_copy detach_copy lift_fresh_copy"""
)
BINARY = _names(
    """atan2.out logical_and.out logical_or.out logical_xor.out maximum.out minimum.out mul.out
bitwise_and.Tensor_out bitwise_or.Tensor_out bitwise_xor.Tensor_out eq.Tensor_out ge.Tensor_out
gt.Tensor_out le.Tensor_out lt.Tensor_out ne.Tensor_out"""
)
SCALAR = _names(
    """bitwise_and.Scalar_out bitwise_or.Scalar_out bitwise_xor.Scalar_out div.Scalar_out
eq.Scalar_out ge.Scalar_out gt.Scalar_out le.Scalar_out lt.Scalar_out ne.Scalar_out mul.Scalar_out
fmod.Scalar_out remainder.Scalar_out pow.Tensor_Scalar_out"""
)

CASES: dict[str, Cases] = {
    **{f"aten::{name}.out": _unary for name in UNARY},
    **{f"aten::{name}": _pairs for name in BINARY},
    **{f"aten::{name}": _scalars() for name in SCALAR},
    "aten::add.out": lambda x: [*_pairs_and(1)(x), [x(2, 3), x(3), 2]],
    "aten::sub.out": lambda x: [*_pairs_and(1)(x), [x(2, 3), x(3), 2]],
    "aten::add.Scalar_out": _scalars(1),
    "aten::sub.Scalar_out": _scalars(1),
    "aten::rsub.Scalar_out": _scalars(1),
    "aten::div.out": _divisors(),
    "aten::div.out_mode": lambda x: [*_divisors("floor")(x), *_divisors("trunc")(x)],
    "aten::div.Scalar_mode_out": lambda x: [*_scalars("floor")(x), *_scalars("trunc")(x)],
    "aten::floor_divide.out": _divisors(),
    "aten::fmod.Tensor_out": _divisors(),
    "aten::remainder.Tensor_out": _divisors(),
    "aten::pow.Tensor_Tensor_out": _divisors(),
    "aten::pow.Scalar_out": lambda x: [[2, x.positive(3)], [1.5, x.positive(2, 2)]],
    "aten::bitwise_left_shift.Tensor_out": _one(lambda x: [x.positive(3), x.positive(3)]),
    "aten::bitwise_right_shift.Tensor_out": _one(lambda x: [x.positive(3), x.positive(3)]),
    "aten::bitwise_left_shift.Tensor_Scalar_out": _one(lambda x: [x.positive(3), 2]),
    "aten::bitwise_right_shift.Tensor_Scalar_out": _one(lambda x: [x.positive(3), 2]),
    "aten::clamp.out": lambda x: [[x(3, 4), -1, 3], [x.edge(), None, 2], [x(3), 0.5, None]],
    "aten::clamp.Tensor_out": lambda x: [[x(3, 4), x(4), None], [x(3, 4), None, x()]],
    "aten::elu.out": _unary_and(1.0, 1, 1),
    "aten::gelu.out": lambda x: [*_unary_and("none")(x), *_unary_and("tanh")(x)],
    "aten::glu.out": lambda x: [[x(2, 4), -1], [x(4, 3), 0]],
    "aten::hardtanh.out": _unary_and(-1.0, 1.0),
    "aten::leaky_relu.out": _unary_and(0.1),
    "aten::logit.out": lambda x: [[torch.rand(3).to(x.dtype), None], [x(3), 1e-3]],
    "aten::where.self_out": lambda x: [
        [x.flags(3, 4), x(3, 4), x(4)],
        [x.flags(4), x(3, 4), x().float()],
    ],
    "aten::native_dropout.out": _one(lambda x: [x(3, 4), 0.5, False]),
    # reductions
    "aten::amax.out": _over(),
    "aten::amin.out": _over(),
    "aten::mean.out": lambda x: [*_over(None)(x), [x(2, 3), None, False, None]],
    "aten::mean.dtype_out": lambda x: [[x(2, 3), None], [x.edge(), None]],
    "aten::sum.IntList_out": lambda x: [*_over(None)(x), [x(2, 0), [1], False, None]],
    "aten::any.dims_out": lambda x: [[x(2, 3, 4), [0, 2], False], [x.edge(), None, False]],
    "aten::any.out": _along(False),
    "aten::any.all_out": _unary,
    "aten::argmax.out": lambda x: [*_along(True)(x), [x(2, 3), None, False]],
    "aten::argmin.out": lambda x: [*_along(True)(x), [x(2, 3), None, False]],
    "aten::cumsum.out": _along(None),
    "aten::max.dim_max": _along(False),
    "aten::min.dim_min": _along(False),
    "aten::max.unary_out": lambda x: [[x(3, 4)], [x.edge()]],
    "aten::min.unary_out": lambda x: [[x(3, 4)], [x.edge()]],
    "aten::prod.out": lambda x: [[x(2, 3), None], [x(0), None]],
    "aten::prod.int_out": lambda x: [[x(2, 3), 1, False, None], [x(2, 3), 0, True, None]],
    "aten::topk.values": lambda x: [
        [torch.randperm(12).reshape(3, 4).to(x.dtype), 2, -1, True, True]
    ],
    "aten::var.out": lambda x: [[x(2, 3, 4), [1], True, False], [x(2, 3), [0, 1], False, True]],
    "aten::var.correction_out": lambda x: [[x(2, 3, 4), [1], 1, False], [x(2, 3), None, 0, True]],
    "aten::var_mean.correction_out": lambda x: [[x(2, 3, 4), [1], 1, False]],
    "aten::_softmax.out": _along(False),
    "aten::_log_softmax.out": _along(False),
    # products
    "aten::mm.out": lambda x: [[x(3, 4), x(4, 2)], [x(0, 4), x(4, 2)], [x(2, 0), x(0, 3)]],
    "aten::bmm.out": _one(lambda x: [x(2, 3, 4), x(2, 4, 2)]),
    "aten::addmm.out": lambda x: [
        [x(2), x(3, 4), x(4, 2), 1, 1],
        [x(3, 2), x(3, 4), x(4, 2), 2, 3],
    ],
    "aten::linear.out": lambda x: [[x(3, 4), x(2, 4), None], [x(2, 3, 4), x(2, 4), x(2)]],
    "aten::_cdist_forward.out": lambda x: [
        [x(2, 3), x(4, 3), norm, None] for norm in (0.0, 1.0, 2.0, 3.0, float("inf"))
    ],
    "aten::_pdist_forward.out": lambda x: [[x(4, 3), 2.0], [x(4, 3), 1.0]],
    "aten::_fft_r2c.out": lambda x: [[x(2, 8), [1], 0, True], [x(2, 8), [1], 2, False]],
    "aten::_fft_c2r.out": _one(lambda x: [torch.fft.rfft(x(2, 8)), [1], 2, 8]),
    # layers
    "aten::convolution.out": lambda x: [
        [x(1, 2, 6), x(3, 2, 3), x(3), [1], [1], [1], False, [0], 1],
        [x(2, 4, 5, 6), x(6, 2, 3, 2), x(6), [2, 1], [1, 0], [1, 2], False, [0, 0], 2],
        [x(1, 3, 4, 4), x(3, 2, 3, 3), None, [2, 2], [1, 1], [1, 1], True, [1, 1], 1],
    ],
    "aten::convolution_backward.out": _one(
        lambda x: [
            x(1, 3, 4, 4),
            x(1, 2, 4, 4),
            x(3, 2, 3, 3),
            [3],
            [1, 1],
            [1, 1],
            [1, 1],
            False,
            [0, 0],
            1,
            [True, True, True],
        ]
    ),
    "aten::avg_pool2d.out": lambda x: [
        [x(1, 2, 5, 6), [2, 3], [2, 1], [1, 1], False, True, None],
        [x(2, 5, 5), [2, 2], [2, 2], [0, 0], True, False, 3],
    ],
    "aten::_adaptive_avg_pool2d.out": lambda x: [[x(1, 2, 5, 6), [2, 3]], [x(1, 2, 4, 4), [1, 1]]],
    "aten::max_pool2d_with_indices.out": lambda x: [
        [x(1, 2, 5, 6), [2, 3], [2, 1], [1, 1], [1, 1], False],
        [x(2, 5, 5), [2, 2], [2, 2], [0, 0], [1, 1], True],
    ],
    "aten::max_pool2d_with_indices_backward.grad_input": _one(
        lambda x: [
            x(1, 1, 2, 2),
            x(1, 1, 4, 4),
            [2, 2],
            [2, 2],
            [0, 0],
            [1, 1],
            False,
            torch.tensor([[[[0, 2], [9, 15]]]]),
        ]
    ),
    "aten::native_layer_norm.out": lambda x: [
        [x(2, 3, 4), [4], x(4), x(4), 1e-5],
        [x(2, 3, 4), [3, 4], None, None, 1e-5],
    ],
    "aten::native_group_norm.out": _one(lambda x: [x(2, 4, 3), x(4), x(4), 2, 4, 3, 2, 1e-5]),
    "aten::_native_batch_norm_legit_no_training.out": _one(
        lambda x: [x(2, 3, 4), x(3), x(3), x(3), x.positive(3), 0.1, 1e-5]
    ),
    "aten::_native_batch_norm_legit.out": _one(
        lambda x: [x(2, 3, 4), x(3), x(3), x(3), x.positive(3), False, 0.1, 1e-5]
    ),
    "aten::_native_batch_norm_legit.no_stats_out": _one(
        lambda x: [x(2, 3, 4), x(3), x(3), True, 0.1, 1e-5]
    ),
    "aten::embedding.out": _one(lambda x: [x(5, 3), x.index(2, 4, below=5), -1, False, False]),
    "aten::grid_sampler_2d.out": lambda x: [
        [x(1, 2, 4, 5), torch.rand(1, 3, 3, 2).mul(2.4).sub(1.2).to(x.dtype), mode, pad, corners]
        for mode, pad, corners in ((0, 0, False), (0, 1, True), (1, 2, False), (2, 0, False))
    ],
    "aten::pixel_shuffle.out": _one(lambda x: [x(1, 8, 2, 3), 2]),
    "aten::pixel_unshuffle.out": _one(lambda x: [x(1, 2, 4, 6), 2]),
    "aten::upsample_bilinear2d.vec_out": lambda x: [
        [x(1, 2, 3, 4), [5, 7], True, None],
        [x(1, 2, 3, 4), None, False, [2.0, 1.5]],
    ],
    "aten::upsample_nearest2d.vec_out": lambda x: [
        [x(1, 2, 3, 4), [5, 7], None],
        [x(1, 2, 3, 4), None, [2.0, 1.5]],
    ],
    "aten::_upsample_bilinear2d_aa.out": _one(lambda x: [x(1, 2, 6, 6), [3, 4], False, None, None]),
    "aten::constant_pad_nd.out": lambda x: [[x(2, 3), [1, 2], 3], [x(2, 3), [0, 1, 2, 0], 0.5]],
    **{
        f"aten::{kind}_pad{n}d.out": _padded(n, n)
        for kind in ("reflection", "replication")
        for n in (1, 2, 3)
    },
}


# The stock runtime ends its process for any other element type.
_FLOATS = (torch.float32, torch.float64)
_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32)
_BYTES = (torch.uint8, torch.int8)
ONLY: dict[str, tuple[torch.dtype, ...]] = {
    "aten::_conj_physical.out": _FLOATS,  # of complex numbers
    "aten::_fft_c2r.out": _FLOATS,
    "aten::_fft_r2c.out": _FLOATS,
    "aten::view_as_real_copy.out": _FLOATS,
    "aten::convolution_backward.out": (),
    "quantized_decomposed::add.out": _WHOLE,
    "quantized_decomposed::choose_qparams": (torch.float32,),
    "quantized_decomposed::dequantize": _WHOLE,
    "quantized_decomposed::embedding_2bit": (torch.uint8,),
    "quantized_decomposed::embedding_4bit": (torch.uint8,),
    "quantized_decomposed::embedding_byte": _BYTES,
    "quantized_decomposed::mixed": (torch.int8,),
    "quantized_decomposed::quantize": (torch.float32,),
}


def all_cases() -> dict[str, Cases]:
    """Return the cases of all operators."""
    from tests.runtime.operators.more_cases import MORE

    return {**CASES, **MORE}


def applies(name: str, dtype: torch.dtype) -> bool:
    """Return whether the stock runtime survives an operator on this element type."""
    return all(dtype in dtypes for start, dtypes in ONLY.items() if name.startswith(start))
