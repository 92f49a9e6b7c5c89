"""Partitioners and backends of the executorch package, under every rule of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.compiler.stock import Stock
from tests.tools.forked import run_stock

pytestmark = [pytest.mark.slow, pytest.mark.interop]
RULE_NAMES = (
    "bare",
    "none",
    "deny_ops",
    "allow_ops",
    "deny_nodes",
    "deny_handles",
    "deny_modules",
    "tensors",
    "min_nodes",
    "max_partitions",
    "module",
    "operator",
    "cut",
    "priority",
)
X = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(3))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("foreign")
    run_stock(["-m", "tests.compiler.foreign_cases", made])
    return made


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "found.json").read_text())


@pytest.fixture(scope="module")
def plain(folder: Path, stock: Stock) -> list[Any]:
    calls = [("forward", (X,)), ("forward", (X,))]
    return stock.run((folder / "portable.pte").read_bytes(), calls)


@pytest.mark.parametrize("kind", ["XnnpackPartitioner", "Capable"])
@pytest.mark.parametrize("rule", RULE_NAMES)
def test_stock_partitioner_under_a_rule_has_a_verdict_for_every_node(
    found: dict[str, Any], kind: str, rule: str
) -> None:
    seen = found[f"{kind} {rule}"]
    assert seen["unjudged"] == []
    taken = seen["delegated"]
    assert taken or (kind, rule) == ("Capable", "min_nodes")  # its partitions have two at most
    if rule == "deny_ops":
        assert not {"aten.mul.Tensor", "aten.linear.default", "aten.addmm.default"} & {*taken}
    if rule == "operator":
        assert seen["delegates"] == len(taken)
    if rule == "max_partitions":
        assert seen["delegates"] == 1
    if rule == "min_nodes":
        assert "dropped_as_too_small" in seen["outcomes"]
    if rule in ("deny_nodes", "deny_handles", "deny_ops"):
        assert "vetoed_by_user" in seen["outcomes"]


@pytest.mark.parametrize("rule", RULE_NAMES)
def test_stock_partitioner_under_a_rule_runs_on_the_stock_runtime(
    folder: Path, plain: list[Any], stock: Stock, rule: str
) -> None:
    calls = [("forward", (X,)), ("forward", (X,))]
    made = stock.run((folder / f"{rule}.pte").read_bytes(), calls)
    for outputs, wanted in zip(made, plain, strict=True):
        assert len(outputs) == len(wanted) == 2
        for one, other in zip(outputs, wanted, strict=True):
            assert float((one - other).abs().max() / other.abs().max()) < 1e-5


def test_stock_backend_sees_all_methods_and_shares_named_data(found: dict[str, Any]) -> None:
    (together,) = found["methods"]["together"]
    forward, other = (found[f"Capable {rule}"]["delegates"] for rule in ("bare", "cut"))
    assert together == {"forward": forward, "other": other}
    assert 1 < forward < other
    assert found["methods"]["keys"] == ["scale"]
    assert found["demo"]["delegated"]


def test_what_a_foreign_partitioner_or_backend_does_wrong_is_one_clear_error(
    found: dict[str, Any],
) -> None:
    for name, words in {
        "Changing ForeignNames": "Changing should not modify the graph module: ",
        "OnInput ForeignNames": "should not be tagged: x has the tag part0",
        "Capable ForeignRubbish": "returned str as processed_bytes of partition part",
        "Capable Nowhere": "Backend Nowhere was not found",
    }.items():
        bare, steered = found[name]
        assert words in bare
        assert words in steered


@pytest.mark.parametrize("steered", [0, 1])
def test_reasons_a_foreign_partitioner_tells_its_own_helpers_are_in_the_verdicts(
    found: dict[str, Any], steered: int
) -> None:
    seen = found["reasons XnnpackPartitioner"][steered]
    home = "backends.xnnpack.partition.config."
    assert seen["aten.avg_pool2d.default"] == [
        f"{home}generic_node_configs",
        "ceil mode is not supported",
    ]
    assert "got dim = 0 for tensor of rank 4" in seen["aten._softmax.default"][1]
    why = "does not preserve this node: Expected weight to be a static param"
    assert seen["aten.linear.default"][1].endswith(why)
    assert found["homes"] == ["executorch.exir.backend.utils"] * 2  # as they were


@pytest.mark.parametrize("steered", [0, 1])
def test_what_a_foreign_partitioner_notes_of_nodes_reaches_its_backend(
    found: dict[str, Any], steered: int
) -> None:
    seen = found["reasons Reporting"][steered]
    assert seen["payloads"] == ["dim 0"]
    rule, reason = seen["aten.mm.default"]
    assert rule == "WhyNoPartitionReporter"
    assert reason == "2 arguments are too many"


def test_every_node_has_a_value_that_partitioner_and_backend_read(found: dict[str, Any]) -> None:
    seen = found["values"]
    assert len(seen["partition"]) >= 6
    kinds = ["float32", "float32", "int64", "float32", "5", "float32"]
    results = [f"output {kind if kind == '5' else f'torch.{kind}'}" for kind in kinds]
    for values in seen["partition"]:
        outer = [text for text in values if text.startswith("output")]
        assert outer[: len(results)] == results  # what is written to the buffer first
        assert len(outer) == len(results) + 2  # those of the two branches
        assert "placeholder torch.int64" in values
    assert seen["backend"]
    assert all(values[-1].startswith("output torch.") for values in seen["backend"])
