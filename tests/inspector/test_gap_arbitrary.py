"""Values that two runs may have differently are no divergence, and what reads them is compared."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from compiler import export, to_edge_transform_and_lower
from inspector.files.load import load_session
from inspector.numerics.arbitrary import ARBITRARY, is_arbitrary
from inspector.numerics.replay.analysis import Options, analyse_gap
from tests.inspector.gap_sessions import run


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's deserialiser has its own
        yield


class Written(nn.Module):
    """Memory that is allocated, then written to piece by piece."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv(x))


class Noisy(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) + torch.rand(1, 2, 4, 4) * torch.exp(x)


class Drawn(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        noise = torch.randn(2, 4, 4)
        return torch.cat([x[0] * noise, noise.abs()])


@pytest.mark.slow
@pytest.mark.parametrize("net", [Written, Noisy, Drawn])
def test_open_values_are_taken_from_the_run(net: type[nn.Module], tmp_path: Path) -> None:
    torch.manual_seed(0)
    given = (torch.randn(1, 2, 4, 4),)
    done = to_edge_transform_and_lower(
        export(net().eval(), given), generate_etrecord=True
    ).to_executorch()
    (tmp_path / "model.pte").write_bytes(done.buffer)
    done.get_etrecord().save(tmp_path / "model.etrecord")
    run(tmp_path / "model.pte", tmp_path, [given])
    torch.manual_seed(1)  # the reference would draw other numbers
    (found,) = analyse_gap(load_session([str(tmp_path)]), Options(inputs=given)).runs
    assert found.first_divergence() is None
    left_open = [row for row in found.rows if row.reason == ARBITRARY]
    assert len(left_open) == 1
    others = [row for row in found.rows if row.reason != ARBITRARY]
    assert all(row.total is not None and row.total.max_abs < 1e-5 for row in others)
    assert len(others) >= 3


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("aten.empty.memory_format", True),
        ("aten::rand", True),
        ("dim_order_ops._empty_dim_order.default", True),
        ("aten.native_dropout.default", True),
        ("aten.zeros.default", False),
        ("aten.normalize", False),
        ("", False),
    ],
)
def test_operators_that_leave_their_values_open(operator: str, expected: bool) -> None:
    assert is_arbitrary(operator) is expected
