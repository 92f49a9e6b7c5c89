"""Delta debugging over nodes: what it finds, how often it asks, and that it can be gone on with."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.experiments.bisect.bound import parse_bound
from inspector.experiments.bisect.minimise import minimise
from inspector.experiments.bisect.search import Ranges, Result, Search
from inspector.experiments.gates.requirement import RequirementError
from inspector.jobs import run as job_runs
from inspector.jobs.bisect import BisectJob
from inspector.jobs.bisect_trials import (
    BisectState,
    CandidateNode,
    StateError,
    Trial,
    numbers_of,
    ranges_of,
    read_state,
)
from inspector.jobs.messages import Ended, Found, Message, Outcome, Tried, Trying
from inspector.jobs.run import JobRun
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.source import Source
from tests.inspector.jobs_here import Scripted

COUNT = 200


def planted(*bad: int) -> Callable[[Ranges], Trial]:
    """Return an oracle: the program is good once all the bad nodes are out."""

    def oracle(removed: Ranges) -> Trial:
        left = set(bad) - set(numbers_of(removed))
        return Trial(removed, float(len(left)), not left)

    return oracle


@pytest.mark.parametrize("bad", [0, 1, 99, 100, 137, 199, *random.Random(6).sample(range(200), 20)])
def test_planted_node_among_two_hundred_is_found_in_few_trials(bad: int) -> None:
    answer = Search(COUNT, planted(bad)).run()
    assert (answer.result, answer.removed) == (Result.FOUND, (bad,))
    assert answer.after.holds
    assert not answer.before.holds
    assert answer.trials <= 2 + 2 * 8  # everything, nothing, and two for each halving


@settings(max_examples=30)
@given(bad=st.sets(st.integers(0, COUNT - 1), min_size=1, max_size=6))
def test_planted_nodes_are_found_all_and_no_other(bad: set[int]) -> None:
    answer = Search(COUNT, planted(*bad)).run()
    assert answer.removed == tuple(sorted(bad))


@given(
    items=st.lists(st.integers(), min_size=1, max_size=40, unique=True),
    table=st.integers(0, 2**32),
)
def test_minimum_of_any_test_passes_and_loses_it_with_any_item(
    items: list[int], table: int
) -> None:
    # A test that is not monotone: any fixed choice, but that everything passes.
    def passes(part: tuple[int, ...]) -> bool:
        return len(part) == len(items) or random.Random(f"{table}{part}").random() < 0.3

    found = minimise(items, passes)
    assert passes(found)
    smaller = [found[:at] + found[at + 1 :] for at in range(len(found))]
    assert not any(passes(part) for part in smaller if part)


@pytest.mark.slow
@given(items=st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_minimise_never_asks_twice_nor_about_none_or_all(items: list[int]) -> None:
    numbered = tuple(enumerate(items))
    asked: list[tuple[tuple[int, int], ...]] = []

    def passes(part: tuple[tuple[int, int], ...]) -> bool:
        asked.append(part)
        return sum(item for _, item in part) >= sum(items) / 2

    minimise(numbered, passes)
    assert len(set(asked)) == len(asked)
    assert () not in asked
    assert numbered not in asked


@settings(max_examples=25)
@given(
    bad=st.sets(st.integers(0, COUNT - 1), min_size=1, max_size=4),
    preferred=st.sets(st.integers(0, COUNT - 1), min_size=COUNT // 2),
)
def test_preferred_nodes_are_chosen_among_as_long_as_they_are_enough(
    bad: set[int], preferred: set[int]
) -> None:
    # Each bad node is also mended by taking out the one behind it.
    def oracle(removed: Ranges) -> Trial:
        out = set(numbers_of(removed))
        left = [node for node in bad if not out & {node, (node + 1) % COUNT}]
        return Trial(removed, float(len(left)), not left)

    chosen = Search(COUNT, oracle, (), sorted(preferred)).run().removed
    enough = all({node, (node + 1) % COUNT} & preferred for node in bad)
    assert oracle(ranges_of(chosen)).holds
    assert set(chosen) <= preferred or not enough


def test_search_without_a_violation_takes_one_trial() -> None:
    answer = Search(COUNT, planted()).run()
    assert (answer.result, answer.removed, answer.trials) == (Result.FINE, (), 1)


def test_search_that_no_node_helps_says_so_after_two_trials() -> None:
    answer = Search(COUNT, lambda removed: Trial(removed, 9.0, False)).run()
    assert (answer.result, answer.trials) == (Result.ELSEWHERE, 2)


@pytest.mark.parametrize("kept", range(0, 19, 3))
def test_search_goes_on_where_it_was_stopped(kept: int) -> None:
    made: list[Trial] = []

    def oracle(removed: Ranges) -> Trial:
        made.append(planted(42, 171)(removed))
        return made[-1]

    whole = Search(COUNT, oracle).run()
    first, made[:] = made[:kept], []
    again = Search(COUNT, oracle, first).run()
    assert again == whole
    assert len(made) == whole.trials - kept
    assert not {trial.removed for trial in first} & {trial.removed for trial in made}


def test_search_that_is_cancelled_keeps_what_was_tried() -> None:
    made: list[Trial] = []

    def oracle(removed: Ranges) -> Trial:
        if len(made) == 7:
            raise KeyboardInterrupt
        made.append(planted(42)(removed))
        return made[-1]

    with pytest.raises(KeyboardInterrupt):
        Search(COUNT, oracle).run()
    assert Search(COUNT, planted(42), made).run().removed == (42,)


@given(st.sets(st.integers(0, 300)))
def test_ranges_are_the_numbers_they_were_made_of(numbers: set[int]) -> None:
    ordered = tuple(sorted(numbers))
    assert numbers_of(ranges_of(ordered)) == ordered


def test_state_comes_back_from_its_file(tmp_path: Path) -> None:
    trial = Trial(((0, 3), (7, 8)), float("inf"), False, "two words", 0.25)
    state = BisectState("key", (CandidateNode("forward", "add", "aten.add.Tensor"),), (trial,))
    path = tmp_path / "bisect.json"
    path.write_text(state.text, "utf-8")
    assert read_state(path) == state
    assert read_state(tmp_path / "none.json") is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        b'{"bisect": 2}',
        b'{"bisect": 1, "key": "", "candidates": [1]}',
        b'{"bisect": 1, "key": "", "candidates": [], "trials": [{"removed": 3}]}',
    ],
)
def test_state_that_is_none_is_refused_with_its_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bisect.json"
    path.write_bytes(content)
    with pytest.raises(StateError, match=r"bisect\.json"):
        read_state(path)


@pytest.mark.parametrize(
    ("text", "value", "holds", "shown"),
    [
        ("loads", 0.0, True, "loads"),
        ("loads", 2.0, False, "2 refused"),
        ("gap.max_abs<=1e-3", 1e-3, True, "gap.max_abs 0.001"),
        ("output.max_abs <= 1e-3", 2e-3, False, "output.max_abs 0.002"),
        ("output.snr_db>=40dB", 41.0, True, "output.snr_db 41 dB"),
        ("latency<=5ms", 6.0, False, "latency 6 ms"),
        ("gap.max_abs<=1e-3", None, False, "unknown"),
    ],
)
def test_bound_judges_and_shows_values(
    text: str, value: float | None, holds: bool, shown: str
) -> None:
    bound = parse_bound(text)
    assert (bound.holds(value), bound.shown(value)) == (holds, shown)


@pytest.mark.parametrize(
    "text", ["", "load", "latency<=1.1x baseline", "output.nonsense<=1", "output.own.max_abs<=1"]
)
def test_bound_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(RequirementError):
        parse_bound(text)


NODES = (CandidateNode("forward", "a", "aten.add.Tensor"),)
HELPS = Tried(Trial(((0, 1),), 0.0, True))


def crashed() -> Outcome:
    return Outcome(Ended.CRASHED, "the process crashed (SIGSEGV)")


WORKERS: list[Scripted] = []


def scripted(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *scripts: tuple[list[Message], Outcome]
) -> JobRun:
    left = list(scripts)
    WORKERS.clear()

    def started(_kind: str) -> Scripted:
        WORKERS.append(Scripted(*left.pop(0)))
        return WORKERS[-1]

    monkeypatch.setattr(job_runs, "Worker", started)
    return JobRun(BisectJob(CompileJob(Source("m.py", "f")), "loads"), folder)


def test_program_that_takes_the_worker_along_counts_as_no_help(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first: list[Message] = [Found(NODES), Trying(())]
    second: list[Message] = [Found(NODES), Trying(((0, 1),)), HELPS]
    done = Outcome(Ended.FINISHED, result={"result": "found"})
    running = scripted(monkeypatch, tmp_path, (first, crashed()), (second, done))
    outcome = running.wait()
    assert outcome is not None
    assert outcome.result == done.result
    assert [trial.words for trial in running.state.trials] == ["the process crashed (SIGSEGV)", ""]
    assert [one.holds for one in running.state.trials] == [False, True]
    # The second worker knows of the trial that ended the first.
    assert [len(one.request["options"]["trials"]) for one in WORKERS] == [0, 1]
    assert read_state(tmp_path / "bisect.json") == running.state


def test_worker_that_keeps_crashing_is_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scripts = [([Found(NODES), Trying(((at, at + 1),))], crashed()) for at in range(9)]
    running = scripted(monkeypatch, tmp_path, *scripts)
    outcome = running.wait()
    assert outcome is not None
    assert outcome.ended is Ended.CRASHED
    assert len(WORKERS) == 6


def test_worker_that_crashes_outside_of_a_trial_is_not_started_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    running = scripted(monkeypatch, tmp_path, ([], crashed()))
    outcome = running.wait()
    assert outcome is not None
    assert outcome.ended is Ended.CRASHED
    assert running.state.trials == ()


def test_trials_of_another_program_are_dropped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done = Outcome(Ended.FINISHED, result={"result": "found"})
    scripted(monkeypatch, tmp_path, ([Found(NODES), Trying(()), HELPS], done)).wait()
    other = (replace(NODES[0], name="b"),)
    running = scripted(monkeypatch, tmp_path, ([Found(other)], done))
    assert len(running.state.trials) == 1
    running.wait()
    assert running.state.trials == ()
    assert running.state.candidates[0].name == "b"
