"""A quantized program beside its float program, layer by layer."""

from __future__ import annotations

import json
import math
import re
import shutil
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inspector.recipes.float_program import is_quantized
from inspector.tables.numeric_gap import loss_words
from tests.inspector.cli_runs import run, valid

pytestmark = pytest.mark.slow

SOURCE = '''
import torch
from torch import nn


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        y = torch.relu(self.norm(self.first(x)))
        y = torch.relu(self.second(y) + y)
        return self.fc(y.mean((2, 3)))


class Layers(nn.Module):
    def __init__(self, bias=True):
        super().__init__()
        self.first = nn.Linear(16, 64, bias=bias)
        self.second = nn.Linear(64, 64, bias=bias)
        self.last = nn.Linear(64, 8, bias=bias)

    def forward(self, x):
        return self.last(torch.tanh(self.second(torch.relu(self.first(x)))))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.q, self.k, self.v, self.out = (nn.Linear(32, 32) for _ in range(4))
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        y = self.norm(x)
        weights = torch.softmax(self.q(y) @ self.k(y).transpose(1, 2) / 32**0.5, -1)
        x = x + self.out(weights @ self.v(y))
        return x + self.down(nn.functional.gelu(self.up(x)))


class Memory(nn.Module):
    """Keeps a state between calls."""

    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(1, 16))
        self.mix, self.out = nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x):
        new = torch.tanh(self.mix(x + self.state))
        self.state.copy_(new)
        return self.out(new)


class Gated(nn.Module):
    """Its SiLU is one operator of the source and two of the edge program."""

    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = (nn.Linear(32, 32) for _ in range(3))

    def forward(self, x):
        return x + self.down(nn.functional.silu(self.gate(x)) * self.up(x))

    def half(self, x):
        return self.forward(x[:1])


def trained(module):
    generator = torch.Generator().manual_seed(3)
    for name, value in module.state_dict().items():
        if "norm" in name and value.dtype == torch.float32:
            value.copy_(torch.rand(value.shape, generator=generator) + 0.5)
    return module.eval()


def made(kind, *shape):
    torch.manual_seed(1)
    return trained(kind()), (torch.randn(*shape),)


def images():
    return made(Images, 2, 3, 8, 8)


def layers():
    return made(Layers, 4, 16)


def attention():
    return made(Attention, 1, 6, 32)


def gated():
    module, inputs = made(Gated, 4, 32)
    return {"module": module, "inputs": inputs, "methods": {"half": (module.half, inputs)}}


def memory():
    return made(Memory, 1, 16)


def unseeded():
    torch.seed()
    return Layers().eval(), (torch.randn(4, 16),)


def unseeded_without_bias():
    torch.seed()
    return Layers(False).eval(), (torch.randn(4, 16),)
'''


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("float") / "models.py"
    path.write_text(SOURCE)
    return path


def built(source: Path, function: str, *quantize: str) -> Path:
    """Compile, run with values; return the folder."""
    folder = source.parent / "_".join((function, *quantize)).replace("=", "-").replace(":", "-")
    if not folder.exists():
        words = ("--partitioner", "xnnpack", *quantize)
        found = run("compile", f"{source}:{function}", *words, "-o", str(folder))
        assert found.code == 0, found.err
        values = ("--debug-level", "intermediate", "--seed", "3")
        found = run("run", str(folder), *values, "-o", str(folder / "run"))
        assert found.code == 0, found.err
    return folder


def files(folder: Path) -> list[str]:
    named = [folder / "model.pte", folder / "model.etrecord"]
    inner = folder / "run"
    there = [one for one in ("values.etdp", "values.debug") if (inner / one).is_file()]
    return [str(path) for path in (*named, *(inner / one for one in there or ("run.etdp",)))]


def gap(folder: Path, *words: str) -> dict[str, Any]:
    answer = run("gap", *files(folder), "--reference", "float", *words, "--format", "json")
    assert answer.code == 0, answer.err
    return valid(answer, "gap")["data"]


def float_module(source: Path, function: str) -> Any:
    found: dict[str, Any] = {}
    exec(compile(source.read_text(), str(source), "exec"), found)
    return found[function]()[0]


FAMILIES = [
    ("images", ("--quantize", "static")),
    ("layers", ("--quantize", "static")),
    ("layers", ("--quantize", "dynamic")),
    ("layers", ("--quantize", "weight-only")),
    ("attention", ("--quantize", "static")),
    ("attention", ("--quantize", "8da4w:group=32")),
    ("memory", ("--quantize", "static")),
]


@pytest.mark.parametrize(("function", "words"), FAMILIES)
def test_last_error_is_the_distance_of_the_output_from_the_float_module(
    source: Path, function: str, words: tuple[str, ...]
) -> None:
    folder = built(source, function, *words)
    data = gap(folder)
    assert data["runs"][0]["is_float"]
    given = torch.load(folder / "run/inputs.pt", weights_only=True)
    output = torch.load(folder / "run/outputs.pt", weights_only=True)[-1]
    with torch.no_grad():
        expected = float_module(source, function)(*given)
    apart = float((output - expected).abs().max())
    assert apart > 1e-5
    compared = [row for row in data["rows"] if row["compared"] and row["place"] == "instruction"]
    assert compared, data["notes"]
    assert any(row["max_abs"] == pytest.approx(apart, rel=1e-3) for row in compared)


@pytest.mark.parametrize(
    ("function", "modules", "mode"),
    [
        ("images", ("second", "fc"), "static"),
        ("layers", ("first", "second", "last"), "static"),
        ("layers", ("first", "second", "last"), "weight-only"),
        ("attention", ("q", "up", "down"), "8da4w:group=32"),
        ("memory", ("mix", "out"), "dynamic"),
    ],
)
def test_the_only_quantized_layer_is_the_one_that_loses(
    source: Path, function: str, modules: tuple[str, ...], mode: str
) -> None:
    for module in modules:
        words = ("--quantize", "none", "--quantize-module", f"{module}={mode}")
        data = gap(built(source, function, *words), "--sort", "own")
        known = [row for row in data["rows"] if row["own"] is not None]
        assert known, data["notes"]
        lossy = [row for row in known if row["own"]["max_abs"] > 1e-4]
        assert lossy, module
        exact = {row["module"] for row in known} - {row["module"] for row in lossy}
        others = {row["module"] for row in lossy} - {None, module}
        assert not others, (module, others)
        assert exact - {None}, "no layer was told apart"


@pytest.mark.parametrize(
    ("function", "module", "mode"),
    [("layers", "second", "static"), ("attention", "up", "8da4w:group=32")],
)
def test_table_of_losses_begins_with_the_only_quantized_module(
    source: Path, function: str, module: str, mode: str
) -> None:
    folder = built(source, function, "--quantize", "none", "--quantize-module", f"{module}={mode}")
    answer = run("table", "layer-losses", *files(folder), "--format", "json")
    (table,) = json.loads(answer.out)["data"]["tables"]
    ids = [column["id"] for column in table["columns"]]
    all_rows = [dict(zip(ids, row["values"], strict=True)) for row in table["rows"]]
    rows = [row for row in all_rows if row["module"]]  # the input that is quantized has none
    assert rows[0]["module"] == module
    others = [row["own_error"] or 0.0 for row in rows[1:]]
    assert others
    assert rows[0]["own_error"] > 100 * max(others)
    data = gap(folder)
    mine = [row["own"] for row in data["rows"] if row["module"] == module and row["own"]]
    assert rows[0]["own_error"] == pytest.approx(max(10 ** (-one["snr_db"] / 20) for one in mine))
    shown = run("gap", *files(folder), "--reference", "float").out
    assert "loss by module" in shown


def test_integers_are_compared_as_what_they_stand_for(source: Path) -> None:
    data = gap(built(source, "images", "--quantize", "static"))
    inside = [row for row in data["rows"] if row["place"] == "inside" and row["compared"]]
    assert len(inside) >= 4
    for row in inside:
        assert row["dtype"] == "float32"
        assert row["snr_db"] is None or row["snr_db"] > 15, row["node"]


@pytest.mark.parametrize("words", [("--quantize", "8da4w:group=32"), ("--quantize", "static")])
def test_layers_of_each_of_several_methods_are_beside_their_own(
    source: Path, words: tuple[str, ...]
) -> None:
    folder = built(source, "gated", *words)
    for method in ("forward", "half"):
        traced = folder / f"run_{method}"
        values = ("--debug-level", "intermediate", "--method", method, "-o", str(traced))
        assert run("run", str(folder), *values).code == 0
        program = (str(folder / "model.pte"), str(folder / "model.etrecord"))
        made = (str(traced / "values.etdp"), str(traced / "values.debug"))
        answer = run("gap", *program, *made, "--reference", "float", "--format", "json")
        assert answer.code == 0, answer.err
        data = valid(answer, "gap")["data"]
        layers = {
            row["module"]: row["own"]["snr_db"]
            for row in data["rows"]
            if row["compared"] and row["module"] in ("gate", "up", "down")
        }
        assert set(layers) == {"gate", "up", "down"}
        assert all(snr is None or snr > 12 for snr in layers.values()), (method, layers)
    both = [str(folder / "model.pte"), str(folder / "model.etrecord")]
    both += [str(folder / f"run_{name}" / file) for name in ("forward", "half") for file in VALUES]
    _expect_losses_of(both, ("forward", "half"))


VALUES = ("values.etdp", "values.debug")


def _expect_losses_of(paths: list[str], methods: tuple[str, ...]) -> None:
    """Assert that text has a sentence and a table for each method, as its own comparison has."""
    told = run("gap", *paths, "--reference", "float").out
    for method in methods:
        alone = run("gap", *paths, "--reference", "float", "--method", method).out
        (sentence,) = re.findall(r"^Largest loss by quantization.*$", alone, re.MULTILINE)
        assert f"{method}: {sentence}" in told.splitlines()
        assert _table_below("loss by module", alone) == _table_below(
            f"loss by module, {method}", told
        )


def _table_below(title: str, text: str) -> list[str]:
    """Return the words of the rows below a title."""
    lines = text.splitlines()
    rows = lines[lines.index(title) + 1 :]
    end = rows.index("") if "" in rows else len(rows)
    return [" ".join(row.split()) for row in rows[:end]]


def test_text_names_the_layer_that_loses_most(source: Path) -> None:
    folder = built(source, "attention", "--quantize", "8da4w:group=32")
    answer = run("gap", *files(folder), "--reference", "float")
    assert re.search(r"Largest loss by quantization: .*, SNR [0-9.]+ dB by itself", answer.out)
    assert "the float program in the record of" in answer.out


def _without_float_program(folder: Path, to: Path) -> Path:
    """Copy a compile and its run; leave out the float program in its record, as of large ones."""
    shutil.copytree(folder, to)
    record = to / "model.etrecord"
    with zipfile.ZipFile(folder / "model.etrecord") as old, zipfile.ZipFile(record, "w") as new:
        kept = [one for one in old.infolist() if not one.filename.startswith("float/")]
        assert len(kept) < len(old.infolist())
        for one in kept:
            new.writestr(one, old.read(one))
    return to


@pytest.mark.parametrize("function", ["unseeded", "unseeded_without_bias"])
def test_a_source_of_other_weights_is_no_float_reference(
    source: Path, function: str, tmp_path: Path
) -> None:
    whole = built(source, function, "--quantize", "static")
    assert gap(whole)["coverage"]["compared"] > 0  # with the float program that it keeps
    data = gap(_without_float_program(whole, tmp_path / "bare"))
    assert any("no float reference" in note and "seed it" in note for note in data["notes"])
    assert data["coverage"]["compared"] == 0


def test_without_its_source_there_is_no_float_reference(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "moved"
    shutil.copytree(built(source, "layers", "--quantize", "static"), folder)
    recipe = folder / "recipe.json"
    if recipe.exists():
        recipe.unlink()
    copy = tmp_path / "models.py"
    shutil.copy(source, copy)
    made = tmp_path / "made"
    assert run("compile", f"{copy}:layers", "--quantize", "static", "-o", str(made)).code == 0
    values = ("--debug-level", "intermediate")
    assert run("run", str(made), *values, "-o", str(made / "run")).code == 0
    copy.unlink()
    data = gap(made)
    assert data["coverage"]["compared"] > 0
    assert "the float program in the record of" in json.dumps(data)
    data = gap(_without_float_program(made, tmp_path / "bare"))
    assert any(note.startswith("no float reference: ") for note in data["notes"])


def test_comparison_beside_the_float_programs(source: Path) -> None:
    one = files(built(source, "layers", "--quantize", "static"))
    two = files(built(source, "layers", "--quantize", "weight-only"))
    words = ("--reference", "float", "--format", "json")
    answer = run("compare", ",".join(one), ",".join(two), *words)
    assert answer.code == 0, answer.err
    text = json.dumps(valid(answer, "compare")["data"])
    assert "beside the float programs" in text


@pytest.mark.parametrize(
    ("target", "quantized"),
    [
        ("quantized_decomposed.quantize_per_tensor.default", True),
        ("cadence.quantized_linear.default", True),
        ("cortex_m.dequantize_per_tensor.default", True),
        ("aten._weight_int4pack_mm.default", True),
        ("torchao.choose_qparams_affine.default", True),
        ("aten.linear.default", False),
        ("aten.quantile.default", False),
    ],
)
def test_program_with_quantized_operators_of_any_vendor_is_no_float_program(
    target: str, quantized: bool
) -> None:
    node = SimpleNamespace(target=target)
    record: Any = SimpleNamespace(
        roles=SimpleNamespace(exported="exported_program", edge={}),
        graph=lambda _member: SimpleNamespace(calls=lambda: [node]),
    )
    assert is_quantized(record, "forward") is quantized


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ([(1, 50.0), (2, 30.0), (2, math.inf)], "last output SNR 30.0 dB"),  # values and indices
        ([(1, 50.0), (2, math.inf)], "last output equal"),
        ([(1, 50.0), (2, None)], "last output SNR unknown"),
        ([(1, 50.0), (-2, math.inf)], "last output SNR 50.0 dB"),  # a write of state
    ],
)
def test_loss_at_the_end_is_that_of_the_worst_output_there(
    outputs: list[tuple[int, float | None]], words: str
) -> None:
    rows = [
        SimpleNamespace(
            instruction=abs(at),
            operator="o" if at > 0 else "aten::copy_",
            total=SimpleNamespace(snr_db=snr),
            diverges=False,
        )
        for at, snr in outputs
    ]
    worst = SimpleNamespace(own=rows[0].total, covers=(), node="n", operator="o", module="")
    run: Any = SimpleNamespace(largest_loss=lambda: worst, outside=lambda: rows, rows=rows)
    assert loss_words(run).endswith(words)
