"""Results that are found without running torch's decompositions are those of torch."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from compiler.edge.results import result_of

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
