"""A bisection of a program whose backend does not run here would blame innocent nodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from compiler import export, to_edge_transform_and_lower
from compiler.partition.named_partitioners import create_partitioner, parse_partitioner
from inspector.jobs.bisect import BisectJob
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.source import Source
from inspector.worker.bisect_job import absent_backends, bisect, work
from inspector.worker.exporter import AnswerError
from inspector.worker.tasks import Task
from schema.backends import BACKENDS
from tests.compiler.toy_backend import TRAITS

SOURCE = """
import torch
class Net(torch.nn.Module):
    def forward(self, x):
        return torch.sin(torch.sin(x)) + x
def net():
    return Net().eval(), (torch.ones(3),)
"""


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x)


def test_backends_of_delegates_that_do_not_run_here_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(BACKENDS, TRAITS.id, replace(TRAITS, executor=""))
    program = export(Net().eval(), (torch.ones(3),))
    toy = create_partitioner(parse_partitioner("toy"))
    assert absent_backends(to_edge_transform_and_lower(program, partitioner=toy)) == [TRAITS.id]
    xnnpack = create_partitioner(parse_partitioner("xnnpack"))
    assert absent_backends(to_edge_transform_and_lower(program, partitioner=xnnpack)) == []


def test_bisection_without_the_backend_is_refused_before_any_trial(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(BACKENDS, TRAITS.id, replace(TRAITS, executor=""))
    file = tmp_path / "net.py"
    file.write_text(SOURCE)
    job = CompileJob(Source(str(file), "net"), partitioners=("toy",))
    asked = BisectJob(job, "output.max_abs<=1e-3")
    with pytest.raises(AnswerError, match=f"{TRAITS.id} does not run here"):
        bisect(asked, tmp_path, lambda *_, **__: None, {})


@pytest.mark.parametrize("toolchain", ["built-in", "executorch"])
@pytest.mark.parametrize("flow", ["cortex-m:target=cortex-m4", "cadence"])
def test_flow_without_a_partitioner_cannot_be_bisected(
    flow: str, toolchain: str, tmp_path: Path
) -> None:
    job = CompileJob(Source("m.py", "m"), partitioners=(flow,), toolchain=toolchain)
    words = f"{flow.partition(':')[0]} has no partitioner: its passes compile the whole program"
    with pytest.raises(AnswerError, match=words):
        work(BisectJob(job, "output.max_abs<=1"), Task(tmp_path, lambda *_a, **_k: None))
