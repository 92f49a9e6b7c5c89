"""A sequence as one run: other inputs each call, state that is kept, times by call."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
import torch

from compiler import to_edge_transform_and_lower
from schema import etdump
from tests.inspector.cli_runs import run, valid

pytestmark = pytest.mark.slow


MODEL = """
import torch


class Sum(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.total.add_(x)
        return torch.sin(self.total) * 2.5


def model():
    return Sum(), (torch.ones(3),)


def chunks():
    for number in range(5):
        yield (torch.full((3,), float(number)),)
"""


class Sum(torch.nn.Module):
    """Adds up what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        return self.total * 2


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    exported = torch.export.export(Sum(), (torch.ones(3),))
    path = tmp_path_factory.mktemp("sum") / "model.pte"
    path.write_bytes(to_edge_transform_and_lower(exported).to_executorch().buffer)
    return path


def _folder(tmp_path: Path) -> str:
    folder = tmp_path / "inputs"
    folder.mkdir()
    for number in range(12):
        torch.save([torch.full((3,), float(number))], folder / f"{number}.pt")
    return str(folder)


def _code(tmp_path: Path) -> str:
    path = tmp_path / "data.py"
    path.write_text(
        "import torch\n\ndef words():\n"
        "    for n in range(12):\n        yield (torch.full((3,), float(n)),)\n"
    )
    return f"{path}:words"


@pytest.mark.parametrize("made", [_folder, _code])
def test_each_call_has_its_inputs_and_the_state_of_the_one_before(
    tmp_path: Path, program: Path, made
) -> None:
    out = tmp_path / "run"
    words = ("--sequence", made(tmp_path), "--format", "json")
    found = run("run", str(program), *words, "-o", str(out))
    assert found.code == 0, found.err
    valid(found, "run")
    (output,) = torch.load(out / "outputs.pt", weights_only=True)
    assert output.tolist() == [2.0 * sum(range(12))] * 3
    report = json.loads((out / "run.json").read_text())
    assert [one["call"] for one in report["calls"]] == list(range(12))
    trace = etdump.decode((out / "run.etdp").read_bytes())
    calls = [one.bundled_input_index for one in trace.run_data if one.name == "Execute"]
    assert calls == list(range(12))
    table = run("table", "calls", str(out), "--format", "tsv").out.splitlines()
    titles = ["call", "inputs", "kind", "position"]
    assert table[0].split("\t")[:4] == titles
    assert table[0].split("\t")[5:] == ["state changed (B)", "state used (B)"]
    assert [line.split("\t")[:4] for line in table[1:]] == [
        [str(number), "float32 [3]", "decode" if number else "first", str(number)]
        for number in range(12)
    ]
    changed = ["0", *["12"] * 11]  # the first call adds nothing
    assert [line.split("\t")[5] for line in table[1:]] == changed
    times = run("table", "call-times", str(out), "--format", "tsv").out.splitlines()
    assert [line.split("\t")[0] for line in times[1:]] == [
        "load",
        "first call",
        "later calls",
        "median",
        "10 % within",
        "90 % within",
        "growth per call",
    ]
    state = run("table", "call-state", str(out), "--format", "tsv").out.splitlines()
    assert state[-1].split("\t")[:1] + state[-1].split("\t")[2:] == [
        "11",
        "[:]",
        "12",
        "12",
        "12",
        "11",
        "12",
        "float32 [3]",
    ]


def test_values_of_every_call_are_kept_and_compared_with_the_recorded_program(
    tmp_path: Path,
) -> None:
    source = tmp_path / "model.py"
    source.write_text(MODEL)
    folder = tmp_path / "out"
    assert run("compile", f"{source}:model", "-o", str(folder)).code == 0
    words = ("--sequence", f"{source}:chunks", "--debug-level", "intermediate")
    found = run("run", str(folder), *words, "-o", str(folder / "run"))
    assert found.code == 0, found.err
    kept = sorted((folder / "run/calls").iterdir())
    assert [path.name for path in kept] == [f"{number:05}.pt" for number in range(5)]
    before, after = (torch.load(path, weights_only=True) for path in kept[2:4])
    name = next(iter(after["state"]))
    assert torch.equal(before["state"][name], after["state before"][name])
    assert torch.equal(after["state"][name], before["state"][name] + 3.0)
    (last,) = torch.load(folder / "run/outputs.pt", weights_only=True)
    assert torch.equal(last, torch.load(kept[4], weights_only=True)["outputs"][0])

    inner = folder / "run"
    files = (folder / "model.pte", folder / "model.etrecord", inner / "values.etdp")
    answer = run("gap", *map(str, files), str(inner / "values.debug"), "--format", "json")
    data = valid(answer, "gap")["data"]
    assert [one["call"] for one in data["runs"]] == list(range(5))
    assert {one["inputs"] for one in data["runs"]} == {"inputs of the call"}
    assert data["first_divergence"] is None, data["first_divergence"]
    assert data["coverage"]["compared"] == data["coverage"]["instruction_outputs"] >= 10
    labels = run("table", "operators", *map(str, (folder / "model.pte", inner / "run.etdp"))).out
    assert "call 3" in labels
    assert "test case" not in labels


def test_the_first_call_and_node_that_diverge_are_named(tmp_path: Path) -> None:
    source = tmp_path / "model.py"
    source.write_text(MODEL)
    folder = tmp_path / "out"
    assert run("compile", f"{source}:model", "-o", str(folder)).code == 0
    words = ("--sequence", f"{source}:chunks", "--debug-level", "intermediate")
    assert run("run", str(folder), *words, "-o", str(folder / "run")).code == 0
    inner = folder / "run"
    plant(inner, call=3)
    files = (folder / "model.pte", folder / "model.etrecord", inner / "values.etdp")
    answer = run("gap", *map(str, files), str(inner / "values.debug"))
    assert "first divergence: call 3, aten_mul_tensor" in answer.out, answer.out


def plant(folder: Path, call: int) -> None:
    """Change what the multiplication of a call logged."""
    trace = etdump.decode((folder / "values.etdp").read_bytes())
    data = bytearray((folder / "values.debug").read_bytes())
    (mine,) = (one for one in trace.run_data if one.bundled_input_index == call)
    (tensor,) = (
        tensor
        for event in mine.events
        if getattr(event, "instruction_id", None) == 2 and getattr(event, "value", None) is not None
        for tensor in event.value.all_tensors()
    )
    data[tensor.offset : tensor.offset + 4] = struct.pack("<f", 1024.0)
    (folder / "values.debug").write_bytes(data)


@pytest.mark.parametrize("wrong", ["torch.ones(4)", "torch.ones(3).double()"])
def test_an_error_names_the_call_that_it_is_in(tmp_path: Path, program: Path, wrong: str) -> None:
    path = tmp_path / "data.py"
    path.write_text(
        "import torch\n\ndef words():\n"
        f"    for n in range(5):\n        yield (torch.ones(3) if n != 3 else {wrong},)\n"
    )
    words = ("--sequence", f"{path}:words", "-o", str(tmp_path / "r"))
    found = run("run", str(program), *words)
    assert found.code == 2
    assert found.err.startswith("etscope: call 3, method 'forward': ")


def test_what_a_sequence_has_no_place_for_is_refused(tmp_path: Path, program: Path) -> None:
    folder = _folder(tmp_path)
    for words, sentence in (
        (("--runs", "3"), "--sequence cannot be combined with --runs"),
        (("--threads", "sweep", "--warmup", "0"), "with --warmup, --threads sweep"),
    ):
        found = run("run", str(program), "--sequence", folder, "-o", str(tmp_path / "r"), *words)
        assert found.code == 2
        assert sentence in found.err
    found = run("run", str(program), "--sequence", "random", "-o", str(tmp_path / "r"))
    assert "expected FILE.py:NAME" in found.err
    (tmp_path / "none").mkdir()
    found = run(
        "run", str(program), "--sequence", str(tmp_path / "none"), "-o", str(tmp_path / "r")
    )
    assert found.code
    assert "found none" in found.err
