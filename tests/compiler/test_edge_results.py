"""Results that are found without running torch's decompositions are those of torch."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F  # noqa: N812  torch's own habit

from compiler import to_edge
from compiler.edge.fake_results import result_of
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow

_NORM = torch.ops.aten._native_batch_norm_legit_no_training.default
_SHAPES = ((2, 3), (1, 3, 5), (2, 3, 4, 5), (1, 1, 1, 1), (0, 3, 4, 4), (2, 3, 2, 3, 2))
_TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def _about(tensor: Any) -> tuple[Any, ...]:
    return (tuple(tensor.shape), tensor.dtype, tensor.stride(), tensor.device)


@pytest.mark.parametrize(("shape", "dtype"), [*itertools.product(_SHAPES, _TYPES)])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("channels_last", [True, False])
def test_batch_norm_is_as_torch_finds_it(
    shape: tuple[int, ...], dtype: torch.dtype, affine: bool, channels_last: bool
) -> None:
    with FakeTensorMode(), torch.no_grad():
        x = torch.empty(shape, dtype=dtype)
        if channels_last and x.dim() == 4:
            x = x.to(memory_format=torch.channels_last)
        parameters: list[Any] = [torch.empty(shape[1]) for _ in range(4)]
        if not affine:
            parameters[:2] = None, None
        args = (x, *parameters, 0.1, 1e-5)
        found = result_of(_NORM, args, {})
        theirs = _NORM(*args)
    assert [_about(one) for one in found] == [_about(one) for one in theirs]


def test_batch_norm_that_does_not_fit_is_torchs_error() -> None:
    with FakeTensorMode(), torch.no_grad(), pytest.raises(RuntimeError):
        result_of(_NORM, (torch.empty(2, 3, 4), *(torch.empty(5) for _ in range(4)), 0.1, 1e-5), {})


class Apply(torch.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


CHANNELS = torch.rand(3, 1, 1)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.pad(x, (2, 2, 1, 0), value=1.5).tanh(),
        lambda x: F.pad(x, (0, 1, 0, 0, 1, 2, 3, 0)) * 2,
        lambda x: (x - CHANNELS) / CHANNELS,  # as many channels as images in the example
    ],
)
@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_sizes_that_may_change_stay_so_in_every_layout(function: Any, layout: Any) -> None:
    image = torch.randn(3, 3, 4, 5).to(memory_format=layout)
    sizes = ({0: torch.export.Dim("images", min=1, max=7)},)
    edge = to_edge(torch.export.export(Apply(function), (image,), dynamic_shapes=sizes))
    nodes = edge.exported_program().graph.nodes
    values = [node.meta["val"] for node in nodes if "val" in node.meta]
    images = [value for value in values if isinstance(value, torch.Tensor) and value.dim() == 4]
    assert len(images) >= 3
    assert [value.shape for value in images if isinstance(value.shape[0], int)] == []


@pytest.mark.parametrize(
    "function",
    [lambda x: 2.0 - x, lambda x: 3 // x, lambda x: 1 / x, lambda x: 2**x],
)
def test_numbers_before_images_in_other_layouts_are_lowered(function: Any) -> None:
    image = torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last) + 1
    edge = to_edge(torch.export.export(Apply(function), (image,)))
    assert torch.equal(edge.exported_program().module()(image), function(image))


@pytest.mark.interop
def test_images_of_one_pixel_are_resized_in_the_order_they_are_read_in(stock: Stock) -> None:
    functions: tuple[Any, ...] = (
        lambda x: F.interpolate(x, (5, 9)),
        lambda x: F.interpolate(x, (3, 4), mode="bilinear") + 1,
        lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
        lambda x: F.avg_pool2d(x, 2, 1, 1),
        lambda x: F.pad(x, (1, 2, 0, 1)),
        lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate"),
        lambda x: torch.cat([x, x + 1], 2),
    )
    pixel = torch.randn(2, 8, 1, 1).to(memory_format=torch.channels_last)
    exported = [torch.export.export(Apply(function), (pixel,)) for function in functions]
    programs = [(to_edge(one).to_executorch().buffer, (pixel,)) for one in exported]
    for function, found in zip(functions, stock.run_each(programs), strict=True):
        assert not isinstance(found, str), found
        torch.testing.assert_close(found[0], function(pixel), check_stride=False)
