"""Plans of other planners for a program that is not compiled again: verified, beside the file's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compiler.memory.planners import PLANNERS as KNOWN
from inspector.jobs import planning
from inspector.jobs import run as jobs
from inspector.jobs.planning import PlanJob, plans_of
from inspector.jobs.run import JobRun
from inspector.memory.plan import MemoryPlan, analyse_memory
from inspector.memory.replan import blocks_of, plan_figures
from inspector.tables.planners import IN_FILE, planner_table
from tests.inspector.cli_runs import run, valid
from tests.inspector.jobs_here import Here
from tests.inspector.sessions import folders, label, session

PROGRAMS = folders("model.pte")


def planned(monkeypatch: pytest.MonkeyPatch, path, method: str, **options):
    """Return the plan of the file and those of the planners, made in this process."""
    monkeypatch.setattr(jobs, "Worker", Here)
    program = session(path).program
    assert program is not None
    plan = analyse_memory(program, method)
    running = JobRun(PlanJob(str(path / "model.pte"), method, **options))
    outcome = running.wait(60)
    assert outcome is not None
    assert not outcome.sentence, outcome.sentence
    return plan, plans_of(plan, running.result)


def test_planners_are_those_of_the_compiler() -> None:
    assert set(planning.PLANNERS) == set(KNOWN)


@pytest.mark.parametrize("path", PROGRAMS, ids=label)
def test_values_of_a_plan_never_share_memory_while_they_are_needed(path, monkeypatch) -> None:
    for method in session(path).methods:
        plan, others = planned(monkeypatch, path, method)
        assert set(others) == (set(KNOWN) if plan.arenas else set())
        for name, other in others.items():
            for before, arena in zip(plan.arenas, other.arenas, strict=True):
                # values that shared bytes at the same time still do, and no others
                found = {tuple(block.members) for block in blocks_of(arena)}
                assert found == {tuple(block.members) for block in blocks_of(before)}, name
                assert arena.peak_bytes == before.peak_bytes
                assert arena.planned_bytes >= arena.peak_bytes
                assert all(
                    value.offset + value.nbytes <= arena.planned_bytes
                    for value in arena.values
                    if value.first >= 0
                )


def test_naive_planner_reuses_nothing_and_lent_memory_is_not_planned(monkeypatch) -> None:
    path = next(one for one in PROGRAMS if one.name == "convnet_portable")
    plan, others = planned(monkeypatch, path, "forward")
    naive, greedy = (plan_figures(others[name].arenas[0]) for name in ("naive", "greedy"))
    assert naive.reuse == pytest.approx(1.0, abs=0.01)
    assert greedy.reuse > 1.5
    assert greedy.planned_bytes < naive.planned_bytes
    assert naive.fragmentation > greedy.fragmentation
    _, lent = planned(monkeypatch, path, "forward", lent=True)
    roles = {value.role for value in lent["greedy"].arenas[0].values}
    assert not roles & {"input", "output"}
    assert plan_figures(lent["naive"].arenas[0]).planned_bytes < naive.planned_bytes
    table = planner_table(plan, others)
    assert table.text(0, 0) == IN_FILE


def test_rows_of_several_buffers_begin_with_their_buffer(monkeypatch) -> None:
    path = next(one for one in PROGRAMS if one.name == "convnet_portable")
    plan, others = planned(monkeypatch, path, "forward")
    alone = planner_table(plan, others)
    assert [column.title for column in alone.columns][-1] == "buffer"

    def doubled(one: MemoryPlan) -> MemoryPlan:
        return replace(one, arenas=(one.arenas[0], replace(one.arenas[0], mem_id=2)))

    table = planner_table(doubled(plan), {name: doubled(one) for name, one in others.items()})
    assert [column.title for column in table.columns][:2] == ["planner", "buffer"]
    assert [table.text(row, 1) for row in range(4)] == ["1", "2", "1", "2"]
    assert {column.title for column in table.columns} == {c.title for c in alone.columns}


def test_unknown_planner_and_method_are_named(monkeypatch) -> None:
    monkeypatch.setattr(jobs, "Worker", Here)
    path = str(PROGRAMS[0] / "model.pte")
    job = PlanJob(path, planners=("best",))
    outcome = JobRun(job).wait(60)
    assert outcome is not None
    assert outcome.sentence.startswith("unknown planner 'best'; available: ")
    outcome = JobRun(replace(job, planners=("greedy",), method="nothing")).wait(60)
    assert outcome is not None
    assert "unknown method 'nothing'" in outcome.sentence


@pytest.mark.slow
def test_command_line_compares_planners() -> None:
    path = next(one for one in PROGRAMS if one.name == "convnet_portable")
    answer = run("memory", path, "--planners", "--format", "json")
    tree = valid(answer, "memory")
    rows = tree["data"]["methods"]["forward"]["planners"]
    assert [row["planner"] for row in rows] == [IN_FILE, *planning.PLANNERS]
    assert "naive" in run("memory", path, "--planners").out
