"""For each kind of MPS nodes the calls it is tried with, beside what torch computes for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from tests.runtime.operators.inputs import Maker

Given = Sequence[torch.Tensor | None]


@dataclass(frozen=True)
class Call:
    """One node: its operands in the order of the schema, its other fields, its results.

    Attributes:
        given: operands, None for one that is left out; a list field takes all of `listed`
        expected: results, None for one that the runtime leaves empty
        facts: other fields
        listed: number of operands at the end of `given` that are one list
        indices: fields of index lists: places of operands, -1 for a dimension without
        bounds: of an activation that is part of the node
    """

    given: Given
    expected: Sequence[torch.Tensor | None]
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    listed: int = 0
    indices: tuple[int, ...] = ()
    bounds: tuple[float, float] | None = None


Calls = Callable[[Maker], Iterator[Call]]
FLOATS = (torch.float32, torch.float16)
INTS = (torch.int32, torch.int64, torch.uint8)
ALL = (*FLOATS, *INTS, torch.bool)
SHAPES: tuple[tuple[int, ...], ...] = ((3, 5), (), (0, 3), (1, 2, 4, 3))


def wide(value: torch.Tensor) -> torch.Tensor:
    """Return a value in the type that halves are computed in."""
    return value.float() if value.dtype is torch.float16 else value


def _unary(run: Callable[..., Any], *, positive: bool = False) -> Calls:
    def calls(x: Maker) -> Iterator[Call]:
        for shape in SHAPES:
            one = x.positive(*shape) if positive else x(*shape)
            yield Call([one], [run(wide(one))])
        if x.dtype.is_floating_point and not positive:
            edge = x.edge()
            yield Call([edge], [run(wide(edge))])

    return calls


def _binary(run: Callable[..., Any], *, positive: bool = False, **facts: Any) -> Calls:
    def calls(x: Maker) -> Iterator[Call]:
        for one, other in (((3, 4), (4,)), ((2, 3), (2, 3)), ((3, 1), ()), ((2, 1, 3), (4, 1))):
            a, b = x(*one), x.positive(*other) if positive else x(*other)
            yield Call([a, b], [run(wide(a), wide(b))], facts)

    return calls


def _scaled(sign: int) -> Calls:
    def calls(x: Maker) -> Iterator[Call]:
        for alpha in (1.0, 2.0, 0.5 if x.dtype.is_floating_point else 3.0):
            a, b = x(2, 3), x(3)
            times = alpha if x.dtype.is_floating_point else int(alpha)
            made = wide(a) + sign * times * wide(b)
            yield Call([a, b], [made], {"alpha": alpha})

    return calls


def _divided(x: Maker) -> Iterator[Call]:
    for mode in ("", "floor", "trunc"):
        a, b = x(4, 5), x.positive(5)
        for sign in (1, -1):
            other = b * sign if x.dtype is not torch.uint8 else b
            made = torch.div(wide(a), wide(other), rounding_mode=mode or None)
            yield Call([a, other], [made], {"rounding_mode": mode})


def _along(run: Callable[..., Any]) -> Calls:
    def calls(x: Maker) -> Iterator[Call]:
        for shape, dim in (((2, 5), 1), ((2, 3, 4), -2), ((4,), 0)):
            one = x(*shape)
            yield Call([one], [run(wide(one), dim)], {"dim": dim, "half_to_float": False})

    return calls


def _gelu(x: Maker) -> Iterator[Call]:
    for how in ("none", "tanh"):
        one = x(3, 5)
        yield Call([one], [F.gelu(wide(one), approximate=how)], {"approximate": how})


def _leaky(x: Maker) -> Iterator[Call]:
    one = x(3, 5)
    yield Call([one], [F.leaky_relu(wide(one), 0.25)], {"negative_slope": 0.25})


def _hard_tanh(x: Maker) -> Iterator[Call]:
    for low, high in ((-1.0, 1.0), (0.0, 6.0)):
        one = x(3, 5, low=-9, high=9)
        made = wide(one).clamp(low, high)
        yield Call([one], [made], {"min_value": low, "max_value": high})


def _clamp(x: Maker) -> Iterator[Call]:
    bounds = [(0.0, 3.0), (float("-inf"), 2.0), (1.0, float("inf"))]
    for low, high in bounds:
        one = x(4, 5)
        small = None if low == float("-inf") else low
        large = None if high == float("inf") else high
        if not x.dtype.is_floating_point:
            small, large = (None if at is None else int(at) for at in (small, large))
        made = torch.clamp(wide(one), small, large)
        yield Call([one], [made], bounds=(low, high))
    if x.dtype in (torch.int32, torch.int64):  # beyond the integers that float32 has
        one = torch.tensor([2**24 + 1, 2**30 + 7, -(2**24) - 3], dtype=x.dtype)
        yield Call([one], [one.clamp(min=0)], bounds=(0.0, float("inf")))


def _fused_bounds(x: Maker) -> Iterator[Call]:
    a, b = x(3, 4), x(3, 4)
    made = (wide(a) + wide(b)).clamp(0, 2)
    yield Call([a, b], [made], {"alpha": 1.0}, bounds=(0.0, 2.0))


def _mean(x: Maker) -> Iterator[Call]:
    for dims, keep in (((1,), False), ((-1, -2), True), ((0, 2), False)):
        one = x(2, 3, 4)
        facts = {"dims": dims, "num_dims": len(dims), "keep_dims": keep}
        yield Call([one], [wide(one).mean(dims, keepdim=keep)], facts)


def _matmul(x: Maker) -> Iterator[Call]:
    for one, other in (((3, 4), (4, 2)), ((2, 3, 4), (2, 4, 5)), ((2, 2, 3, 4), (4, 2))):
        a, b = x(*one), x(*other)
        yield Call([a, b], [wide(a) @ wide(b)])


def _addmm(x: Maker) -> Iterator[Call]:
    for beta, alpha in ((1.0, 1.0), (0.5, 2.0)):
        c, a, b = x(2), x(3, 4), x(4, 2)
        made = torch.addmm(wide(c), wide(a), wide(b), beta=beta, alpha=alpha)
        yield Call([c, a, b], [made], {"beta": beta, "alpha": alpha})


def _full(x: Maker) -> Iterator[Call]:
    value = 1.0 if x.dtype is torch.bool else 3.0
    made = torch.full((2, 3), value, dtype=x.dtype)
    yield Call([], [made], {"shape": (2, 3), "fill_value": value, "dtype": x.dtype})


def _full_like(x: Maker) -> Iterator[Call]:
    one = x(2, 3)
    made = torch.full_like(one, 1.0)
    yield Call([one], [made], {"shape": (2, 3), "fill_value": 1.0, "dtype": x.dtype})


def _arange(x: Maker) -> Iterator[Call]:
    for begin, end, step in ((0, 5, 1), (7, 1, -2)):
        made = torch.arange(begin, end, step, dtype=x.dtype)
        facts = {"start": float(begin), "end": float(end), "step": float(step)}
        yield Call([], [made], {**facts, "dtype": x.dtype})


def _where(x: Maker) -> Iterator[Call]:
    chosen = torch.tensor([[True], [False]])
    a, b = x(2, 3), x(3)
    yield Call([chosen, a, b], [torch.where(chosen, a, b)])


def _index_select(x: Maker) -> Iterator[Call]:
    for dtype in (torch.int32, torch.int64):
        for dim in (0, 1, -1):
            one, index = x(3, 4), torch.tensor([2, 0, 2], dtype=dtype)
            made = one.index_select(dim, index)
            yield Call([one, index], [made], {"dim": dim})


def _embedding(x: Maker) -> Iterator[Call]:
    plain = {"scale_grad_by_freq": False, "sparse": False}
    for padding in (-1, 2):
        table, index = x(5, 3), torch.tensor([[0, 2], [4, 1]])
        made = F.embedding(index, wide(table))
        if padding >= 0:  # the runtime gives zeros there
            made[index == padding] = 0
        yield Call([table, index], [made], {"padding_idx": padding, **plain})


def _index(x: Maker) -> Iterator[Call]:
    for axis in (0, 1, 2):
        one, index = x(3, 3, 3), torch.tensor([2, 0])
        made = one[(*[slice(None)] * axis, index)]
        yield Call([one, index], [made], indices=(*(-1,) * axis, 1))


def _index_put(x: Maker) -> Iterator[Call]:
    for axis in (0, 1):
        one, index = x(3, 4), torch.tensor([2, 0])
        values = x(2, 4) if axis == 0 else x(3, 2)
        made = one.clone()
        made[(*[slice(None)] * axis, index)] = values
        facts = {"values_shape": tuple(values.shape)}
        yield Call([one, index, values], [made], facts, indices=(*(-1,) * axis, 1))


def _scatter(x: Maker) -> Iterator[Call]:
    for dim in (0, 1, -1):
        one, source = x(3, 4), x(2, 3)
        index = torch.tensor([[0, 1, 2], [2, 0, 1]])
        yield Call([one, index, source], [one.scatter(dim, index, source)], {"dim": dim})


def _permute(x: Maker) -> Iterator[Call]:
    for order in ((0, 2, 1), (2, 0, 1)):
        one = x(2, 3, 4)
        yield Call([one], [one.permute(order)], {"perm": order, "num_dims": 3})


def _shaped(run: Callable[..., Any], *shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> Calls:
    def calls(x: Maker) -> Iterator[Call]:
        for before, after in shapes:
            one = x(*before)
            yield Call([one], [run(one, after)], {"shape": after, "num_dims": len(after)})

    return calls


def _cat(x: Maker) -> Iterator[Call]:
    for dim in (0, -1):
        parts = [x(2, 2), x(2, 2), x(2, 2)]
        yield Call(parts, [torch.cat(parts, dim)], {"dim": dim}, listed=3)
    parts = [x(1, 3), x(4, 3)]
    yield Call(parts, [torch.cat(parts)], {"dim": 0}, listed=2)


def _squeeze(x: Maker) -> Iterator[Call]:
    for dims in ((0,), (-1,), (0, 2)):
        one = x(1, 3, 1)
        yield Call([one], [one.squeeze(dims)], {"dims": dims})


def _unsqueeze(x: Maker) -> Iterator[Call]:
    for dim in (0, 1, -1):
        one = x(2, 3)
        yield Call([one], [one.unsqueeze(dim)], {"dim": dim})


def _select(x: Maker) -> Iterator[Call]:
    for dim, index in ((0, 1), (1, -1), (-1, 0)):
        one = x(2, 3)
        yield Call([one], [one.select(dim, index)], {"dim": dim, "index": index})


def _slice(x: Maker) -> Iterator[Call]:
    for dim, start, end, step in ((0, 1, 3, 1), (1, 0, 2**63 - 1, 2), (-1, -3, -1, 1)):
        one = x(4, 5)
        made = torch.ops.aten.slice.Tensor(one, dim, start, end, step)
        facts = {"dim": dim, "start": start, "end": end, "step": step}
        yield Call([one], [made], facts)


def _shuffle(x: Maker) -> Iterator[Call]:
    one = x(1, 8, 2, 3)
    yield Call([one], [F.pixel_shuffle(one, 2)], {"upscale_factor": 2})


def _split(x: Maker) -> Iterator[Call]:
    for dim, sizes in ((0, (1, 3)), (1, (2, 2, 1)), (-1, (5,))):
        one = x(4, 5)
        yield Call([one], [*one.split(list(sizes), dim)], {"dim": dim, "split_sizes": sizes})


def _cast(x: Maker) -> Iterator[Call]:
    for dtype in (torch.float32, torch.int32, torch.bool, torch.float16):
        one = x(3, 4)
        yield Call([one], [one.to(dtype)], {"dtype": dtype})


def _conv_facts(stride: Sequence[int], pads: Sequence[int], dilation: Sequence[int]) -> Any:
    names = ("padding_top", "padding_bottom", "padding_left", "padding_right")
    sides = (pads[0], pads[0], pads[1], pads[1])
    more = {"stride_y": stride[0], "stride_x": stride[1]}
    more |= {"dilation_y": dilation[0], "dilation_x": dilation[1]}
    return dict(zip(names, sides, strict=True)) | more


def _conv(groups: int) -> Calls:
    def calls(x: Maker) -> Iterator[Call]:
        for stride, pads, dilation in (
            ((1, 1), (0, 0), (1, 1)),
            ((2, 1), (1, 2), (1, 1)),
            ((1, 2), (2, 0), (2, 1)),
        ):
            for bias in (x(8), None):
                one, weight = x(2, 4, 7, 6), x(8, 4 // groups, 3, 2)
                given = [one, weight, bias]
                use = [None if at is None else wide(at) for at in given]
                made = F.conv2d(*use, stride, pads, dilation, groups)  # pyright: ignore[reportArgumentType, reportCallIssue]
                yield Call(given, [made], {"groups": groups, **_conv_facts(stride, pads, dilation)})

    return calls


def _conv_of_one_dimension(x: Maker) -> Iterator[Call]:
    one, weight, bias = x(2, 4, 9), x(6, 4, 3), x(6)
    made = F.conv1d(wide(one), wide(weight), wide(bias), 2, 1)
    facts = {"groups": 1, **_conv_facts((1, 2), (0, 1), (1, 1))}
    yield Call([one, weight, bias], [made], facts)


def _batch_norm(x: Maker) -> Iterator[Call]:
    one, mean, weight, bias = x(2, 3, 4, 4), x(3), x(3), x(3)
    variance = x.positive(3)
    use = [wide(at) for at in (one, mean, variance, weight, bias)]
    made = F.batch_norm(*use, eps=1e-3)
    yield Call(
        [one, mean, variance, weight, bias],
        [mean, made, None],
        {"momentum": 0.1, "epsilon": 1e-3},
    )


def _layer_norm(x: Maker) -> Iterator[Call]:
    for shape in ((4,), (3, 4)):
        for bias in (x(*shape), None):
            one, weight = x(2, 3, 4), x(*shape)
            dims = tuple(range(-len(shape), 0))
            use = wide(one)
            centre = use.mean(dims, keepdim=True)
            spread = use.var(dims, unbiased=False, keepdim=True)
            made = (use - centre) / torch.sqrt(spread + 1e-5) * wide(weight)
            made = made if bias is None else made + wide(bias)
            facts = {"normalized_shape": shape, "eps": 1e-5}
            yield Call([one, weight, bias], [centre, made, spread], facts)


def _pool_facts(kernel: Sequence[int], stride: Sequence[int], pads: Sequence[int]) -> Any:
    names = ("kernel_height", "kernel_width", "stride_height", "stride_width")
    sides = ("padding_top", "padding_bottom", "padding_left", "padding_right")
    both = (pads[0], pads[0], pads[1], pads[1])
    found = dict(zip(names, (*kernel, *stride), strict=True))
    found |= dict(zip(sides, both, strict=True))
    return found | {"dilation_height": 1, "dilation_width": 1, "count_include_pad": False}


def _max_pool(x: Maker) -> Iterator[Call]:
    for kernel, stride, pads, up in (
        ((2, 2), (2, 2), (0, 0), False),
        ((3, 2), (1, 2), (1, 1), True),
    ):
        one = x(1, 2, 7, 6)
        made = F.max_pool2d(wide(one), kernel, stride, pads, ceil_mode=up, return_indices=True)
        facts = _pool_facts(kernel, stride, pads) | {"ceil_mode": up, "divisor_override": 0}
        yield Call([one], [*made], facts)
    one = x(1, 2, 10, 9)  # a size that is rounded up is in the padding, too
    made = F.max_pool2d(wide(one), 3, 2, 1, ceil_mode=True, return_indices=True)
    facts = _pool_facts((3, 3), (2, 2), (1, 1)) | {"ceil_mode": True, "divisor_override": 0}
    yield Call([one], [*made], facts | {"padding_right": 2, "padding_bottom": 2})


def _average_pool(x: Maker) -> Iterator[Call]:
    for pads in ((0, 0), (1, 0)):
        for up, counted, divisor in ((False, True, 0), (True, False, 0), (False, True, 5)):
            one = x(1, 2, 7, 6)
            made = F.avg_pool2d(wide(one), (3, 2), (2, 2), pads, up, counted, divisor or None)
            facts = _pool_facts((3, 2), (2, 2), pads)
            facts |= {"ceil_mode": up, "divisor_override": divisor, "count_include_pad": counted}
            yield Call([one], [made], facts)


def _padded(x: Maker) -> Iterator[Call]:
    for pads in ((1, 2), (1, 0, 2, 1), (0, 1, 0, 0, 1, 1)):
        one = x(2, 3, 4)
        made = F.pad(one, list(pads), value=1.0)
        yield Call([one], [made], {"pad": pads, "value": 1.0})


_MATH = (
    "Exp Exp2 Sqrt Rsqrt Log Log10 Log2 Reciprocal Erf Sigmoid Sin Cos Tan Asin Acos Atan Sinh "
    "Cosh Tanh Asinh Acosh Atanh Floor Ceil Round"
)
_COMPARED = "Eq Ne Ge Gt Le Lt"
KINDS: dict[str, tuple[Calls, Sequence[torch.dtype]]] = {
    **{name: (_unary(getattr(torch, name.lower())), FLOATS) for name in _MATH.split()},
    **{
        name: (_binary(getattr(torch, name.lower())), (*FLOATS, *INTS))
        for name in _COMPARED.split()
    },
    "Abs": (_unary(torch.abs), (*FLOATS, *INTS)),
    "Neg": (_unary(torch.neg), (*FLOATS, torch.int32, torch.int64)),
    "Sign": (_unary(torch.sign), (*FLOATS, torch.int32, torch.int64)),
    "Isnan": (_unary(torch.isnan), FLOATS),
    "Isinf": (_unary(torch.isinf), FLOATS),
    "LogicalNot": (_unary(torch.logical_not), ALL),
    "BitwiseNot": (_unary(torch.bitwise_not), (*INTS, torch.bool)),
    "ReLU": (_unary(torch.relu), FLOATS),
    "Mul": (_binary(torch.mul), (*FLOATS, *INTS)),
    "Pow": (_binary(torch.pow, positive=True), FLOATS),
    "Atan2": (_binary(torch.atan2), FLOATS),
    "Min": (_binary(torch.minimum), (*FLOATS, *INTS)),
    "Max": (_binary(torch.maximum), (*FLOATS, *INTS)),
    "Minimum": (_binary(torch.minimum), (*FLOATS, *INTS)),
    "BitwiseAnd": (_binary(torch.bitwise_and), (*INTS, torch.bool)),
    "BitwiseOr": (_binary(torch.bitwise_or), (*INTS, torch.bool)),
    "BitwiseXor": (_binary(torch.bitwise_xor), (*INTS, torch.bool)),
    "Fmod": (_binary(torch.fmod, positive=True, rounding_mode=""), (*FLOATS, *INTS)),
    "Remainder": (_binary(torch.remainder, positive=True, rounding_mode=""), (*FLOATS, *INTS)),
    "Add": (_scaled(1), (*FLOATS, torch.int32, torch.int64)),
    "Sub": (_scaled(-1), (*FLOATS, torch.int32, torch.int64)),
    "Div": (_divided, (*FLOATS, *INTS)),
    "Softmax": (_along(torch.softmax), FLOATS),
    "LogSoftmax": (_along(torch.log_softmax), FLOATS),
    "GELU": (_gelu, FLOATS),
    "LeakyReLU": (_leaky, FLOATS),
    "HardTanh": (_hard_tanh, FLOATS),
    "Clamp": (_clamp, (*FLOATS, torch.int32, torch.int64)),
    "Mean": (_mean, FLOATS),
    "MatMul": (_matmul, FLOATS),
    "Addmm": (_addmm, FLOATS),
    "Full": (_full, ALL),
    "FullLike": (_full_like, ALL),
    "Arange": (_arange, (*FLOATS, torch.int32, torch.int64)),
    "Where": (_where, ALL),
    "IndexSelect": (_index_select, ALL),
    "Embedding": (_embedding, FLOATS),
    "IndexTensor": (_index, ALL),
    "IndexPut": (_index_put, ALL),
    "Scatter": (_scatter, ALL),
    "Permute": (_permute, ALL),
    "View": (_shaped(torch.reshape, ((2, 6), (3, 4)), ((2, 6), (-1,)), ((1,), ())), ALL),
    "Expand": (_shaped(torch.Tensor.expand, ((1, 3), (4, 3)), ((2, 1), (5, -1, 3))), ALL),
    "Cat": (_cat, ALL),
    "Squeeze": (_squeeze, ALL),
    "Unsqueeze": (_unsqueeze, ALL),
    "Select": (_select, ALL),
    "Slice": (_slice, ALL),
    "PixelShuffle": (_shuffle, ALL),
    "SplitWithSizes": (_split, ALL),
    "Cast": (_cast, ALL),
    "Conv2D": (_conv(1), FLOATS),
    "DepthwiseConv2D": (_conv(4), FLOATS),
    "BatchNorm": (_batch_norm, FLOATS),
    "LayerNorm": (_layer_norm, FLOATS),
    "MaxPool2DWithIndices": (_max_pool, FLOATS),
    "AvgPool2D": (_average_pool, FLOATS),
    "ConstantPadND": (_padded, ALL),
}
"""Kind -> its calls, and the dtypes they are tried with."""
MORE: tuple[tuple[str, Calls, Sequence[torch.dtype]], ...] = (
    ("Conv2D", _conv_of_one_dimension, FLOATS),
    ("Add", _fused_bounds, (*FLOATS, torch.int32)),
)
