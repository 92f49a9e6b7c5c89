"""Partitions of layers whose nodes all share a debug handle: each call is told its own nodes."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from compiler.emit.delegates import called_module
from inspector.files.load import load_session
from inspector.numerics.join import join_method
from inspector.numerics.replay.analysis import Options, analyse_gap
from inspector.profile.join_index import join_index
from tests.compiler.programs import Sample
from tests.inspector.gap_sessions import Made, made, run

pytestmark = pytest.mark.slow


class Layers(nn.Module):
    """Recurrent layers of two directions, whose partitions do not come in the order of nodes."""

    def __init__(self, kind: Any) -> None:
        super().__init__()
        options = {"num_layers": 2, "batch_first": True, "bidirectional": True}
        self.first = kind(6, 5, **options)
        self.head = nn.Linear(10, 3)

    def forward(self, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the head of all steps, and the last state."""
        found, state = self.first(values)
        last = state[0] if isinstance(state, tuple) else state
        return self.head(found), last


@pytest.fixture(scope="module", params=[nn.GRU, nn.LSTM], ids=["gru", "lstm"])
def recurrent(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Made]:
    torch.manual_seed(3)
    sample = Sample(lambda: Layers(request.param).eval(), (torch.randn(2, 11, 6),))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield made(sample, tmp_path_factory.mktemp("alike"), delegated=True)


def _members(found: Made, step: int) -> set[str]:
    graph: Any = called_module(found.sources[step]).original_module.graph
    calls = [node for node in graph.nodes if node.op == "call_function"]
    return {node.name for node in calls if "getitem" not in node.name}


def test_calls_alike_in_handles_have_the_nodes_of_the_compiler(recurrent: Made) -> None:
    join = join_method(recurrent.session, "forward")
    assert len(join.calls) > 20
    for step, nodes in join.calls.items():
        assert {node.node.name for node in nodes} == _members(recurrent, step)


@pytest.mark.interop  # the kernels of the wheel: events by their names, in order
def test_kernels_of_calls_alike_in_handles_have_the_nodes_of_the_compiler(
    recurrent: Made, tmp_path: Path
) -> None:
    for name in ("model.pte", "model.etrecord"):
        shutil.copy(recurrent.folder / name, tmp_path)
    run(tmp_path / "model.pte", tmp_path, recurrent.runs, engine="native")
    session = load_session([str(tmp_path)])
    calls, index = join_method(session, "forward").calls, join_index(session, "forward")
    kernels = 0
    for event, names in index.event_nodes.items():
        step = index.event_instruction[event]
        if step not in calls:
            assert len(names) == 1, (event, names)
            continue
        assert set(names) <= _members(recurrent, step), (event, names)
        kernels += len(names) == 1
    assert kernels > 0.8 * sum(step in calls for step in index.event_instruction.values())


def test_gap_of_partitions_alike_in_handles_covers_all_and_finds_nothing(recurrent: Made) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = analyse_gap(recurrent.session, Options())
    (run,) = report.runs
    cover = report.coverage([run])
    assert cover["compared"] == cover["instruction_outputs"]
    assert run.first_divergence() is None
    assert not any(row.total.out_of_tolerance for row in run.inside() if row.total)
    compared = sum(row.compared for row in run.inside())
    assert compared >= 0.85 * len(run.inside())
