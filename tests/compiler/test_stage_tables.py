"""The graphs that stages leave, noted while a program is compiled: what became of each node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inspector.files.load import load_session
from inspector.files.stage_files import session_stages
from inspector.files.stage_log import STAGES, StageLog, read_stages
from inspector.jobs.guard import FIX, OFF
from inspector.recipes.compile_job import CompileJob, Precision, Rules
from inspector.recipes.source import Source
from inspector.worker import exporter, stage_tables
from inspector.worker.compile_job import compile_into
from inspector.worker.warm import Warm
from schema.bundled import BundledFile, encode
from tests.compiler import guard_sources
from tests.inspector.cli_runs import run, valid

pytestmark = pytest.mark.slow

SOURCES = Path(str(guard_sources.__file__))


@pytest.fixture(autouse=True)
def _warnings_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "redirect_logs", lambda _say: None)


def silent(*_words: Any, **_content: Any) -> None:
    """Take no notice of messages."""


def log_of(
    function: str, folder: Path, way: str = OFF, warm: Warm | None = None, **job: Any
) -> StageLog:
    """Compile with stages and return them as they were written."""
    given = CompileJob(Source(str(SOURCES), function), **{"partitioners": ("xnnpack",), **job})
    compile_into(given, folder, silent, way, warm, stages=True)
    return read_stages(folder / STAGES)


def names(log: StageLog) -> list[str]:
    """Return the stages that have a graph."""
    return [step.stage for step in log.steps if step.after is not None]


def assert_consistent(log: StageLog) -> None:
    """Check that every node of every graph is accounted for."""
    for step in log.steps:
        if step.change is None or step.before is None or step.after is None:
            continue
        old = {node.name for node in log.graphs[step.before]}
        new = {node.name for node in log.graphs[step.after]}
        assert step.nodes == len(log.graphs[step.after])
        assert step.change.kept + step.change.plus == len(new)
        for name in new:
            assert set(step.change.behind(name)) <= old
        for name in old:
            assert set(step.change.ahead(name)) <= new


def test_nodes_are_followed_from_the_export_into_a_delegate_and_back(tmp_path: Path) -> None:
    log = log_of("rough", tmp_path, partitioners=("xnnpack",))
    assert names(log) == ["export", "edge", "delegate"]
    assert_consistent(log)
    last = len(log.steps) - 1 - [step.stage for step in reversed(log.steps)].index("delegate")
    lowered = log.lowered("forward")
    assert lowered == last - 1
    export = names(log).index("export") + [s.after for s in log.steps].index(0)
    (inside,) = {n for n in log.traced(export, "sigmoid", last) if "delegate" in n}
    assert "sigmoid" in log.traced(last, inside, export)
    assert "gelu_1" not in log.traced(last, inside, export)  # it stays outside
    assert not any("delegate" in name for name in log.traced(export, "gelu_1", last))
    sources = {node.name: node.source for node in log.graphs[0]}
    assert sources["sigmoid"].startswith(str(SOURCES))
    times = [step.time_ms for step in log.steps]
    assert all(time >= 0 for time in times)


def test_passes_show_what_they_put_in(tmp_path: Path) -> None:
    precision = Precision(operators=("aten.sigmoid=float64",))
    log = log_of("rough", tmp_path, precision=precision)
    assert_consistent(log)
    passes = [step for step in log.steps if step.stage.startswith("pass ") and step.change]
    assert any(step.change is not None and step.change.plus for step in passes)


def test_second_delegation_begins_from_the_graph_before_the_first(tmp_path: Path) -> None:
    log = log_of(
        "squeezed",
        tmp_path,
        FIX,
        partitioners=(f"{SOURCES.with_name('bold_partitioner.py')}:Bold",),
    )
    assert_consistent(log)
    turns = [step for step in log.steps if step.stage == "delegate"]
    assert len(turns) == 2
    assert turns[0].before == turns[1].before
    assert turns[0].after != turns[1].after


def test_warm_compile_has_the_graphs_of_what_was_not_done_again(tmp_path: Path) -> None:
    warm = Warm()
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
    first = log_of("rough", tmp_path / "one", warm=warm)
    again = log_of("rough", tmp_path / "two", warm=warm)
    other = log_of("rough", tmp_path / "three", warm=warm, rules=Rules(deny_nodes=("sigmoid",)))
    for log in (again, other):
        assert_consistent(log)
        assert names(log)[0] == "export"
        assert names(log)[-1] == "delegate"
        assert "edge" in names(log)
    assert again.graphs[-1] == first.graphs[-1]
    assert other.graphs[-1] != first.graphs[-1]


@pytest.mark.parametrize(
    "rules",
    [Rules(deny_ops=("aten.sigmoid.default",)), Rules(min_nodes=50), Rules(max_partitions=1)],
)
def test_program_that_is_delegated_anew_has_the_stages_of_one_made_anew(
    tmp_path: Path, rules: Rules
) -> None:
    warm = Warm()
    for name in ("first", "changed", "anew"):
        (tmp_path / name).mkdir()
    log_of("rough", tmp_path / "first", warm=warm)
    changed = log_of("rough", tmp_path / "changed", warm=warm, rules=rules)
    anew = log_of("rough", tmp_path / "anew", rules=rules)
    assert names(changed) == names(anew) == ["export", "edge", "delegate"]
    assert_consistent(changed)

    def told(log: StageLog) -> list[object]:
        shown = [step for step in log.steps if step.after is not None]
        changes = [
            one and (one.kept, one.added, one.removed, one.replaced, one.lineage)
            for one in (step.change for step in shown)
        ]
        steps = [(step.stage, step.method, step.nodes) for step in shown]
        return list(zip(steps, changes, strict=True))

    assert told(changed) == told(anew)


def test_graphs_beyond_the_limit_are_counted_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_tables, "MOST_NODES", 250)
    log = log_of("rough", tmp_path)
    assert log.note == "graphs beyond 250 nodes in all were not kept"
    assert sum(map(len, log.graphs)) <= 250
    steps = [step for step in log.steps if step.stage == "edge"]
    assert all(step.nodes and step.after is None and step.change is None for step in steps)


def test_verb_lists_stages_and_shows_one(tmp_path: Path) -> None:
    log_of("rough", tmp_path)
    listed = run("graph", tmp_path, "--stages", "--format", "json")
    assert listed.code == 0, listed.err
    found = valid(listed, "graph")["data"]["stages"]
    assert [one["stage"] for one in found if one["nodes"]] == ["export", "edge", "delegate"]
    shown = run("graph", tmp_path, "--stage", "delegate", "--format", "json")
    stage = valid(shown, "graph")["data"]["stage"]
    delegates = [one for one in stage["graph"] if one["operator"] == "call_delegate"]
    assert delegates
    assert all(len(one["from"]) > 1 for one in delegates)
    assert len(stage["graph"]) == stage["nodes"] == stage["kept"] + stage["new"]
    lines = run("graph", tmp_path, "--stage", "delegate").out.splitlines()
    inside = [name for one in delegates for name in one["from"]]  # each in a row of its own
    assert [line.split()[1] for line in lines if line.startswith("delegated")] == inside
    wrong = run("graph", tmp_path, "--stage", "nothing")
    assert (wrong.code, "unknown stage 'nothing'; available: " in wrong.err) == (2, True)


def test_program_of_another_compile_has_no_stages(tmp_path: Path) -> None:
    log_of("plain", tmp_path)
    (tmp_path / "model.pte").write_bytes((tmp_path / "model.pte").read_bytes() + b"\0")
    found = session_stages(load_session([str(tmp_path / "model.pte")]))
    assert found.log is None
    answer = run("graph", tmp_path, "--stages")
    assert (answer.code, "belongs to another compile" in answer.err) == (3, True)


def test_stages_beside_a_bundled_program_are_those_of_the_program_in_it(tmp_path: Path) -> None:
    log_of("plain", tmp_path)
    program = tmp_path / "model.pte"
    for data, known in ((program.read_bytes(), True), (program.read_bytes() + bytes(16), False)):
        bundle = tmp_path / "model.bpte"
        bundle.write_bytes(encode(BundledFile((), memoryview(data))))
        assert (session_stages(load_session([str(bundle)])).log is not None) == known
