"""A program with a second method, state, int64 inputs and a transposed convolution, run here."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.jobs import run as jobs
from inspector.tables.operators import operators
from inspector.tables.registry import build
from inspector.tables.selection import AUTOMATIC
from inspector.tables.table import Table
from inspector.tables.tensors import tensors
from inspector.tensors.sources import session_tensors
from tests.inspector.cli_runs import run
from tests.inspector.jobs_here import Here

_SOURCE = """
import torch
from torch import nn

class OddNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 8)
        self.decoder = nn.Sequential(nn.ConvTranspose2d(8, 4, 3, stride=2), nn.BatchNorm2d(4))
        self.register_buffer("running", torch.zeros(1, 4))

    def forward(self, ids):
        x = self.decoder(self.table(ids).permute(0, 3, 1, 2)).softmax(1).mean((2, 3))
        self.running.mul_(0.9).add_(x)
        return x + self.running

    def score(self, x):
        return x.logsumexp(-1)

def source():
    net = OddNet().eval()
    score = (net.score, (torch.ones(2, 4),))
    return {"module": net, "inputs": (torch.arange(16).reshape(1, 4, 4),),
            "methods": {"score": score}, "constant_methods": {"version": 3}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("odd")
    (out / "net.py").write_text(_SOURCE)
    few = ("--runs", "2", "--warmup", "1", "--debug-level", "intermediate")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "Worker", Here)
        words = ("--partitioner", "xnnpack", "--guard", "off")
        compiled = run("compile", f"{out / 'net.py'}:source", "-o", out / "odd", *words)
        assert compiled.code == 0, compiled.err
        ran = run("run", out / "odd", "-o", out / "odd" / "run", *few)
    assert ran.code == 0, ran.err
    return out / "odd"


@pytest.fixture(scope="module")
def session(folder: Path) -> Session:
    return load_session([folder, folder / "run"])


def test_weights_and_state_have_the_names_of_their_modules(session: Session) -> None:
    (names,) = [one for one in tensors(session, "forward", AUTOMATIC).columns if one.id == "name"]
    assert list(names.values) == ["table.weight", "running"]


def test_logged_values_are_of_their_method_and_node(session: Session) -> None:
    logged = [one for one in session_tensors(session) if one.origin == "logged"]
    assert {one.method for one in logged} == {"forward"}
    names = [one.name for one in logged]
    assert names[0] == "aten_embedding_default"
    assert names[-1] == "aten_add_tensor_1 (output)"
    assert "running" in names


def test_a_layer_of_several_nodes_has_a_module_and_a_line(session: Session) -> None:
    table = operators(session, "forward", AUTOMATIC)
    cells = {column.id: list(map(str, column.values)) for column in table.columns}
    fused = next(
        at for at, name in enumerate(cells["operator"]) if "Deconv" in name or "decoder" in name
    )
    assert "norm_legit" in cells["node"][fused]
    assert cells["node"][fused].startswith("aten_permute_copy")  # of the model itself
    assert cells["module"][fused] == "decoder"
    assert "net.py" in cells["source"][fused]


def test_the_trace_of_a_range_takes_the_method_that_ran(folder: Path) -> None:
    files = (folder, folder / "run")
    answer = run("trace", *files, "--from", "0us", "--to", "1s", "--format", "json")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["data"]


def test_no_part_of_the_file_is_called_by_a_hash(session: Session) -> None:
    table = build("size", session)
    assert isinstance(table, Table)
    (found,) = [one for one in table.columns if one.id == "part"]
    assert any("Multiply" in name and "entry of" in name for name in map(str, found.values))
    assert not [name for name in map(str, found.values) if re.search(r"\b[0-9a-f]{40}", name)]
