"""A sequence of several methods: each item names its own, and state goes from one to the next."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest
import torch

from compiler import ExecutorchBackendConfig, MemoryPlanningPass, to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from inspector.cli.gap import gap_answer
from inspector.files.load import load_session
from inspector.memory.plan import state_values
from inspector.numerics.report import GapReport, RunGap
from inspector.numerics.state_names import state_names
from inspector.profile.timeline_runs import timeline_runs
from inspector.tables.calls import memory_calls, sequence_speed
from inspector.tables.query import QueryError
from inspector.tables.selection import AUTOMATIC
from tests.inspector.cli_runs import run, valid
from tests.inspector.test_sequence_run import plant

pytestmark = pytest.mark.slow

ORDER = ("fill", "drain", "fill", "fill", "drain")
DATA = f"""
import torch

def calls():
    for number, method in enumerate({ORDER}):
        yield {{"method": method, "inputs": (torch.full((3,), float(number)),)}}
"""


class Part(torch.nn.Module):
    """A method: all are of the same instructions, only a constant tells them apart."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor
        self.register_buffer("total", torch.ones(3))
        self.register_buffer("last", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x * self.factor)
        before = self.last * 2
        self.last.copy_(x)
        return torch.sin(self.total) * self.factor + before


FACTORS = {"fill": 1.5, "drain": -0.5}


def part_folder(home: Path, *, shares: bool, names: bool, delegates: bool = False) -> Path:
    """Write a program of two methods, its record and its calls into a folder."""
    x = torch.ones(3)
    exported = {name: torch.export.export(Part(factor), (x,)) for name, factor in FACTORS.items()}
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
    home.mkdir(exist_ok=True)
    (home / "model.pte").write_bytes(made.buffer)
    made.get_etrecord().save(str(home / "model.etrecord"))
    (home / "data.py").write_text(DATA)
    return home


def _expected(*, shares: bool) -> list[torch.Tensor]:
    parts = {name: Part(factor) for name, factor in FACTORS.items()}
    if shares:
        for name in ("total", "last"):
            setattr(parts["drain"], name, getattr(parts["fill"], name))
    calls = enumerate(ORDER)
    return [parts[name](torch.full((3,), float(number))) for number, name in calls]


def run_of(folder: Path, *words: str) -> Path:
    """Run the calls of a folder; return the folder of the run."""
    out = folder / "run"
    data = f"{folder / 'data.py'}:calls"
    found = run("run", str(folder), "--sequence", data, *words, "-o", str(out))
    assert found.code == 0, found.err
    return out


@pytest.mark.parametrize("delegates", [False, True], ids=["plain", "delegated"])
@pytest.mark.parametrize("names", [True, False], ids=["named", "nameless"])
@pytest.mark.parametrize("shares", [True, False], ids=["shared", "own"])
def test_state_goes_from_method_to_method_where_they_share_it(
    tmp_path: Path, *, shares: bool, names: bool, delegates: bool
) -> None:
    folder = part_folder(tmp_path / "p", shares=shares, names=names, delegates=delegates)
    out = run_of(folder, "--debug-level", "intermediate")
    kept = [torch.load(path, weights_only=True) for path in sorted((out / "calls").iterdir())]
    for found, expected in zip(kept, _expected(shares=shares), strict=True):
        torch.testing.assert_close(found["outputs"][0], expected)
    report = json.loads((out / "run.json").read_text())
    assert [one["method"] for one in report["calls"]] == list(ORDER)
    assert report["method"] == ORDER[-1]  # whose outputs and inputs the report has
    own = [f"{method}.{name}" for method in ("fill", "drain") for name in ("total", "last")]
    named = ["total", "last"] if shares else own
    assert [one["name"] for one in report["state"]] == named
    assert all(len(one["state"]) == len(named) for one in report["calls"])
    used = report["calls"][0]["state"]
    assert [one["changed"] for one in used[2:]] == [0] * (len(named) - 2)  # not loaded yet
    answer = run("gap", str(folder), str(out), "--format", "json")
    data = valid(answer, "gap")["data"]
    assert [one["method"] for one in data["runs"]] == list(ORDER)
    assert [one["call"] for one in data["runs"]] == list(range(len(ORDER)))
    assert data["first_divergence"] is None, data["first_divergence"]
    assert all(one["coverage"]["compared"] for one in data["runs"])


def test_tables_and_timeline_have_each_call_at_its_method(tmp_path: Path) -> None:
    folder = part_folder(tmp_path / "p", shares=True, names=True)
    out = run_of(folder)
    table = run("table", "calls", str(out), "--format", "tsv").out.splitlines()
    assert table[0].split("\t")[:3] == ["call", "method", "inputs"]
    assert [line.split("\t")[1] for line in table[1:]] == list(ORDER)
    session = load_session([str(folder / "model.pte"), str(out / "run.etdp")])
    for method in FACTORS:
        labels = [one.label for one in timeline_runs(session, method) if one.executes]
        own = [number for number, name in enumerate(ORDER) if name == method]
        assert [label.split(",")[0] for label in labels] == [f"call {one}" for one in own]
        assert memory_calls(session, method, AUTOMATIC).length == len(ORDER)
    alone = load_session([str(out / "run.etdp")])  # without its program
    assert memory_calls(alone, "", AUTOMATIC).length == len(ORDER)
    plain = tmp_path / "plain"
    words = ("--method", next(iter(FACTORS)), "--inputs", "random", "-o", str(plain))
    assert run("run", str(folder / "model.pte"), *words).code == 0
    with pytest.raises(QueryError, match=r"the trace of a sequence$"):
        memory_calls(load_session([str(plain / "run.etdp")]), "", AUTOMATIC)
    times = run("table", "methods", str(folder / "model.pte"), str(out / "run.etdp")).out
    assert "drain" in times
    assert "fill" in times


def test_times_and_files_of_several_methods_are_told_apart(tmp_path: Path) -> None:
    home = part_folder(tmp_path, shares=True, names=True)
    out = tmp_path / "run"
    program, calls = str(home / "model.pte"), f"{home / 'data.py'}:calls"
    found = run("run", program, "--sequence", calls, "-o", str(out), "--debug-level", "outputs")
    assert found.code == 0, found.err
    size = sum(path.stat().st_size for path in (out / "calls").iterdir())
    last = len(ORDER) - 1
    assert f"calls/00000.pt to calls/{last:05}.pt ({len(ORDER)} files, {size:,} bytes)" in found.out
    assert f"calls/{last:05}.pt (" in found.out
    assert found.out.count("calls/0") == 2
    report = json.loads((out / "run.json").read_text())
    times = sequence_speed(report)
    what, counts, spent = ([*column.values] for column in times.columns[:3])
    for method in ("fill", "drain"):
        ms = [one["ms"] for one in report["calls"] if one["method"] == method]
        first, later = what.index(f"{method}: first call"), what.index(f"{method}: later calls")
        assert (counts[first], counts[later]) == (1, len(ms) - 1)
        assert spent[first] == pytest.approx(ms[0] * 1e6)
        assert spent[later] == pytest.approx(sum(ms[1:]) * 1e6)
    assert "first call" not in what


def test_an_error_of_one_method_is_found_at_its_call(tmp_path: Path) -> None:
    folder = part_folder(tmp_path / "p", shares=True, names=True)
    out = run_of(folder, "--debug-level", "intermediate")
    plant(out, call=3)
    answer = run("gap", str(folder), str(out))
    assert "first divergence: call 3, " in answer.out, answer.out


def test_losses_of_several_methods_name_method_and_call() -> None:
    runs = [
        RunGap(name, at, 0, at, "inputs of the call", "float", (), (), is_float=True, call=at)
        for at, name in enumerate(ORDER)
    ]
    options = Namespace(run=0, sort="execution", top=3, format="text")
    lines = gap_answer(GapReport(tuple(runs)), options).lines
    assert [line.split(":")[0] for line in lines if "call" in line] == [
        "fill, call 0",
        "drain, call 1",
    ]


@pytest.mark.parametrize(
    ("item", "words", "sentence"),
    [
        ('{"method": "fil", "inputs": x}', (), "sample 0: unknown method 'fil'; available: "),
        ('{"method": 3, "inputs": x}', (), "sample 0: method: expected a name, found 3"),
        (
            '{"methd": "fill", "inputs": x}',
            (),
            "sample 0: expected inputs, targets, method; found 'methd'",
        ),
        ('{"method": "fill"}', (), "an item with a method needs inputs as well"),
        ("x", (), "no method selected; available: "),
        ("x", ("--method", "drain"), ""),
        ('{"method": "fill", "inputs": (x, x)}', (), "expected 1 input"),
    ],
)
def test_items_that_name_no_method_are_for_the_one_of_therun_of(
    tmp_path: Path, item: str, words: tuple[str, ...], sentence: str
) -> None:
    folder = part_folder(tmp_path / "p", shares=True, names=True)
    lines = f"import torch\nx = torch.ones(3)\n\ndef calls():\n    yield {item}\n"
    (folder / "data.py").write_text(lines)
    data = f"{folder / 'data.py'}:calls"
    found = run("run", str(folder), "--sequence", data, "-o", str(tmp_path / "r"), *words)
    if not sentence:
        assert found.code == 0, found.err
        assert json.loads((tmp_path / "r/run.json").read_text())["method"] == words[1]
        return
    assert found.code
    assert sentence in found.err, found.err


@pytest.mark.parametrize("delegates", [False, True], ids=["plain", "delegated"])
def test_state_without_a_name_in_the_program_has_that_of_the_record(
    tmp_path: Path, *, delegates: bool
) -> None:
    folder = part_folder(tmp_path / "p", shares=False, names=False, delegates=delegates)
    files = [str(folder / "model.pte"), str(folder / "model.etrecord")]
    session = load_session(files)
    for method in FACTORS:
        names = state_names(session, method)
        assert sorted(names.values()) == ["last", "total"]
        assert session.program is not None
        assert set(names) == set(state_values(session.program, method))
    assert not state_names(load_session(files[:1]), "fill")  # never guessed
    table = run("table", "memory", str(folder), "--method", "fill").out
    assert "total" in table


class Reader(Part):
    """A method that reads a state inside of a delegate and nowhere else."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.total


def test_state_that_a_delegate_reads_has_the_name_of_the_method_that_writes_it(
    tmp_path: Path,
) -> None:
    x, methods = torch.ones(3), {"fill": Part(1.5), "peek": Reader(0.0)}
    exported = {name: torch.export.export(module, (x,)) for name, module in methods.items()}
    edge = to_edge_transform_and_lower(
        exported, partitioner=[XnnpackPartitioner()], generate_etrecord=True
    )
    sharing = MemoryPlanningPass(share_mutable_buffers=True)
    made = edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=sharing))
    (tmp_path / "model.pte").write_bytes(made.buffer)
    made.get_etrecord().save(str(tmp_path / "model.etrecord"))
    session = load_session([str(tmp_path / "model.pte"), str(tmp_path / "model.etrecord")])
    assert session.program is not None
    (index,) = state_values(session.program, "peek")
    assert state_names(session, "peek") == {index: "total"}
