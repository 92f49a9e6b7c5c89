"""Operators that the stock runtime has no kernel for: ours against eager, by dtype."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from compiler.dialect.out_variants import find_out_variant
from runtime import ExecutionError, Runtime
from runtime.kernels import BEYOND_STOCK, built_in
from tests.compiler.coverage.inputs import core_operators, name_of
from tests.runtime.one_op import Meta, one_operator
from tests.runtime.operators.inputs import DTYPES, Maker

pytestmark = pytest.mark.slow

aten: Any = torch.ops.aten
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
Call = tuple[Any, ...]


def _index(*shape: int, below: int) -> torch.Tensor:
    return torch.randint(0, below, shape)


def _sorts(x: Maker) -> Iterator[Call]:
    for dim in (0, 1, -1):
        for descending in (False, True):
            yield (x(3, 4, 5), dim, descending)
    yield (x(0, 3), 1, False)
    yield (x(), 0, True)


def _stable_sorts(x: Maker) -> Iterator[Call]:
    for dim in (0, -1):
        for stable in (False, True):
            yield (x(4, 6), stable, dim, False)


def _reductions(x: Maker) -> Iterator[Call]:
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for include in (True, False):
            yield (x(4, 5), 0, _index(3, 5, below=4), x(3, 5), reduce, include)
            yield (x(4, 5), -1, _index(4, 2, below=5), x(4, 2), reduce, include)


def _volumes(x: Maker) -> Iterator[Call]:
    yield (x(2, 3, 5, 6, 7), [2, 2, 2], [], [0, 0, 0])
    yield (x(3, 5, 6, 7), [3, 2, 1], [2, 1, 1], [1, 1, 0])
    yield (x(1, 1, 4, 4, 4), [2, 3, 2], [2, 2, 2], [1, 0, 1])


def _average(x: Maker) -> Iterator[Call]:
    for call in _volumes(x):
        yield (*call, False, True, None)
        yield (*call, True, False, None)
        yield (*call, False, True, 3)


def _maximum(x: Maker) -> Iterator[Call]:
    for call in _volumes(x):
        yield (*call, [1, 1, 1], False)
    yield (x(2, 6, 7, 8), [2, 2, 2], [1, 2, 1], [1, 1, 1], [2, 1, 2], True)


def _adaptive(x: Maker) -> Iterator[Call]:
    for sizes in ([1, 1, 1], [2, 3, 4], [5, 1, 9]):
        yield (x(2, 3, 5, 6, 7), sizes)
        yield (x(3, 4, 4, 8), sizes)


def _adaptive_back(x: Maker) -> Iterator[Call]:
    yield (x(2, 3, 3, 2), x(2, 3, 6, 5))
    yield (x(3, 1, 1), x(3, 7, 4))


def _average_back(x: Maker) -> Iterator[Call]:
    yield (x(2, 3, 3, 3), x(2, 3, 6, 6), [2, 2], [2, 2], [0, 0], False, True, None)
    yield (x(1, 2, 4, 3), x(1, 2, 6, 6), [3, 2], [2, 2], [1, 0], True, False, None)
    yield (x(3, 3, 6), x(3, 6, 6), [2, 1], [2, 1], [0, 0], False, True, 5)


def _embedding_back(x: Maker) -> Iterator[Call]:
    for padding in (-1, 2):
        for scaled in (False, True):
            yield (x(4, 3, 6), _index(4, 3, below=7), 7, padding, scaled)


def _bags(x: Maker) -> Iterator[Call]:
    offsets, closed = torch.tensor([0, 2, 2, 5]), torch.tensor([0, 2, 2, 5, 6])
    for mode in (0, 1, 2):
        for padding in (-1, 1):
            indices = _index(6, below=7)
            yield (x(7, 4), indices, offsets, False, mode, False, None, False, padding)
            yield (x(7, 4), indices, closed, False, mode, False, None, True, padding)
    yield (x(7, 4), _index(6, below=7), offsets, False, 0, False, x(6), False, -1)


def _layer_norm_back(x: Maker) -> Iterator[Call]:
    for mask in ([True, True, True], [True, False, False], [False, True, True]):
        yield (x(2, 3, 4), x(2, 3, 4), [4], x(2, 3, 1), x.positive(2, 3, 1), x(4), x(4), mask)
    plain = (x(5, 3, 4), x(5, 3, 4), [3, 4], x(5, 1, 1), x.positive(5, 1, 1), None, None)
    yield (*plain, [True, False, False])


def _elements(x: Maker) -> Iterator[Call]:
    for sizes in ((3, 4), (0, 2), ()):
        yield (x(*sizes),)


def _vector_norms(x: Maker) -> Iterator[Call]:
    for order in (2, 1, 0, float("inf"), 3.5):
        yield (x(3, 4, 5), order, [1], False, None)
        yield (x(3, 4), order, [0, -1], True, None)
        yield (x(2, 3), order, None, False, None)


def _group_norm_back(x: Maker) -> Iterator[Call]:
    for mask in ([True, True, True], [True, False, False]):
        for groups in (1, 2, 4):
            moments = (x(2, groups), x.positive(2, groups))
            yield (x(2, 4, 3), x(2, 4, 3), *moments, x(4), 2, 4, 3, groups, mask)
    plain = (x(2, 6, 2, 2), x(2, 6, 2, 2), x(2, 3), x.positive(2, 3), None, 2, 6, 4, 3)
    yield (*plain, [True, False, False])


CASES: dict[str, tuple[Any, Callable[[Maker], Iterator[Call]]]] = {
    "aten::_adaptive_avg_pool2d_backward.out": (aten._adaptive_avg_pool2d_backward, _adaptive_back),
    "aten::_adaptive_avg_pool3d.out": (aten._adaptive_avg_pool3d, _adaptive),
    "aten::_embedding_bag.out": (aten._embedding_bag, _bags),
    "aten::angle.out": (aten.angle, _elements),
    "aten::avg_pool2d_backward.grad_input": (aten.avg_pool2d_backward, _average_back),
    "aten::avg_pool3d.out": (aten.avg_pool3d, _average),
    "aten::embedding_dense_backward.out": (aten.embedding_dense_backward, _embedding_back),
    "aten::hardsigmoid.out": (aten.hardsigmoid, _elements),
    "aten::hardswish.out": (aten.hardswish, _elements),
    "aten::linalg_vector_norm.out": (
        lambda *args: aten.linalg_vector_norm(*args[:-1], dtype=args[-1]),
        _vector_norms,
    ),
    "aten::max_pool3d_with_indices.out": (aten.max_pool3d_with_indices, _maximum),
    "aten::native_group_norm_backward.out": (aten.native_group_norm_backward, _group_norm_back),
    "aten::native_layer_norm_backward.out": (aten.native_layer_norm_backward, _layer_norm_back),
    "aten::scatter_reduce.two_out": (
        lambda *args: aten.scatter_reduce.two(*args[:-1], include_self=args[-1]),
        _reductions,
    ),
    "aten::silu.out": (aten.silu, _elements),
    "aten::sort.values": (aten.sort.default, _sorts),
    "aten::sort.values_stable": (
        lambda x, stable, dim, down: aten.sort.stable(x, stable=stable, dim=dim, descending=down),
        _stable_sorts,
    ),
}
WITHOUT_VALUES = {"aten::empty_strided.out", "aten::randperm.out", "aten::resize.out"}


def _run(name: str, arguments: Call, outs: list[Meta]) -> list[Any]:
    program, given = one_operator(name, list(arguments), outs)
    return Runtime.get().load_program(program).load_method("forward").execute(given)


def _equal(ours: torch.Tensor, eager: torch.Tensor) -> bool:
    if ours.dtype is not eager.dtype or ours.shape != eager.shape:
        return False
    return torch.equal(ours.nan_to_num(7.0), eager.nan_to_num(7.0))


def _outs(name: str, arguments: Call, eager: list[torch.Tensor | None]) -> list[Meta]:
    first = next(value for value in arguments if isinstance(value, torch.Tensor))
    shapes = [(first.dtype, (1,)) if x is None else (x.dtype, tuple(x.shape)) for x in eager]
    if name == "aten::_embedding_bag.out":  # as its shape inference says for all but short cuts
        shapes[1] = (shapes[1][0], (arguments[1].numel(),))
    return shapes


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", sorted(CASES))
def test_operator_gives_the_bits_of_eager_or_both_refuse(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(5)
    operator, cases = CASES[name]
    for arguments in cases(Maker(dtype)):
        try:
            found = operator(*arguments)
        except (RuntimeError, IndexError):
            assert dtype not in FLOATS[:2], f"{name} {dtype}: the case is wrong"
            kernel = built_in(name)
            assert kernel is not None
            outs = [(dtype, (1,))] * kernel.outs
            with pytest.raises(ExecutionError):
                _run(name, arguments, outs)
            continue
        eager: list[torch.Tensor | None]
        eager = [found] if isinstance(found, torch.Tensor) else list(found)
        ours = _run(name, arguments, _outs(name, arguments, eager))
        for place, (mine, wanted) in enumerate(zip(ours, eager, strict=True)):
            if wanted is not None and wanted.numel():
                assert _equal(mine, wanted), (name, arguments, place)


def test_bags_of_each_index_are_said_where_the_plan_has_room_for_them() -> None:
    weight, indices = torch.randn(7, 4).bfloat16(), torch.tensor([1, 2, 3, 4, 5])
    offsets = torch.tensor([0, 2, 2])
    options = (False, 0, False, None, False, -1)
    outs = [(torch.bfloat16, (3, 4)), *[(torch.int64, (size,)) for size in (5, 3, 3)]]
    found = _run("aten::_embedding_bag.out", (weight, indices, offsets, *options), outs)
    assert found[1].tolist() == [0, 0, 2, 2, 2]
    eager = aten._embedding_bag(weight.double(), indices, offsets, *options)
    assert found[1].tolist() == eager[1].tolist()


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d is not torch.bool], ids=str)
def test_random_permutation_has_each_number_once(dtype: torch.dtype) -> None:
    (found,) = _run("aten::randperm.out", (40,), [(dtype, (40,))])
    assert found.dtype is dtype
    assert sorted(found.tolist()) == list(range(40))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_resize_keeps_the_elements_there_are(dtype: torch.dtype) -> None:
    given = Maker(dtype)(2, 6)
    for size in ([3, 4], [5], [2, 1, 2], [4, 4]):
        (found,) = _run("aten::resize.out", (given, size, None), [(dtype, tuple(size))])
        kept = min(found.numel(), 12)
        assert torch.equal(found.flatten()[:kept], given.flatten()[:kept])


def test_strided_empty_tensor_has_the_shape_that_is_asked_for() -> None:
    (found,) = _run("aten::empty_strided.out", ([2, 3], [3, 1]), [(torch.float32, (2, 3))])
    assert found.shape == (2, 3)


_NO_WEIGHTS = (None, False, -1)
FAULTS: dict[str, tuple[str, Call]] = {
    "index below an embedding": (
        "aten::embedding_dense_backward.out",
        (torch.ones(2, 4), torch.tensor([0, -3]), 5, -1, True),
    ),
    "index beyond an embedding": (
        "aten::embedding_dense_backward.out",
        (torch.ones(2, 4), torch.tensor([0, 5]), 5, -1, True),
    ),
    "gradient of other sizes": (
        "aten::embedding_dense_backward.out",
        (torch.ones(1, 4), torch.tensor([0, 1, 2]), 5, -1, False),
    ),
    "too few means": (
        "aten::native_layer_norm_backward.out",
        (*[torch.ones(9, 4)] * 2, [4], *[torch.ones(1)] * 2, None, None, [True] * 3),
    ),
    "too few means of groups": (
        "aten::native_group_norm_backward.out",
        (*[torch.ones(2, 4, 3)] * 2, *[torch.ones(1)] * 2, None, 2, 4, 3, 2, [True] * 3),
    ),
    "no groups": (
        "aten::native_group_norm_backward.out",
        (*[torch.ones(2, 4, 3)] * 2, *[torch.ones(1)] * 2, None, 2, 4, 3, 0, [True] * 3),
    ),
    "channels of the gradient": (
        "aten::_adaptive_avg_pool2d_backward.out",
        (torch.ones(9, 2, 2), torch.ones(1, 4, 4)),
    ),
    "row of a bag": (
        "aten::_embedding_bag.out",
        (
            torch.ones(3, 2).double(),
            torch.tensor([9]),
            torch.tensor([0]),
            False,
            0,
            False,
            *_NO_WEIGHTS,
        ),
    ),
    "offset of a bag": (
        "aten::_embedding_bag.out",
        (
            torch.ones(3, 2).double(),
            torch.tensor([1]),
            torch.tensor([0, 7]),
            False,
            1,
            False,
            *_NO_WEIGHTS,
        ),
    ),
    "sizes beyond the plan": (
        "aten::_adaptive_avg_pool3d.out",
        (torch.ones(1, 2, 2, 2), [999] * 3),
    ),
    "permutation beyond the plan": ("aten::randperm.out", (1 << 40,)),
}


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_arguments_that_do_not_fit_are_one_error(fault: str) -> None:
    name, arguments = FAULTS[fault]
    kernel = built_in(name)
    assert kernel is not None
    first = next((x for x in arguments if isinstance(x, torch.Tensor)), torch.zeros(4))
    with pytest.raises(ExecutionError):
        _run(name, arguments, [(first.dtype, tuple(first.shape))] * kernel.outs)


def test_operators_beyond_stock_are_all_tried() -> None:
    assert set(CASES) | WITHOUT_VALUES == BEYOND_STOCK


def test_each_core_operator_has_a_kernel_under_the_name_the_compiler_emits() -> None:
    registry = Runtime.get().operator_registry
    missing: list[str] = []
    for operator in core_operators():
        if name_of(operator).startswith("sym_") or operator.is_view:
            continue
        variant = find_out_variant(operator)
        if variant is not None:
            missing += registry.missing([f"{variant.name}.{variant.overload}"])
    assert set(missing) == {  # to_edge always decomposes these
        "aten::adaptive_avg_pool1d.out",
        "aten::avg_pool1d.out",
        "aten::col2im.out",
    }
