"""The loop with the real OpenVINO: compile, run, kernels, gap, bisect, rules, int8, methods."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from schema.vendors.environments import python_with
from tests import backends_models
from tests.inspector.cli_runs import Run, run, valid

MODELS = Path(str(backends_models.__file__))
HERE = importlib.util.find_spec("openvino") is not None
THERE = python_with("openvino")
pytestmark = [
    pytest.mark.vendor,
    pytest.mark.slow,
    pytest.mark.skipif(
        not HERE and not THERE,
        reason="openvino is neither here nor in an environment of `etscope backends install`",
    ),
]
PARTITIONER = ("--partitioner", "openvino", *(() if HERE else ("--backend-python", "auto")))
FULL = ("--backend-option", "openvino:precision=f32")


def done(*words: str | Path) -> Run:
    answer = run(*words)
    assert answer.code == 0, answer.err
    return answer


def compiled(model: str, out: Path, *more: str) -> Path:
    done("compile", f"{MODELS}:{model}", "-o", out, *PARTITIONER, *more)
    return out


def logged(folder: Path, name: str, *more: str) -> dict[str, Any]:
    level = ("--debug-level", "intermediate", "--runs", "3", "--warmup", "1")
    answer = done("run", folder, "-o", folder / name, *level, *more, "--format", "json")
    return valid(answer, "run")["data"]


def gap_of(*files: str | Path) -> dict[str, Any]:
    return valid(done("gap", *files, "--format", "json"), "gap")["data"]


@pytest.fixture(scope="module")
def m1(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("m1", tmp_path_factory.mktemp("m1") / "out")


def test_payload_is_measured_and_layers_have_kernels_nodes_and_values(m1: Path) -> None:
    report = logged(m1, "full", *FULL)
    (part,) = report["partitions"]
    assert (part["origin"], part["engine"].split()[0]) == ("measured", "OpenVINO")
    assert part["engine"].endswith("on CPU, f32")
    files = [m1 / "model.pte", m1 / "model.etrecord", m1 / "full/run.etdp"]
    answer = done("table", "kernels", *files, "--format", "json")
    (table,) = valid(answer, "table")["data"]["tables"]
    titles = [one["id"] for one in table["columns"]]
    rows = [dict(zip(titles, row["values"], strict=True)) for row in table["rows"]]
    kinds = {row["kind"] for row in rows}
    assert {"Convolution", "FullyConnected"} <= kinds
    assert all(row["mean"] > 0 for row in rows if row["kind"] in ("Convolution", "FullyConnected"))
    assert any("aten_addmm_default" in str(row["node"]) for row in rows)
    data = gap_of(*files[:2], m1 / "full")
    assert data["coverage"]["inside"]["compared"] >= 5
    assert data["first_divergence"] is None


def test_gap_in_full_precision_tells_what_is_due_to_bf16(m1: Path) -> None:
    precisions = {
        name: gap_of(
            m1 / "model.pte",
            m1 / "model.etrecord",
            "--backend-option",
            f"openvino:precision={name}",
        )
        for name in ("f32", "bf16")
    }
    worst = {
        name: max(row["max_abs"] for row in data["rows"] if row["compared"])
        for name, data in precisions.items()
    }
    assert worst["f32"] < 1e-5
    assert worst["bf16"] == 0 or worst["bf16"] >= worst["f32"]  # processors without bf16 ignore it


def test_bisection_looks_at_what_the_payload_computes(m1: Path, tmp_path: Path) -> None:
    bound = ("--bound", "output.max_abs<=1e-5", "--format", "json")
    fine = done("bisect", m1, *bound, *FULL, "-o", tmp_path / "full")
    data = valid(fine, "bisect")["data"]
    assert data["result"] == "nothing to do"
    answer = run(
        "bisect", m1, *bound, "-o", tmp_path / "hint", "--backend-option", "openvino:precision=bf16"
    )
    assert answer.code == 0, answer.err
    found = valid(answer, "bisect")["data"]
    if found["result"] == "found":
        assert any("aten." in node["operator"] for node in found["nodes"])
        assert found["after"]["value"] <= 1e-5


def test_several_partitions_and_rules(tmp_path: Path) -> None:
    folder = compiled("m1", tmp_path / "ruled", "--deny-op", "aten.relu.default")
    report = logged(folder, "run", *FULL)
    assert [one["origin"] for one in report["partitions"]] == ["measured"] * 2
    data = gap_of(folder / "model.pte", folder / "model.etrecord", folder / "run")
    assert data["first_divergence"] is None
    rows = done("table", "verdicts", folder, "--format", "json").json["data"]["tables"][0]["rows"]
    assert any("relu" in str(row) and "not delegated" in str(row) for row in rows) or rows


def test_words_with_integers_are_exact_in_full_precision(tmp_path: Path) -> None:
    folder = compiled("m2", tmp_path / "words")
    logged(folder, "run", *FULL, "--inputs", "zeros")
    data = gap_of(folder / "model.pte", folder / "model.etrecord", folder / "run")
    assert data["first_divergence"] is None
    assert data["coverage"]["inside"]["compared"] >= 5


def test_methods_are_run_each_on_its_payload(tmp_path: Path) -> None:
    folder = compiled("methods", tmp_path / "methods")
    for method in ("forward", "score"):
        report = logged(folder, method, "--method", method, *FULL)
        assert report["method"] == method
        assert {one["origin"] for one in report["partitions"]} == {"measured"}
        files = (folder / "model.pte", folder / "model.etrecord", folder / method)
        data = gap_of(*files, "--method", method)
        assert data["first_divergence"] is None
        assert max(row["max_abs"] for row in data["rows"] if row["compared"]) < 1e-5


@pytest.mark.parametrize("how", ["openvino", "openvino:INT8_TRANSFORMER"])
def test_integers_by_the_vendors_quantizer(how: str, tmp_path: Path) -> None:
    folder = compiled("m1", tmp_path / "int8", "--quantize", how)
    report = logged(folder, "run", *FULL)
    assert {one["origin"] for one in report["partitions"]} == {"measured"}
    answer = done("table", "kernels", folder, folder / "run/run.etdp", "--format", "json")
    assert any("I8" in str(row) for row in answer.json["data"]["tables"][0]["rows"])


@pytest.mark.parametrize("layer", ["GRU", "LSTM", "RNN"])
def test_integers_of_a_recurrent_layer(layer: str, tmp_path: Path) -> None:
    """Its steps read the same weights, of which NNCF quantizes one."""
    source = tmp_path / "net.py"
    source.write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        f"        self.cells = torch.nn.{layer}(8, 16, batch_first=True)\n"
        "        self.head = torch.nn.Linear(16, 4)\n"
        "    def forward(self, x):\n"
        "        return self.head(self.cells(x)[0][:, -1])\n"
        "def build():\n"
        "    torch.manual_seed(0)\n"
        "    return Net().eval(), (torch.randn(1, 5, 8),)\n"
    )
    out = tmp_path / "out"
    done("compile", f"{source}:build", "-o", out, *PARTITIONER, "--quantize", "openvino")
    logged(out, "run", *FULL)
    data = gap_of(out / "model.pte", out / "model.etrecord", out / "run")
    assert data["coverage"]["inside"]["compared"] >= 5
    assert data["first_divergence"] is None


def test_integers_of_another_quantizer_are_exact_in_full_precision(tmp_path: Path) -> None:
    folder = compiled("int8", tmp_path / "pt2e")
    logged(folder, "run", *FULL)
    data = gap_of(folder / "model.pte", folder / "model.etrecord", folder / "run")
    assert data["coverage"]["inside"]["compared"] >= 5
    assert max(row["max_abs"] for row in data["rows"] if row["compared"]) < 1e-6


def test_evaluation_takes_the_precision(m1: Path, tmp_path: Path) -> None:
    words = ("--data", "random", "--samples", "3", "--reference", "recorded", "--format", "json")
    answer = done("eval", m1, *words, *FULL, "-o", tmp_path / "eval")
    (variant,) = valid(answer, "eval")["data"]["variants"]
    assert variant["outputs"][0]["max_abs"] < 1e-5


def test_device_that_is_missing_is_one_sentence(m1: Path, tmp_path: Path) -> None:
    answer = run(
        "run", m1 / "model.pte", "-o", tmp_path / "run", "--backend-option", "openvino:device=NPU"
    )
    assert answer.code != 0
    assert "no device NPU here; available: CPU" in answer.err
    assert json.dumps(answer.err).count("Traceback") == 0
