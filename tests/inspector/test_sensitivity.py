"""Sensitivity: one module quantized at a time, ordered by what it costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inspector.experiments.sweeps.results import PointResult, Results, Status
from inspector.experiments.sweeps.sensitivity import MODE, MODULES, sensitivity_data
from inspector.recipes.compile_job import CompileJob, Quantization
from inspector.recipes.recipe import Recipe
from inspector.recipes.source import parse_source
from inspector.tables.sensitivity import sensitivity_table
from tests.inspector.cli_runs import run

pytestmark = pytest.mark.slow

SOURCE = """
import torch
from torch import nn


class Layers(nn.Module):
    def __init__(self, worst):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(32, 32), nn.Linear(32, 32), nn.Linear(32, 8)
        with torch.no_grad():
            for name in ("first", "second", "last"):
                weight = getattr(self, name).weight
                if name == worst:  # one weight spreads the scale of all others of its row
                    weight[:, 0] = 30.0

    def forward(self, x):
        x = torch.cat([torch.zeros_like(x[:, :1]), x[:, 1:]], 1)
        y = torch.relu(self.first(x))
        y = torch.cat([torch.zeros_like(y[:, :1]), y[:, 1:]], 1)
        y = torch.relu(self.second(y))
        y = torch.cat([torch.zeros_like(y[:, :1]), y[:, 1:]], 1)
        return self.last(y)


def made(worst):
    torch.manual_seed(2)
    return Layers(worst).eval(), (torch.randn(16, 32),)


def first():
    return made("first")


def last():
    return made("last")
"""


@pytest.mark.parametrize(("worst", "mode"), [("last", "8da4w")])
def test_the_module_that_costs_most_comes_first_with_the_edit_that_leaves_it(
    tmp_path: Path, worst: str, mode: str
) -> None:
    source = tmp_path / "model.py"
    source.write_text(SOURCE)
    out = tmp_path / "out"
    words = ("--partitioner", "xnnpack", "--quantize", mode)
    assert run("compile", f"{source}:{worst}", *words, "-o", str(out)).code == 0
    swept = tmp_path / "sweep"
    how = ("--sensitivity", "--workers", "1", "-o", str(swept))
    answer = run("sweep", str(out / "recipe.json"), *how, "--format", "json")
    assert answer.code == 0, answer.err
    points = json.loads(answer.out)["data"]["points"]
    assert [one["status"] for one in points] == ["done"] * 5
    lines = run("table", "sensitivity", str(swept), "--format", "tsv").out.splitlines()
    rows = [line.split("\t") for line in lines[1:]]
    assert rows[0][0] == worst
    assert {row[0] for row in rows[:3]} == {"first", "second", "last"}
    assert [row[0] for row in rows[3:]] == ["the recipe", "nothing quantized"]
    snr = [float(row[1]) for row in rows]
    assert snr[0] < snr[1] - 3
    assert snr[4] > snr[2]

    edit = next(cell for cell in rows[0] if cell.startswith("--quantize-module")).split(" ")
    better = tmp_path / "better"
    found = run("compile", f"{source}:{worst}", *words, *edit, "-o", str(better))
    assert found.code == 0, found.err
    data = ("--data", "random", "--samples", "2", "-o", str(tmp_path / "eval"), "--format", "json")
    beside = run("eval", str(out), str(better), *data)
    assert beside.code == 0, beside.err
    first, second = json.loads(beside.out)["data"]["variants"]
    assert second["outputs"][0]["snr_db"] > first["outputs"][0]["snr_db"] + 3

    again = run("sweep", str(out / "recipe.json"), *how, "--format", "json")
    resumed = json.loads(again.out)["data"]["points"]
    assert [one["attempts"] for one in resumed] == [0] * 5  # nothing is done twice
    assert [one["metrics"] for one in resumed] == [one["metrics"] for one in points]


TWO_METHODS = """
import torch
from torch import nn


class Tied(nn.Module):
    # a table that is the last layer too, as of language models

    def __init__(self):
        super().__init__()
        self.table, self.deep = nn.Embedding(48, 32), nn.Linear(32, 32)
        self.head = nn.Linear(32, 48, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens):
        x = self.deep(self.table(tokens))
        return self.head(x @ x.transpose(-1, -2) @ x)


def both():
    torch.manual_seed(2)
    model = Tied().eval()
    short, long = torch.tensor([[3]]), torch.tensor([[3, 7, 1, 4]])
    inputs = {"decode": short, "prefill": long}
    return {name: torch.export.export(model, (one,)) for name, one in inputs.items()}
"""


def test_each_method_has_a_sensitivity_of_its_own_and_tied_layers_their_names(
    tmp_path: Path,
) -> None:
    source, out = tmp_path / "model.py", tmp_path / "out"
    source.write_text(TWO_METHODS)
    words = ("--quantize", "8da4w:group=32", "--quantize-module", "head=none")
    assert run("compile", f"{source}:both", *words, "-o", str(out)).code == 0
    recipe = str(out / "recipe.json")

    def swept(name: str, *more: str) -> list[list[str]]:
        how = ("--sensitivity", "--workers", "1", "-o", str(tmp_path / name), *more)
        answer = run("sweep", recipe, *how, "--format", "tsv")
        assert answer.code == 0, answer.err
        return [line.split("\t") for line in answer.out.splitlines()[1:]]

    rows = swept("first")
    alone = {row[0]: next(cell for cell in row if cell.startswith("--")) for row in rows[:-2]}
    assert alone == {name: f"--quantize-module {name}=none" for name in ("deep", "head")}
    other = swept("other", "--method", "prefill")
    assert {row[1] for row in rows}.isdisjoint(row[1] for row in other[:-1])
    found = run("sweep", recipe, "--sensitivity", "--method", "last", "-o", str(tmp_path / "x"))
    assert found.code == 2
    assert "unknown method 'last'; available: decode, prefill" in found.err


def test_a_table_of_embeddings_is_quantized_alone_and_left_out(tmp_path: Path) -> None:
    source, out = tmp_path / "model.py", tmp_path / "out"
    source.write_text(TWO_METHODS)
    words = ("--quantize", "8da4w", "--quantize-embedding", "2:group=32")
    assert run("compile", f"{source}:both", *words, "-o", str(out)).code == 0
    recipe, swept = str(out / "recipe.json"), str(tmp_path / "sweep")
    answer = run("sweep", recipe, "--sensitivity", "--workers", "1", "-o", swept, "--format", "tsv")
    assert answer.code == 0, answer.err
    rows = [line.split("\t") for line in answer.out.splitlines()[1:]]
    assert {row[0] for row in rows[:-2]} == {"table", "deep", "head"}
    table = next(row for row in rows if row[0] == "table")
    edit = next(cell for cell in table if cell.startswith("--")).split(" ")
    assert edit == ["--quantize-module", "table=none"]
    assert run("compile", "--recipe", recipe, *edit, "-o", str(tmp_path / "better")).code == 0
    sizes = [(folder / "model.pte").stat().st_size for folder in (out, tmp_path / "better")]
    assert sizes[1] > sizes[0] + 2000  # the table is in float


def test_tables_quantized_alone_have_a_sensitivity(tmp_path: Path) -> None:
    """A recipe without a mode, whose layers are floats."""
    source, out = tmp_path / "model.py", tmp_path / "out"
    source.write_text(TWO_METHODS)
    words = ("--quantize-embedding", "4")
    assert run("compile", f"{source}:both", *words, "-o", str(out)).code == 0
    recipe, swept = str(out / "recipe.json"), str(tmp_path / "sweep")
    answer = run("sweep", recipe, "--sensitivity", "--workers", "1", "-o", swept, "--format", "tsv")
    assert answer.code == 0, answer.err
    rows = [line.split("\t")[0] for line in answer.out.splitlines()[1:]]
    assert rows == ["table", "the recipe", "nothing quantized"]


@pytest.mark.parametrize(
    ("source", "data"),
    [
        ("model.yaml", ("random", 16)),
        ("model.yml", ("random", 16)),
        ("model.py:both", ("example", None)),
        ("model.pt2", ("example", None)),
    ],
)
def test_language_models_are_evaluated_on_random_tokens(
    source: str, data: tuple[str, int | None]
) -> None:
    # their example inputs are zeros
    assert sensitivity_data(CompileJob(parse_source(source))) == data


def test_random_tokens_need_no_option_that_ends_them(tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_text("quantization: {qmode: int8}\n")
    job = CompileJob(parse_source(str(tmp_path / "model.yaml")), quantising=Quantization("int8"))
    recipe = tmp_path / "recipe.json"
    recipe.write_text(Recipe(job).text)
    found = run("sweep", str(recipe), "--sensitivity", "-o", str(tmp_path / "s"))
    assert "compile it first" in found.err  # what is checked behind the data


def test_what_has_no_sensitivity_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "model.py"
    source.write_text(SOURCE)
    out = tmp_path / "out"
    assert run("compile", f"{source}:first", "-o", str(out)).code == 0
    recipe, folder = str(out / "recipe.json"), str(tmp_path / "s")
    found = run("sweep", recipe, "--sensitivity", "-o", folder)
    assert found.code == 2
    assert "expected a mode of quantization" in found.err
    found = run("sweep", recipe, "--sensitivity", "--grid", "rules.min_nodes=1,2", "-o", folder)
    assert "use one" in found.err
    named = str(out / "model.etrecord")
    found = run("sweep", recipe, "--record", named, "--grid", "rules.min_nodes=1", "-o", folder)
    assert found.code == 2
    assert "use both" in found.err
    words = ("--sensitivity", "--record", str(tmp_path / "none.etrecord"), "-o", folder)
    assert "none.etrecord" in run("sweep", recipe, *words).err
    (out / "model.etrecord").unlink()
    assert "compile it first" in run("sweep", recipe, "--sensitivity", "-o", folder).err


def test_only_a_point_that_was_compared_is_exact() -> None:
    def point(number: int, **more: Any) -> PointResult:
        changes = {MODE: "none", MODULES: [f"layer{number}=int8"]}
        return PointResult(number, f"k{number}", changes, **more)

    exact: dict[str, float | None] = {"eval.snr": None, "eval.max_abs": 0.0}
    points = (
        point(0, status=Status.DONE, metrics=exact),
        point(1, status=Status.FAILED, sentence="the compile failed"),
        point(2),
    )
    table = sensitivity_table(Results("recipe.json", (), points, ()))
    cells = {str(table.text(row, 0)): str(table.text(row, 1)) for row in range(table.length)}
    states = {str(table.text(row, 0)): str(table.text(row, -1)) for row in range(table.length)}
    assert set(cells.values()) == {""}
    assert states["layer0"] == "done, exact"
    assert states["layer1"] == "the compile failed"
    assert states["layer2"] == "waiting"
