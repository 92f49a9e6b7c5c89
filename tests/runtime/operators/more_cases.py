"""Cases of operators that move elements, make tensors, quantize, or compute with sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from tests.runtime.operators.cases import Case, Cases
from tests.runtime.operators.inputs import Maker


def _one(make: Callable[[Maker], list[Any]]) -> Cases:
    return lambda x: [make(x)]


def _same(*shape: int, more: tuple[Any, ...] = ()) -> Cases:
    """A tensor that becomes one of the same shape and another element type or the same."""
    return lambda x: [Case([x(*shape), *more], ((x.dtype, shape),))]


def _casts(*more: Any) -> Cases:
    def cases(x: Maker) -> Iterator[Case]:
        for dtype in (x.dtype, torch.float32, torch.int64, torch.bool):
            yield Case([x(2, 3, low=0), *more], ((dtype, (2, 3)),))

    return cases


def _sized(value: Any, *more: Any) -> Cases:
    return lambda x: [
        Case([[2, 3], *value, *more], ((x.dtype, (2, 3)),)),
        Case([[0, 3], *value, *more], ((x.dtype, (0, 3)),)),
    ]


def _put(x: Maker) -> list[list[Any]]:
    rows = torch.tensor([0, 2])
    return [
        [x(4, 3), [rows], x(2, 3), False],
        [x(4, 3), [rows, torch.tensor([1, 1])], x(2), True],
        [x(4, 3), [None, torch.tensor([1])], x(4, 1), False],
    ]


def _numbers(*lists: list[Any]) -> Cases:
    """Arguments of a prim, which do not depend on an element type."""
    return lambda x: [Case(entry, ()) for entry in lists] if x.dtype is torch.float32 else []


_PAIRS = ([7, 2], [-7, 2], [7.5, 2], [2, 2], [7, -2])
_ONES = ([2.5], [-2.5], [3.5], [-0.4], [7])
_PRIM = "executorch_prim::"
PRIMS: dict[str, Cases] = {
    **{
        f"{_PRIM}{name}.Scalar": _numbers(*_PAIRS)
        for name in ("add", "sub", "mul", "eq", "ge", "gt", "le", "lt", "sym_max", "sym_min")
    },
    **{
        f"{_PRIM}{name}": _numbers([7, 2], [-7, 2], [7, -2]) for name in ("floordiv.int", "mod.int")
    },
    **{
        f"{_PRIM}{name}.Scalar": _numbers([7, 2], [-7, 2], [7, -2])
        for name in ("floordiv", "mod", "truediv")
    },
    **{
        f"{_PRIM}{name}.Scalar": _numbers(*_ONES)
        for name in ("ceil", "round", "trunc", "neg", "sym_float", "sym_int")
    },
    f"{_PRIM}sym_not.Scalar": _numbers([True], [False]),
    f"{_PRIM}sym_ite.Scalar": _numbers([True, 1, 2], [False, 1, 2]),
    "aten::_local_scalar_dense": lambda x: [Case([x(1)], ())],
    "aten::sym_numel": lambda x: [Case([x(2, 3)], ())],
    "aten::sym_size.int": lambda x: [Case([x(2, 3), 1], ())],
}
_INT8 = [-128, 127, torch.int8]
MORE: dict[str, Cases] = {
    **PRIMS,
    "et_copy::_d2h_copy.out": lambda x: [Case([x(2, 3)], ((x.dtype, (2, 3)),))],
    "et_copy::_h2d_copy.out": lambda x: [Case([x(2, 3)], ((x.dtype, (2, 3)),))],
    "aten::cat.out": lambda x: [
        [[x(2, 3), x(1, 3)], 0],
        [[x(2, 3), x(2, 1)], -1],
        [[x(2, 3), x(0)], 0],
    ],
    "aten::stack.out": lambda x: [[[x(2, 3), x(2, 3)], 0], [[x(2), x(2)], -1]],
    "aten::flip.out": _one(lambda x: [x(2, 3), [0, 1]]),
    "aten::gather.out": _one(lambda x: [x(3, 4), 1, x.index(3, 2, below=4), False]),
    "aten::index.Tensor_out": lambda x: [
        [x(4, 3), [x.index(2, below=4)]],
        [x(4, 3), [None, x.index(2, below=3)]],
        [x(4, 3), [torch.tensor([-1, 2]), torch.tensor([0, -3])]],
        [x(4, 3), [torch.tensor([True, False, True, False])]],
    ],
    "aten::index_put.out": _put,
    "aten::index_put_": lambda x: [Case(entry, ()) for entry in _put(x)],
    "aten::index_select.out": _one(lambda x: [x(4, 3), 0, x.index(5, below=4)]),
    "aten::masked_fill.Scalar_out": _one(lambda x: [x(3, 4), x.flags(4), 1]),
    "aten::masked_scatter.out": _one(lambda x: [x(3, 4), x.flags(3, 4), x(12)]),
    "aten::masked_select.out": _one(lambda x: [x(3, 4), x.flags(3, 4)]),
    "aten::nonzero.out": _one(lambda x: [x(3, 4, low=0, high=2)]),
    "aten::repeat_interleave.Tensor_out": _one(lambda x: [torch.tensor([1, 0, 3]), None]),
    "aten::roll.out": lambda x: [[x(3, 4), [1, -2], [0, 1]], [x(3, 4), [5], []]],
    "aten::scatter.src_out": _one(lambda x: [x(3, 4), 1, x.index(3, 1, below=4), x(3, 2)]),
    "aten::scatter.value_out": _one(lambda x: [x(3, 4), 0, x.index(2, 4, below=3), 1]),
    "aten::scatter_add.out": _one(lambda x: [x(3, 4), 1, x.index(3, 5, below=4), x(3, 5)]),
    "aten::select_scatter.out": _one(lambda x: [x(3, 4), x(3), 1, 2]),
    "aten::slice_scatter.out": _one(lambda x: [x(3, 6), x(3, 2), 1, 1, 5, 2]),
    "aten::tril.out": lambda x: [[x(3, 4), 0], [x(2, 3, 3), -1]],
    "aten::_conj_physical.out": _one(lambda x: [torch.complex(x(3), x(3))]),
    # copies of views
    "aten::as_strided_copy.out": _one(lambda x: [x(3, 4), [2, 2], [1, 4], 1]),
    "aten::diagonal_copy.out": _one(lambda x: [x(3, 4, 2), 1, 0, 1]),
    "aten::expand_copy.out": lambda x: [[x(3, 1), [2, 3, 4], False], [x(1), [-1], False]],
    "aten::narrow_copy.out": _one(lambda x: [x(3, 4), 1, 1, 2]),
    "aten::permute_copy.out": _one(lambda x: [x(2, 3, 4), [2, 0, 1]]),
    "aten::repeat.out": lambda x: [Case([x(2, 3), [2, 1, 2]], ((x.dtype, (2, 2, 6)),))],
    "aten::select_copy.int_out": lambda x: [[x(3, 4), 1, -1], [x(3), 0, 1]],
    "aten::slice_copy.Tensor_out": lambda x: [[x(3, 6), 1, 1, 5, 2], [x(3, 6), 0, None, None, 1]],
    "aten::split_copy.Tensor_out": _one(lambda x: [x(5, 2), 2, 0]),
    "aten::split_with_sizes_copy.out": _one(lambda x: [x(5, 2), [1, 4], 0]),
    "aten::squeeze_copy.dim_out": lambda x: [[x(2, 1, 3), 1], [x(2, 1), 0]],
    "aten::squeeze_copy.dims_out": _one(lambda x: [x(1, 2, 1), [0, 2]]),
    "aten::t_copy.out": lambda x: [[x(2, 3)], [x(3)]],
    "aten::transpose_copy.int_out": _one(lambda x: [x(2, 3, 4), 0, -1]),
    "aten::unbind_copy.int_out": _one(lambda x: [x(2, 3), 1]),
    "aten::unfold_copy.out": _one(lambda x: [x(2, 6), 1, 3, 2]),
    "aten::unsqueeze_copy.out": _one(lambda x: [x(2, 3), 1]),
    "aten::view_as_real_copy.out": _one(lambda x: [torch.complex(x(3), x(3))]),
    "aten::view_copy.out": lambda x: [[x(2, 6), [3, -1]], [x(0, 3), [3, 0]]],
    # tensors made, and plain copies
    "aten::_to_copy.out": _casts(False, None),
    "aten::clone.out": _same(2, 3, more=(None,)),
    "aten::copy.out": lambda x: [Case([x(2, 3), x(3), False], ((x.dtype, (2, 3)),))],
    "aten::copy_": lambda x: [
        Case([x(2, 3), x(3), False], ()),
        Case([x(2), x(2).float(), False], ()),
    ],
    "aten::arange.out": lambda x: [Case([5], ((x.dtype, (5,)),))],
    "aten::arange.start_out": lambda x: [Case([1, 8, 2], ((x.dtype, (4,)),))],
    "aten::empty.out": lambda x: [Case([[0, 3], None], ((x.dtype, (0, 3)),))],
    "aten::fill.Scalar_out": _same(2, 3, more=(1,)),
    "aten::fill.Tensor_out": lambda x: [Case([x(2, 3), x()], ((x.dtype, (2, 3)),))],
    "aten::full.out": lambda x: [*_sized([2])(x), *_sized([1.5])(x)],
    "aten::full_like.out": _same(2, 3, more=(1, None)),
    "aten::ones.out": _sized([]),
    "aten::zeros.out": _sized([]),
    "aten::scalar_tensor.out": lambda x: [Case([3], ((x.dtype, ()),))],
    "dim_order_ops::_clone_dim_order.out": _same(2, 3, more=(False, [0, 1])),
    "dim_order_ops::_empty_dim_order.out": lambda x: [Case([[0, 3], [0, 1]], ((x.dtype, (0, 3)),))],
    "dim_order_ops::_to_dim_order_copy.out": _casts(False, [0, 1]),
    # quantized
    "quantized_decomposed::add.out": _one(
        lambda x: [x(2, 3), 0.5, 1, 0, 10, x(2, 3), 0.25, 0, 0, 10, 0.5, 2, 0, 12]
    ),
    "quantized_decomposed::choose_qparams.Tensor_out": lambda x: [
        Case([x(3, 4), *bounds, 1e-6, torch.int8], ((torch.float64, (1,)), (torch.int64, (1,))))
        for bounds in ((-128, 127), (0, 255))
    ],
    "quantized_decomposed::choose_qparams_per_token_asymmetric.out": lambda x: [
        Case([x(3, 4), torch.int8], ((torch.float64, (3, 1)), (torch.int64, (3, 1))))
    ],
    "quantized_decomposed::quantize_per_tensor.out": lambda x: [
        [x(3, 4), 0.3, 2, *_INT8],
        [x(3, 4), 0.5, 10, 0, 255, torch.uint8],
    ],
    "quantized_decomposed::quantize_per_tensor.Tensor_out": _one(
        lambda x: [x(3, 4), torch.tensor([0.3], dtype=torch.float64), torch.tensor([2]), *_INT8]
    ),
    "quantized_decomposed::quantize_per_channel.out": _one(
        lambda x: [
            x(3, 4),
            torch.tensor([0.3, 0.2, 0.7], dtype=torch.float64),
            torch.tensor([0, 2, -1]),
            0,
            *_INT8,
        ]
    ),
    "quantized_decomposed::quantize_per_token.out": _one(
        lambda x: [
            x(2, 4),
            torch.tensor([[0.3], [0.2]], dtype=torch.float64),
            torch.tensor([[0], [2]]),
            *_INT8,
        ]
    ),
    "quantized_decomposed::dequantize_per_tensor.out": _one(
        lambda x: [x(3, 4), 0.3, 2, -128, 127, x.dtype, None]
    ),
    "quantized_decomposed::dequantize_per_tensor.Tensor_out": _one(
        lambda x: [
            x(3, 4),
            torch.tensor([0.3], dtype=torch.float64),
            torch.tensor([2]),
            -128,
            127,
            x.dtype,
            None,
        ]
    ),
    "quantized_decomposed::dequantize_per_channel.out": _one(
        lambda x: [
            x(3, 4),
            torch.tensor([0.3, 0.2, 0.7], dtype=torch.float64),
            torch.tensor([0, 2, -1]),
            0,
            -128,
            127,
            x.dtype,
            None,
        ]
    ),
    "quantized_decomposed::dequantize_per_token.out": _one(
        lambda x: [
            x(2, 4),
            torch.tensor([[0.3], [0.2]], dtype=torch.float64),
            torch.tensor([[0], [2]]),
            -128,
            127,
            x.dtype,
            torch.float32,
        ]
    ),
    **{
        f"quantized_decomposed::embedding_{kind}.{overload}": _one(
            lambda x, overload=overload: [
                x(5, 4),
                torch.rand(5),
                torch.rand(5),
                -8,
                7,
                torch.tensor([[1, 4], [0, 2]]),
                *((torch.float32,) if overload == "dtype_out" else ()),
            ]
        )
        for kind in ("byte", "4bit", "2bit")
        for overload in ("out", "dtype_out")
    },
    "quantized_decomposed::mixed_mm.out": _one(
        lambda x: [torch.rand(2, 3), x(3, 4), torch.rand(3), None]
    ),
    "quantized_decomposed::mixed_linear.out": _one(
        lambda x: [torch.rand(2, 3), x(4, 3), torch.rand(4), None, None]
    ),
}
