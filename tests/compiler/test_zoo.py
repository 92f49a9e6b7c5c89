"""The corpus zoo, compiled by us from saved programs and run on the stock runtime."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from compiler import to_edge
from tests.compiler.compare import assert_equal
from tests.compiler.stock import Stock

pytestmark = [pytest.mark.slow, pytest.mark.interop]

NAMES = {
    *("nested_branches", "map_rows", "scan_rows", "keyword_net", "two_methods"),
    *("lstm_portable", "gru_portable", "many_outputs", "bool_and_int", "no_constants", "identity"),
    *("half_precision", "dynamic_rows", "deep_mlp", "counter_state", "shared_state", "kv_cache"),
}


def test_programs_of_the_zoo_run_on_the_stock_runtime_as_eager(
    stock: Stock, tmp_path: Path
) -> None:
    answer = stock.ask("zoo", folder=str(tmp_path))
    assert "error" not in answer, answer["error"]
    assert set(answer["names"]) >= NAMES
    for name in answer["names"]:
        home = tmp_path / name
        programs = {path.stem: torch.export.load(path) for path in home.glob("*.pt2")}
        runs, wanted = torch.load(home / "runs.pt")
        buffer = to_edge(programs).to_executorch().buffer
        found = stock.run(buffer, [(method, tuple(inputs)) for method, inputs in runs])
        assert_equal(found, wanted, 5e-3 if name == "half_precision" else 1e-5)
