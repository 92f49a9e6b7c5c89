"""Every core ATen operator, for every element type, against eager on the stock runtime."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from compiler.dialect.out_variants import find_out_variant
from tests.compiler.coverage.inputs import DTYPES, core_operators, name_of
from tests.compiler.coverage.run import Cell, Outcome, cells_of, channels_last_cells
from tests.compiler.coverage.table import PAGE, render
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow
Cells = dict[torch.dtype, Cell]

# Where the stock kernel, not what we emit, is wrong: what each does is said beside it.
_WRONG_KERNELS = {
    "grid_sampler_2d",  # computes in half precision what eager computes in single
    "max_pool2d_with_indices_backward",  # adds to memory that it does not clear
    "upsample_bilinear2d.vec",  # cuts instead of rounding bytes
}
_SCALAR_ONLY = ("sym_", "_local_scalar_dense")
_RETURNS_INPUT = ("atan2.out", "resize_", "_native_batch_norm_legit")


@pytest.fixture(scope="module")
def cells(stock: Stock, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any], Cells]:
    """Runs an operator; what one test process ran, the others read."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "operators"
    folder.mkdir(exist_ok=True)

    def of(op: Any) -> Cells:
        path = folder / f"{name_of(op)}.json"
        if not path.exists():
            _keep(path, cells_of(op, DTYPES, stock))
        kept = json.loads(path.read_text(encoding="utf-8"))
        return {
            dtype: Cell(Outcome(outcome), reason)
            for dtype, (outcome, reason) in zip(DTYPES, kept, strict=True)
        }

    return of


def _keep(path: Path, cells: Cells) -> None:
    written = path.with_suffix(f".{os.getpid()}")
    written.write_text(json.dumps([[c.outcome, c.reason] for c in cells.values()]), "utf-8")
    written.replace(path)


@pytest.mark.interop
@pytest.mark.parametrize("op", core_operators(), ids=name_of)
def test_core_operator_on_the_stock_runtime_equals_eager(
    op: Any, cells: Callable[[Any], Cells]
) -> None:
    found = cells(op)
    outcomes = {cell.outcome for cell in found.values()}
    assert not outcomes & {Outcome.REFUSED, Outcome.CRASHED}, found
    if name_of(op) in _WRONG_KERNELS:
        assert Outcome.WRONG in outcomes, found
        return
    assert Outcome.WRONG not in outcomes, found
    assert outcomes & {Outcome.EQUAL, Outcome.NO_KERNEL}, found


@pytest.mark.interop
def test_core_operators_on_channels_last_images_equal_eager(stock: Stock) -> None:
    found = channels_last_cells(core_operators(), stock)
    bad = (Outcome.WRONG, Outcome.REFUSED, Outcome.REFUSED_BY_KERNEL, Outcome.CRASHED)
    failed = {name: cell for name, cell in found.items() if cell.outcome in bad}
    assert {name: cell for name, cell in failed.items() if name not in _WRONG_KERNELS} == {}
    assert sum(cell.outcome is Outcome.EQUAL for cell in found.values()) > 150


@pytest.mark.interop
def test_coverage_page_is_current(cells: Callable[[Any], Cells]) -> None:
    rows = {name_of(op): cells(op) for op in core_operators()}
    assert PAGE.read_text(encoding="utf-8") == render(rows)


@pytest.mark.interop
def test_rows_of_the_coverage_page_are_current(cells: Callable[[Any], Cells]) -> None:
    rows = {name_of(op): cells(op) for op in core_operators()[::16]}
    page = PAGE.read_text(encoding="utf-8").splitlines()
    shown = [line for line in render(rows).splitlines() if line.startswith("| `")]
    assert len(shown) == len(rows)
    assert [line for line in shown if line not in page] == []


def _has_results_of_its_own(op: Any) -> bool:
    return not name_of(op).startswith((*_SCALAR_ONLY, *_RETURNS_INPUT)) and not op.is_view


@pytest.mark.parametrize("op", [*filter(_has_results_of_its_own, core_operators())], ids=name_of)
def test_functional_core_operator_has_an_out_variant(op: Any) -> None:
    variant = find_out_variant(op)
    assert variant is not None
    assert any(formal.is_out for formal in variant.arguments)
