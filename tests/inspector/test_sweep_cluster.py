"""Sweeps on a Dask cluster: files that come back, points that fail, what is not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inspector.experiments.sweeps.cluster import ClusterError, ClusterRunner, point_on_worker
from inspector.experiments.sweeps.grid import parse_grid, points_of
from inspector.experiments.sweeps.results import Status, read_results
from inspector.experiments.sweeps.task import SweepSettings
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.source import Source
from tests.inspector.cli_runs import run

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("cluster_sweep.py")
SOURCE = """
import torch
def net():
    return torch.nn.Sequential(torch.nn.Linear(4, 4)).eval(), (torch.ones(2, 4),)
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(SOURCE)
    source = {"path": str(tmp_path / "net.py"), "function": "net"}
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps({"recipe": 1, "job": {"source": source}}))
    return path


def test_points_of_a_cluster_come_back_as_files(recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    broken = tmp_path / "nobody.py"
    broken.write_text("class Nobody: ...\nraise RuntimeError('nobody')")
    words = [str(recipe), "--grid", f"partitioners=none,{broken}:Nobody", "-o", str(folder)]
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 4, done.stderr  # one point fails
    found = read_results(folder)
    portable, unknown = found.points
    assert (portable.status, unknown.status) == (Status.DONE, Status.FAILED)
    assert "nobody" in unknown.sentence
    for name in ("model.pte", "model.etrecord", "recipe.json", "compile.json", "point.json"):
        assert (folder / portable.folder / name).is_file(), name
    gate = run("gate", folder / portable.folder / "model.pte", "--require", "delegated==0%")
    assert gate.code == 0, gate.err


def test_cluster_that_is_not_there_is_one_sentence(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["sweep", recipe, "--grid", "rules.min_nodes=1", "-o", tmp_path / "out", "--cluster"]

    monkeypatch.setitem(sys.modules, "distributed", None)  # not installed
    answer = run(*words, "tcp://127.0.0.1:1")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "pip install 'etscope[cluster]'" in answer.err
    assert not (tmp_path / "out").exists()
    both = run(*words, "tcp://127.0.0.1:1", "--workers", "2")
    assert both.code == 2
    assert "--workers applies to this machine" in both.err


class Nobody:
    """A module of a cluster that answers nothing."""

    def Client(self, address: str, **_: Any) -> None:  # noqa: N802 - as it is called there
        raise OSError(f"Timed out trying to connect to {address}")


def test_address_without_a_cluster_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", Nobody())
    with pytest.raises(ClusterError, match=r"no Dask cluster at tcp://127\.0\.0\.1:1"):
        ClusterRunner("tcp://127.0.0.1:1", tmp_path, SweepSettings())


@pytest.mark.parametrize(
    ("sha256", "words"), [("0" * 64, "is another file on"), ("", "cannot be read on")]
)
def test_source_that_is_another_one_on_the_worker_fails_the_point(
    recipe: Path, sha256: str, words: str
) -> None:
    path = str(recipe.with_name("net.py") if sha256 else recipe.with_name("gone.py"))
    point = points_of(CompileJob(Source(path, "net")), parse_grid(["rules.min_nodes=1"]), "")[0]
    request = {
        "number": 0,
        "key": point.key,
        "changes": [["rules.min_nodes", 1]],
        "job": {"source": {"path": path, "function": "net"}},
        "sha256": sha256,
        "settings": {},
        "stop": "",
    }
    answer = point_on_worker(request)
    assert answer["result"]["status"] == "failed"
    assert words in answer["result"]["sentence"]
    assert answer["files"] == {}
