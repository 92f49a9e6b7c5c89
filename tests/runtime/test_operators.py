"""Every operator of the stock wheel, on the stock runtime and on ours with the same inputs."""

from __future__ import annotations

import os

import pytest
import torch

from runtime import Runtime
from runtime.kernels import BEYOND_STOCK, OF_LLM_LIBRARY, OF_VENDORS
from tests.architecture.tree import ROOT
from tests.runtime.one_op import one_operator
from tests.runtime.operators.exceptions import DIFFERS, NOT_COMPARED
from tests.runtime.operators.sweep import Trial, run_all, run_ours, trials, untried
from tests.runtime.operators.table import page
from tests.runtime.stock import CRASHED, Stock

pytestmark = [pytest.mark.slow, pytest.mark.interop]


@pytest.fixture(scope="module")
def swept(stock: Stock) -> list[Trial]:
    made = trials()
    run_all(stock, made)
    return made


def test_operator_names_are_those_of_the_stock_wheel(stock: Stock) -> None:
    names = stock.ask("names")["names"]
    ours = Runtime.get().operator_registry.operator_names
    assert ours == {*names, *BEYOND_STOCK, *OF_LLM_LIBRARY, *OF_VENDORS}
    assert not set(names) & set(BEYOND_STOCK)
    assert len(names) == 259


def test_operators_without_a_trial_are_named_with_a_reason(swept: list[Trial]) -> None:
    tried = {trial.operator for trial in swept}
    expected = {*NOT_COMPARED, *BEYOND_STOCK, *OF_LLM_LIBRARY, *OF_VENDORS}
    assert Runtime.get().operator_registry.operator_names - tried == expected
    assert untried() <= expected


def test_operator_results_equal_stock_or_are_named(swept: list[Trial]) -> None:
    odd = [
        (trial.operator, str(trial.dtype), trial.number, trial.verdict)
        for trial in swept
        if trial.verdict in ("differs", "stock only") and not _named(trial)
    ]
    assert odd == []
    assert [trial.operator for trial in swept if trial.stock == CRASHED] == []
    equal = {trial.operator for trial in swept if trial.verdict == "equal"}
    # Copies between devices: stock refuses them where there is but one.
    devices = {"et_copy::_d2h_copy.out", "et_copy::_h2d_copy.out"}
    assert {trial.operator for trial in swept} - equal == devices


def _named(trial: Trial) -> bool:
    known = DIFFERS.get(trial.operator)
    name = str(trial.dtype).removeprefix("torch.")
    return trial.verdict == "differs" and known is not None and name in known.dtypes.split()


def test_page_of_operators_says_what_was_found(swept: list[Trial]) -> None:
    path = ROOT / "docs/operators.md"
    if os.environ.get("WRITE_DOCS"):
        path.write_text(page(swept), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == page(swept)


@pytest.mark.parametrize("name", ["aten::rand.out", "aten::randn.out"])
def test_random_operators_fill_their_result(name: str) -> None:
    program, given = one_operator(name, [[50, 40]], [(torch.float32, (50, 40))])
    (found,) = run_ours(program, given)
    assert isinstance(found, torch.Tensor)
    mean = 0.5 if name == "aten::rand.out" else 0.0
    assert abs(float(found.mean()) - mean) < 0.1
    assert len(found.unique()) > 1000
