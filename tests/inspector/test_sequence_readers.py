"""Methods that only read the state which another method of the program writes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from compiler import ExecutorchBackendConfig, MemoryPlanningPass, to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from tests.inspector.cli_runs import run, valid
from tests.inspector.test_sequence_methods import run_of

pytestmark = pytest.mark.slow
ORDER = ("push", "ask", "push", "push", "ask")
DATA = f"""
import torch

def calls():
    for number, method in enumerate({ORDER}):
        yield {{"method": method, "inputs": (torch.full((2, 4), number + 1.0),)}}
"""


class Ring(torch.nn.Module):
    """Rows that are written in a circle, and a sum over them weighted by a question."""

    rows: torch.Tensor
    count: torch.Tensor

    def __init__(self, method: str) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(4, 4))
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))
        self.method = method

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.method == "ask":
            return torch.softmax(x @ self.rows.t(), -1) @ self.rows
        self.rows.index_copy_(0, (torch.arange(2) + self.count) % 4, x)
        self.count.add_(2)
        return self.rows.sum(0)


def _folder(home: Path, *, shares: bool, names: bool, delegates: bool) -> Path:
    x = (torch.ones(2, 4),)
    exported = {name: torch.export.export(Ring(name), x) for name in ("push", "ask")}
    edge = to_edge_transform_and_lower(
        exported,
        partitioner=[XnnpackPartitioner()] if delegates else None,
        generate_etrecord=True,
    )
    made = edge.to_executorch(
        ExecutorchBackendConfig(
            memory_planning_pass=MemoryPlanningPass(share_mutable_buffers=shares),
            emit_mutable_buffer_names=names,
        )
    )
    home.mkdir()
    (home / "model.pte").write_bytes(made.buffer)
    made.get_etrecord().save(str(home / "model.etrecord"))
    (home / "data.py").write_text(DATA)
    return home


@pytest.mark.parametrize("delegates", [False, True], ids=["plain", "delegated"])
@pytest.mark.parametrize("names", [True, False], ids=["named", "nameless"])
@pytest.mark.parametrize("shares", [True, False], ids=["shared", "own"])
def test_a_method_that_reads_has_what_another_wrote(
    tmp_path: Path, *, shares: bool, names: bool, delegates: bool
) -> None:
    """In the run, in the gap of all calls and in that of its method alone."""
    folder = _folder(tmp_path / "p", shares=shares, names=names, delegates=delegates)
    out = run_of(folder, "--debug-level", "intermediate")
    modules = {name: Ring(name) for name in ("push", "ask")}
    if shares:
        modules["ask"].rows = modules["push"].rows
    for number, name in enumerate(ORDER):
        kept = torch.load(out / "calls" / f"{number:05}.pt", weights_only=True)
        expected = modules[name](torch.full((2, 4), number + 1.0))
        torch.testing.assert_close(kept["outputs"][0], expected)
    for method in ("", "ask", "push"):
        only = ("--method", method) if method else ()
        answer = run("gap", str(folder), str(out), *only, "--format", "json")
        data = valid(answer, "gap")["data"]
        assert [one["method"] for one in data["runs"]] == [
            name for name in ORDER if method in ("", name)
        ]
        assert data["first_divergence"] is None, data["first_divergence"]
        assert all(one["coverage"]["compared"] for one in data["runs"])
    table = run("table", "call-gaps", str(folder), str(out), "--method", "ask", "--format", "tsv")
    assert table.code == 0, table.err
    assert [line.split("\t")[0] for line in table.out.splitlines()[1:]] == ["1", "4"]
    assert table.out.count("none") == 2
