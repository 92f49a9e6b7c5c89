"""A sequence as one run: other inputs each call, state that is kept, times by call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from compiler import to_edge_transform_and_lower
from schema import etdump
from tests.inspector.cli_runs import run, valid

pytestmark = pytest.mark.slow


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
    assert table[0] == "call\tinputs\ttime (ns)"
    assert [line.split("\t")[:2] for line in table[1:]] == [
        [str(number), "float32 [3]"] for number in range(12)
    ]


def test_what_a_sequence_has_no_place_for_is_refused(tmp_path: Path, program: Path) -> None:
    folder = _folder(tmp_path)
    for words, sentence in (
        (("--runs", "3"), "--sequence cannot be combined with --runs"),
        (("--debug-level", "outputs", "--warmup", "0"), "with --warmup, --debug-level"),
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
