"""The two runs of a comparison hold no more than three times what is alive in the graph at once."""

from __future__ import annotations

import gc
import json
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F  # noqa: N812  torch's own habit

from inspector.compat.devtools.etrecord import opened
from inspector.files.load import load_session
from inspector.numerics.replay.analysis import Options, _Analysis
from tests.compiler.programs import Sample, of
from tests.inspector.gap_sessions import made

pytestmark = pytest.mark.slow
_FACTOR = 3


def _chain(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        x = torch.sigmoid(x * 3 - 1)
    return x.sum(-1)


def _image(x: torch.Tensor) -> torch.Tensor:
    y = F.avg_pool2d(torch.sigmoid(x) + x, 2)
    return torch.tanh(y) - y


SAMPLES: dict[str, tuple[Sample, bool]] = {
    "chain": (of(_chain, torch.randn(1, 1 << 19)), False),
    "delegated": (of(_image, torch.randn(1, 8, 256, 256)), True),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_comparison_holds_three_times_the_live_tensors_at_most(name: str, tmp_path: Path) -> None:
    sample, delegated = SAMPLES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = made(sample, tmp_path, delegated=delegated).session
        assert session.record is not None
        graph = opened(session.record).edge_dialect_program.graph
        alive = live_bytes(graph)
        session = load_session([str(tmp_path)])
        analysis = _Analysis(session, Options(runs=(0,)), lambda done, total: None)
        analysis._reference("forward")  # what the record holds is not of the run
        held = most_bytes(analysis.report, tmp_path / "trace.json")
    assert alive >= 6 << 20
    assert held <= _FACTOR * alive


def live_bytes(graph: Any) -> int:
    """Return the most bytes that are alive at once in one run of a graph, with its inputs."""
    last: dict[Any, Any] = {}
    for node in graph.nodes:
        last[node] = node
        last.update((needed, node) for needed in node.all_input_nodes)
    alive = most = 0
    for node in graph.nodes:
        alive += _bytes(node)
        most = max(most, alive)
        gone = (done for done, when in last.items() if when is node and done.op != "placeholder")
        alive -= sum(map(_bytes, gone))
    return most


def _bytes(node: Any) -> int:
    value = node.meta.get("val")
    return value.numel() * value.element_size() if isinstance(value, torch.Tensor) else 0


def most_bytes(work: Callable[[], object], trace: Path) -> int:
    """Return the most bytes that torch, numpy and Python held more than before at any time."""
    gc.collect()
    tracemalloc.start()
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        work()
    _, python = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    profile.export_chrome_trace(str(trace))
    events = json.loads(trace.read_text("utf-8"))["traceEvents"]
    memory = [event for event in events if event.get("name") == "[memory]"]
    now = most = 0
    for event in sorted(memory, key=lambda each: each["ts"]):
        now += event["args"]["Bytes"]
        most = max(most, now)
    assert most
    return most + python
