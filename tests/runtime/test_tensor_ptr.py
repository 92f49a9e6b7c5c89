"""Helpers that make tensors: views, copies, casts, and how far they can be resized."""

from __future__ import annotations

import array
import gc

import pytest
import torch

from runtime import ErrorCode, ExecutionError, Runtime
from runtime.compat import tensor_ptr as tp
from runtime.memory.slots import TensorShapeDynamism
from tests.runtime.one_op import one_operator

pytestmark = pytest.mark.slow


def test_blob_is_a_view_and_is_given_back_when_the_tensor_is_gone() -> None:
    memory, given_back = array.array("f", range(12)), []
    made = tp.for_blob(memory, [3, 4]).deleter(given_back.append).make_tensor_ptr()
    memory[5] = 50.0
    assert made.tensor[1, 1].item() == 50.0
    del made
    gc.collect()
    assert given_back == [memory]


@pytest.mark.parametrize(
    ("sizes", "strides", "order"),
    [
        ((2, 3), (3, 1), (0, 1)),
        ((2, 3), (1, 2), (1, 0)),
        ((1, 2, 2, 2), (8, 1, 4, 2), (0, 2, 3, 1)),
    ],
)
def test_blob_strides_and_dim_order_say_the_same(
    sizes: tuple[int, ...], strides: tuple[int, ...], order: tuple[int, ...]
) -> None:
    memory = torch.arange(float(torch.Size(sizes).numel()))
    one = tp.from_blob(memory, sizes, strides).tensor
    other = tp.for_blob(memory, sizes).dim_order(order).make_tensor_ptr().tensor
    assert one.stride() == other.stride() == strides
    assert torch.equal(one, other)


def test_resize_stays_within_the_elements_it_was_made_with() -> None:
    made = tp.make_tensor_ptr([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])
    tp.resize_tensor_ptr(made, [2, 2])
    assert made.tensor.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    tp.resize_tensor_ptr(made, [3, 2])
    assert made.tensor.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    for sizes in ([4, 2], [6]):
        with pytest.raises(ExecutionError) as raised:
            tp.resize_tensor_ptr(made, sizes)
        assert raised.value.code == ErrorCode.NotSupported
    fixed = tp.make_tensor_ptr([1.0, 2.0], dynamism=TensorShapeDynamism.STATIC)
    with pytest.raises(ExecutionError, match="static tensor"):
        fixed.resize([1])


def test_view_shares_memory_and_clone_does_not() -> None:
    source = torch.zeros(2, 2)
    view, copy = tp.make_tensor_ptr(source, [4]), tp.clone_tensor_ptr(source, torch.float64)
    source[0, 1] = 3.0
    assert view.tensor.tolist() == [0.0, 3.0, 0.0, 0.0]
    assert copy.tensor.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert copy.tensor.dtype is torch.float64


@pytest.mark.parametrize(
    ("source", "target"),
    [(torch.float32, torch.int32), (torch.float64, torch.uint8), (torch.int32, torch.bool)],
)
def test_casts_that_lose_values_are_refused(source: torch.dtype, target: torch.dtype) -> None:
    given = torch.ones(2, dtype=source)
    for make in (tp.clone_tensor_ptr, lambda t, d: tp.make_tensor_ptr(t, type=d)):
        with pytest.raises(ExecutionError, match="cannot be cast"):
            make(given, target)
    assert tp.make_tensor_ptr([1, 2], type=torch.float16).tensor.dtype is torch.float16


@pytest.mark.parametrize("name", ["empty", "zeros", "ones", "rand", "randn", "full", "randint"])
def test_makers_give_sizes_types_and_bounds(name: str) -> None:
    before = {"full": ((2, 3), 7.0), "randint": (0, 5, (2, 3))}.get(name, ((2, 3),))
    made = getattr(tp, name)(*before, type=torch.float64)
    rest = {"full": (7.0,), "randint": (0, 5)}.get(name, ())
    like = getattr(tp, f"{name}_like")(made, *rest, type=torch.int64 if rest else torch.float32)
    for found in (made, like):
        assert found.sizes() == (2, 3)
        assert found.dynamism is TensorShapeDynamism.DYNAMIC_BOUND
    assert made.tensor.dtype is torch.float64
    if name == "full":
        assert like.tensor.tolist() == [[7, 7, 7], [7, 7, 7]]


def test_strided_and_scalar_tensors() -> None:
    assert tp.full_strided((2, 3), (1, 2), 4.0).tensor.stride() == (1, 2)
    assert tp.empty_strided((2, 3), (3, 1)).sizes() == (2, 3)
    assert tp.scalar_tensor(3, torch.int32).tensor.item() == 3


@pytest.mark.parametrize("strides", [(4, 1), (1, 1), (3,)])
def test_strides_that_are_not_dense_are_refused(strides: tuple[int, ...]) -> None:
    with pytest.raises(ExecutionError) as raised:
        tp.from_blob(torch.zeros(12), (2, 3), strides)
    assert raised.value.code == ErrorCode.InvalidArgument


def test_blob_that_is_too_small_is_refused() -> None:
    for memory in (bytearray(8), torch.zeros(2)):
        with pytest.raises(ExecutionError) as raised:
            tp.from_blob(memory, (3, 1))
        assert raised.value.code == ErrorCode.InvalidArgument


def test_methods_take_them_where_they_take_tensors() -> None:
    program, given = one_operator("aten::neg.out", [torch.ones(2, 3)], [(torch.float32, (2, 3))])
    method = Runtime.get().load_program(program).load_method("forward")
    (found,) = method.execute([tp.make_tensor_ptr(given[0])])
    assert found.tolist() == [[-1.0] * 3] * 2
