"""Measures what calls cost on a runtime: pairs of programs that differ in one thing."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from compiler import to_edge_transform_and_lower
from compiler.partition.named_partitioners import create_partitioner, parse_partitioner
from compiler.partition.rules import Granularity, PartitionRules
from compiler.partition.steered import SteeredPartitioner
from inspector.files.machine import this_machine
from inspector.jobs.calibrate import CallCostsJob
from inspector.jobs.executing import MeasureJob, RunJob
from inspector.roofline.call_costs import STOCK, THIS, CallCosts, device_target, save_costs
from inspector.toolchain.child import ToolchainError
from inspector.trace.run_times import median
from inspector.units import NS_PER_MS
from inspector.worker.executing import measured
from inspector.worker.exporter import timed_stage
from inspector.worker.tasks import Task
from schema.backends import DEFAULT
from schema.objects.codec import to_json
from schema.version import __version__

_FEW, _MANY, _CALLS = 8, 136, 72  # operators of the programs that differ in their number
_TINY, _IMAGE, _SIDE = (4,), (1, 64, 64, 64), 128
_MATMULS = 8  # of the longer of two chains
_SECONDS = 0.05  # of a block


class _Chain(nn.Module):
    """One operator after the other."""

    def __init__(self, count: int, operator: Any) -> None:  # noqa: ANN401
        super().__init__()
        self.count, self.operator = count, operator

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.count):
            x = self.operator(x)
        return x


@dataclass(frozen=True)
class _Probe:
    """A program that is measured.

    Attributes:
        module: what it computes
        shape: of its input
        delegates: whether each operator is a delegate call, the entire program one call, or none
    """

    module: nn.Module
    shape: tuple[int, ...]
    delegates: str = ""


def _probes() -> dict[str, _Probe]:
    step, square = torch.neg, (_SIDE, _SIDE)
    weight = torch.eye(_SIDE)

    def product(x: Tensor) -> Tensor:
        return x @ weight

    def moved(x: Tensor) -> Tensor:
        return step(x.permute(0, 2, 3, 1))

    return {
        "few": _Probe(_Chain(_FEW, step), _TINY),
        "many": _Probe(_Chain(_MANY, step), _TINY),
        "few calls": _Probe(_Chain(_FEW, step), _TINY, "each"),
        "many calls": _Probe(_Chain(_CALLS, step), _TINY, "each"),
        "image": _Probe(_Chain(1, step), _IMAGE, "whole"),
        "moved": _Probe(_Chain(1, moved), _IMAGE, "whole"),
        "matmul": _Probe(_Chain(1, product), square),
        "matmuls": _Probe(_Chain(_MATMULS, product), square),
        "matmul inside": _Probe(_Chain(1, product), square, "whole"),
        "matmuls inside": _Probe(_Chain(_MATMULS, product), square, "whole"),
    }


def work(job: CallCostsJob, task: Task) -> dict[str, Any]:
    """Measure, store the costs in the cache of the user and return them.

    Raises: ToolchainError if a program was not measured, DeviceError; OSError for the cache
    """
    probes = _probes()
    times: dict[str, float] = {}
    versions: Mapping[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        with timed_stage(task.notify, "compile"):
            paths = {name: _compiled(one, Path(folder)) for name, one in probes.items()}
        names = list(paths)
        # Pairs are measured side by side: the stock runtime has an interpreter for each program.
        for number in range(0, len(names), 2):
            pair = names[number : number + 2]
            blocks = _Blocks(task, len(pair))
            runs = tuple(_run_of(paths[name], job) for name in pair)
            versions = measured(MeasureJob(runs, job.blocks, seconds=_SECONDS), blocks.task)
            times.update(zip(pair, blocks.times_ns(), strict=True))
            task.notify("counted", done=number + 2, total=len(names))
    found = costs_of(times, job, versions)
    return {**to_json(found), "file": str(save_costs(found))}


def _run_of(path: Path, job: CallCostsJob) -> RunJob:
    return RunJob(str(path), toolchain=job.toolchain, python=job.python, device=job.device)


def _compiled(probe: _Probe, folder: Path) -> Path:
    x = torch.randn(probe.shape)
    program = torch.export.export(probe.module.eval(), (x,))
    granularity = Granularity.OPERATOR if probe.delegates == "each" else Granularity.MAXIMAL
    taking = create_partitioner(parse_partitioner(DEFAULT.partitioners[0].alias))
    partitioner = SteeredPartitioner(taking, PartitionRules(granularity=granularity))
    manager = to_edge_transform_and_lower(
        program, partitioner=[partitioner] if probe.delegates else None
    )
    path = folder / f"{len([*folder.iterdir()])}.pte"
    with path.open("wb") as stream:
        manager.to_executorch().write_to_file(stream)
    return path


class _Blocks:
    """Collects the blocks that a measurement reports.

    Attributes:
        task: context of the measurement
    """

    def __init__(self, task: Task, count: int) -> None:
        self._notify = task.notify
        self._medians: list[list[float]] = [[] for _ in range(count)]
        self._failures: list[str] = []
        self.task = Task(task.folder, self.notify, stop=task.stop)

    def notify(self, kind: str, **content: Any) -> None:  # noqa: ANN401 - JSON
        """Take the blocks; all other messages are those of the job."""
        if kind == "measured":
            times: Sequence[float] = content["run_ms"]
            self._medians[content["program"]] += [median(times)] if times else []
        elif kind == "refused":
            self._failures.append(str(content["sentence"]))
        elif kind != "counted":
            self._notify(kind, **content)

    def times_ns(self) -> list[float]:
        """Return the time of a run of each program, the least of the medians of its blocks.

        Raises: ToolchainError if one has none
        """
        if self._failures or not all(self._medians):
            words = self._failures[0] if self._failures else "ended before each program was run"
            raise ToolchainError(f"the costs of calls are not measured: {words}", blame="failed")
        return [NS_PER_MS * min(found) for found in self._medians]


def costs_of(
    times: Mapping[str, float], job: CallCostsJob, versions: Mapping[str, Any]
) -> CallCosts:
    """Return the costs in the times of the probes; noise never makes one negative.

    Args:
        times: in ns, by probe
        job: whose target they belong to
        versions: of the packages that ran them
    """

    def each(many: str, few: str, count: float) -> float:
        return max(0.0, times[many] - times[few]) / count

    instruction = each("many", "few", _MANY - _FEW)
    flops = 2.0 * _SIDE**3 * (_MATMULS - 1)
    nbytes = 4.0 * np.prod(_IMAGE)
    if job.device:
        target, release = device_target(job.device), ""
    elif job.toolchain:
        target, release = STOCK, str(versions.get("executorch", ""))
    else:
        target, release = THIS, __version__
    return CallCosts(
        target,
        release,
        this_machine(),
        datetime.now(timezone.utc).isoformat(timespec="seconds"),
        run=max(0.0, times["few"] - _FEW * instruction),
        instruction=instruction,
        call=each("many calls", "few calls", _CALLS - _FEW),
        byte=each("moved", "image", float(nbytes)),
        portable_flop=each("matmuls", "matmul", flops),
        delegate_flop=each("matmuls inside", "matmul inside", flops),
    )
