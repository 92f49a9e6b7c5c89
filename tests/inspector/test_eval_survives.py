"""Evaluations that are killed, cancelled or fail in the middle keep their samples and go on."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inspector.experiments.evaluate.report import evaluation_report, report_content
from inspector.experiments.evaluate.request import EvalRequest, evaluation_job
from inspector.files.load import load_session
from inspector.jobs.eval_samples import read_evaluation
from inspector.jobs.messages import Counted, Ended, Outcome
from inspector.jobs.run import JobRun
from tests.inspector.cli_runs import run
from tests.inspector.sessions import DATA

pytestmark = pytest.mark.slow

PROGRAMS = [DATA / "runs" / name for name in ("convnet_portable", "convnet_xnnpack")]
SAMPLES, STOP = 5, 3
_DATA = f"""
import time
from pathlib import Path
import torch

OPEN = Path(__file__).with_name("open")

def images():
    generator = torch.Generator().manual_seed(5)
    for number in range({SAMPLES}):
        while number == {STOP} and not OPEN.exists():
            time.sleep(0.01)
        yield torch.randn((1, 3, 32, 32), generator=generator), number

def agreement(output, number):
    if number < {STOP}:
        return 1.0
    labels = Path(__file__).with_name("labels.txt")
    if not labels.exists():
        raise LookupError("no labels yet")
    return (output.argmax() == int(labels.read_text().split()[number])).float()
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.py"
    path.write_text(_DATA, "utf-8")
    return path


def _figures(folder: Path) -> dict[str, Any]:
    return report_content(evaluation_report(read_evaluation(folder)))


def _stopped(data: Path, folder: Path, end: Callable[[JobRun], object]) -> Outcome:
    """Evaluate until the data set waits, end that, and return the outcome."""
    sessions = [load_session([path]) for path in PROGRAMS]
    running = JobRun(evaluation_job(sessions, EvalRequest(f"{data}:images")), folder)
    done, until = 0, time.monotonic() + 100
    while done < STOP and time.monotonic() < until:
        done += sum(isinstance(one, Counted) for one in running.take(0.1))
    end(running)
    outcome = running.wait(100)
    running.close()
    assert outcome is not None
    return outcome


@pytest.mark.usefixtures("real_workers")
@pytest.mark.parametrize(
    ("end", "ended", "words"),
    [
        (lambda run: os.kill(run.pid, signal.SIGKILL), Ended.CRASHED, "was killed (SIGKILL)"),
        (JobRun.cancel, Ended.CANCELLED, "cancelled in stage evaluate"),
    ],
    ids=["killed", "cancelled"],
)
def test_finished_samples_are_kept_and_the_next_call_gives_the_figures_of_one_run(
    data: Path, end: Callable[[JobRun], object], ended: Ended, words: str
) -> None:
    folder, whole = data.parent / "out", data.parent / "whole"
    outcome = _stopped(data, folder, end)
    assert (outcome.ended, words in outcome.sentence) == (ended, True), outcome.sentence
    assert list(read_evaluation(folder).samples) == list(range(STOP))
    data.with_name("open").touch()
    options = ("--data", f"{data}:images", "-o")
    again = run("eval", *PROGRAMS, *options, folder)
    assert again.code == 0, again.err
    assert f"{STOP} samples of an earlier call reused" in again.out
    assert run("eval", *PROGRAMS, *options, whole).code == 0
    assert _figures(folder) == _figures(whole)
    assert _figures(folder)["samples"] == SAMPLES


def test_metric_that_raises_in_the_middle_goes_on_when_its_cause_is_gone(data: Path) -> None:
    data.with_name("open").touch()
    folder, whole = data.parent / "out", data.parent / "whole"
    options = ("--data", f"{data}:images", "--metric", f"{data}:agreement", "-o")
    broken = run("eval", *PROGRAMS, *options, folder)
    assert broken.code != 0
    line = 1 + next(at for at, one in enumerate(_DATA.splitlines()) if "raise LookupError" in one)
    assert f"data.py:{line}: LookupError: no labels yet" in broken.err
    assert f"({STOP} samples kept in {folder}; the same command resumes)" in broken.err
    data.with_name("labels.txt").write_text(" ".join("0" * SAMPLES), "utf-8")
    again = run("eval", *PROGRAMS, *options, folder)
    assert again.code == 0, again.err
    assert f"{STOP} samples of an earlier call reused" in again.out
    assert run("eval", *PROGRAMS, *options, whole).code == 0
    assert _figures(folder) == _figures(whole)


_LIBRARY = """
import os
import signal
from pathlib import Path
import torch

FRAGILE = Path(__file__).with_name("fragile")
library = torch.library.Library("frail", "DEF")
library.define("relu(Tensor x) -> Tensor")
library.define("relu.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")

def relu(x):
    if x.device.type == "cpu" and FRAGILE.exists() and float(x.sum()) == 8.0:
        FRAGILE.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return torch.relu(x)

library.impl("relu", relu, "CPU")
library.impl("relu", torch.relu, "Meta")
"""
_SOURCE = """
import operators
import torch

class Safe(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 3.0

class Frail(torch.nn.Module):
    def forward(self, x):
        return torch.ops.frail.relu(x) * 3.001

def safe():
    return Safe(), (torch.ones(2, 2),)

def frail():
    return Frail(), (torch.ones(2, 2),)

def batches():
    return [torch.full((2, 2), float(number)) for number in range(5)]
"""


def test_variant_whose_worker_was_killed_is_left_out_and_tried_again_by_the_next_call(
    tmp_path: Path,
) -> None:
    library, source = tmp_path / "operators.py", tmp_path / "source.py"
    library.write_text(_LIBRARY, "utf-8")
    source.write_text(_SOURCE, "utf-8")
    own = ("--library", library)
    for name in ("safe", "frail"):
        compiled = run("compile", f"{source}:{name}", "-o", tmp_path / name, *own)
        assert compiled.code == 0, compiled.err
    library.with_name("fragile").touch()
    folder, whole = tmp_path / "out", tmp_path / "whole"
    words = ("eval", tmp_path / "safe", tmp_path / "frail", "--data", f"{source}:batches", *own)
    lost = run(*words, "-o", folder)
    assert lost.code == 4
    assert "3 of 5 samples not compared: its worker crashed: the process was killed" in lost.out
    safe, frail = _figures(folder)["variants"]
    assert (safe["outputs"][0]["samples"], frail["outputs"][0]["samples"]) == (5, 2)
    again = run(*words, "-o", folder)
    assert again.code == 0, again.out
    assert "2 samples of an earlier call reused" in again.out
    assert "3 samples ran again, where a variant had crashed its worker" in again.out
    assert run(*words, "-o", whole).code == 0
    assert _figures(folder) == _figures(whole)
