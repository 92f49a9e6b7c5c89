"""Pointwise convolutions, of images or of squeeze-and-excite gates, run as matmuls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from compiler import to_edge
from runtime import DebugLevel, EventTracer, Runtime
from runtime.execution.fused import fuse
from tests.runtime.samples import assert_close

pytestmark = pytest.mark.slow

NETS: dict[str, Callable[[], nn.Module]] = {
    "plain": lambda: nn.Conv2d(6, 10, 1),
    "no bias": lambda: nn.Conv2d(6, 10, 1, bias=False),
    "relu": lambda: nn.Sequential(nn.Conv2d(6, 10, 1), nn.ReLU()),
    "hardswish": lambda: nn.Sequential(nn.Conv2d(6, 10, 1), nn.Hardswish()),
    "bounds": lambda: nn.Sequential(nn.Conv2d(6, 10, 1), nn.ReLU6()),
    "norm": lambda: nn.Sequential(nn.Conv2d(6, 10, 1), nn.BatchNorm2d(10), nn.ReLU()),
    "strides": lambda: nn.Conv2d(6, 10, 1, stride=2),
    "gate": lambda: nn.Sequential(nn.Conv2d(6, 4, 1), nn.ReLU(), nn.Conv2d(4, 6, 1)),
}
OTHERS: dict[str, Callable[[], nn.Module]] = {
    "padding": lambda: nn.Conv2d(6, 10, 1, padding=1),
    "groups": lambda: nn.Conv2d(6, 10, 1, groups=2),
    "window": lambda: nn.Conv2d(6, 10, 3, padding=1),
}


def matmuls_of(
    make: Callable[[], nn.Module], given: torch.Tensor, kind: str = "_is_matmul"
) -> tuple[int, Any, Any]:
    """Return the number of matmuls, the results of a fused run, and those of a traced one."""
    torch.manual_seed(0)
    module = nn.Sequential(make(), nn.Identity()).eval()
    program = to_edge(torch.export.export(module, (given,))).to_executorch()
    taken: list[bool] = []
    known = getattr(fuse, kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fuse, kind, lambda layer: taken.append(known(layer)) or taken[-1])
        method = Runtime().load_program(program.buffer).load_method("forward")
        found = [method.execute([given]) for _ in range(3)][-1]
    tracer = EventTracer(DebugLevel.INTERMEDIATE)
    traced = Runtime().load_program(program.buffer, tracer=tracer).load_method("forward")
    return sum(taken), found, traced.execute([given])


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("name", NETS)
def test_convolutions_of_single_pixels_are_matmuls(name: str, rows: int) -> None:
    count, found, wanted = matmuls_of(NETS[name], torch.randn(rows, 6, 1, 1))
    assert count == (2 if name == "gate" else 1)
    assert_close(found, wanted, 1e-6)
    assert found[0].stride() == wanted[0].stride()


@pytest.mark.parametrize("name", OTHERS)
def test_other_convolutions_are_none(name: str) -> None:
    count, found, wanted = matmuls_of(OTHERS[name], torch.randn(2, 6, 1, 1))
    assert count == 0
    assert_close(found, wanted, 1e-6)


@pytest.mark.parametrize("name", NETS)
def test_products_hand_on_what_is_not_a_number(name: str) -> None:
    given = torch.randn(2, 6, 1, 1)
    given[0, 2] = torch.nan
    given[1, 0] = torch.inf
    count, (found,), (wanted,) = matmuls_of(NETS[name], given)
    assert count
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("shape", [(1, 6, 5, 7), (3, 6, 4, 4)])
@pytest.mark.parametrize("name", [name for name in NETS if name != "strides"])
def test_convolutions_pixel_by_pixel_are_products_of_packed_weights(
    name: str, shape: tuple[int, ...]
) -> None:
    for given in (torch.randn(shape), torch.randn(shape).to(memory_format=torch.channels_last)):
        count, found, wanted = matmuls_of(NETS[name], given, "_is_pointwise")
        assert count == (2 if name == "gate" else 1)
        assert_close(found, wanted, 1e-6)
        assert found[0].stride() == wanted[0].stride()


@pytest.mark.parametrize("name", [name for name in NETS if name != "strides"])
def test_products_of_packed_weights_hand_on_what_is_not_a_number(name: str) -> None:
    given = torch.randn(2, 6, 3, 3)
    given[0, 2, 1, 1] = torch.nan
    given[1, 0, 0, 0] = torch.inf
    count, (found,), (wanted,) = matmuls_of(NETS[name], given, "_is_pointwise")
    assert count
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5, equal_nan=True)


class Sideways(nn.Module):
    """Channels come last and are moved in front; the norm's kernel takes no view of them."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return nn.functional.group_norm(x.transpose(1, 2), 2), x.softmax(1)


def test_group_norm_of_a_view_runs_again_and_again() -> None:
    rows = torch.export.Dim("rows", min=3, max=11)
    shapes = ({1: rows},)
    exported = torch.export.export(Sideways(), (torch.ones(2, 5, 4),), dynamic_shapes=shapes)
    program = Runtime.get().load_program(to_edge(exported).to_executorch().buffer)
    method = program.load_method("forward")
    for size in (5, 11, 3, 5):
        x = torch.arange(size * 8.0).reshape(2, size, 4)
        for found, wanted in zip(method.execute((x,)), Sideways()(x), strict=True):
            torch.testing.assert_close(found, wanted)
