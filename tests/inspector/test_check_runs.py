"""Two traces alone: runs of one program belong, of two do not, little tells little."""

from __future__ import annotations

import itertools
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from inspector.check.session import BELONG, CANNOT_TELL, DO_NOT_BELONG, PAIRS, check_session
from inspector.files.session import LoadedFile, Session
from schema.etdump import AnyEvent, DebugEvent, ETDump, ProfileEvent, decode, encode, table
from tests.inspector.sessions import DATA, folders, label, session
from tests.inspector.test_check import MODELS

TRACED = [path for path in folders("run.etdp") if path.name not in ("dynamic", "identity")]


def trace(folder: Path) -> LoadedFile:
    return next(file for file in session(folder).files if file.kind == "etdump")


def other_run(folder: Path) -> LoadedFile:
    """Return the trace of a session without its first run, as a file of its own."""
    file = trace(folder)
    assert isinstance(file.artifact, ETDump)
    runs = [run for run in file.artifact.run_data if run.name != "Default"]
    made = replace(file.artifact, run_data=tuple(runs[1:] or runs))
    return replace(file, path=f"{file.path}.2", artifact=decode(encode(made)))


@pytest.mark.parametrize("folder", TRACED, ids=label)
def test_runs_of_one_program_belong(folder: Path) -> None:
    found = check_session(Session("two", (trace(folder), other_run(folder))))
    assert found.verdict == BELONG, found.mismatch
    (link,) = found.links
    assert link.matched > 1


@pytest.mark.parametrize(
    ("one", "other"), list(itertools.combinations(MODELS, 2)), ids=lambda path: path.name
)
def test_runs_of_two_models_do_not_belong(one: Path, other: Path) -> None:
    for pair in ((one, other), (other, one)):
        found = check_session(Session("mix", tuple(map(trace, pair))))
        assert found.verdict == DO_NOT_BELONG
        assert all(trace(folder).path in found.mismatch for folder in pair)
        assert "one ran" in found.mismatch or "inside delegates differ" in found.mismatch


def test_third_trace_that_differs_is_the_odd_one_out() -> None:
    files = (trace(MODELS[0]), other_run(MODELS[0]), trace(MODELS[4]))
    found = check_session(Session("three", files))
    assert (found.verdict, found.odd_one_out) == (DO_NOT_BELONG, trace(MODELS[4]).path)


@pytest.mark.parametrize("name", ["identity", "dynamic"])
def test_trace_without_instructions_or_with_lost_runs_tells_nothing(name: str) -> None:
    folder = next(path for path in folders("run.etdp") if path.name == name)
    found = check_session(Session("mix", (trace(folder), trace(MODELS[0]))))
    assert (found.verdict, found.mismatch) == (CANNOT_TELL, "")


def test_lone_delegate_call_without_its_kernels_tells_nothing() -> None:
    bare = _without_kernels(trace(DATA / "extra/inline_delegate"))
    found = check_session(Session("two", (bare, replace(bare, path="other.etdp"))))
    assert found.verdict == CANNOT_TELL
    assert found.links[0].matched == 0


def _without_kernels(file: LoadedFile) -> LoadedFile:
    dump = file.artifact
    assert isinstance(dump, ETDump)
    runs = []
    for run in dump.run_data:
        kept = [event for event in run.events if not _inside(event)]
        runs.append(replace(run, events=table(kept)))
    return replace(file, artifact=decode(encode(replace(dump, run_data=tuple(runs)))))


def _inside(event: AnyEvent) -> bool:
    return isinstance(event, (ProfileEvent, DebugEvent)) and (
        event.delegate_id_int != -1 or bool(event.delegate_id_str)
    )


def by_node(file: LoadedFile) -> LoadedFile:
    """Return a trace whose events inside delegates are called as a run with values calls them."""
    dump = file.artifact
    assert isinstance(dump, ETDump)
    runs = []
    for run in dump.run_data:
        events, number = [], 0
        for event in run.events:
            if isinstance(event, ProfileEvent) and _inside(event):
                number += 1
                if number % 3 == 0:
                    continue  # a library splits a node into several kernels, or joins some
                name = f"node {number}"
                event = replace(event, name=name, delegate_id_str=name, delegate_id_int=-1)
            events.append(event)
        runs.append(replace(run, events=table(events)))
    path = f"{file.path}.values"
    made = decode(encode(replace(dump, run_data=tuple(runs))))
    return replace(file, path=path, artifact=made)


@pytest.mark.parametrize("folder", TRACED, ids=label)
def test_a_run_with_values_is_no_contradiction_to_a_timed_one(folder: Path) -> None:
    timed = trace(folder)
    for pair in ((timed, by_node(timed)), (by_node(timed), timed)):
        found = check_session(Session("run", pair))
        assert found.verdict in (BELONG, CANNOT_TELL), found.mismatch


@pytest.mark.parametrize("name", ["convnet_xnnpack", "mm_xnnpack"])
def test_only_instructions_are_facts_of_runs_with_two_kinds_of_names(name: str) -> None:
    folder = DATA / "corpus/v1.5.1" / name
    timed = trace(folder)
    (link,) = check_session(Session("run", (timed, by_node(timed)))).links
    (alike,) = check_session(Session("run", (timed, other_run(folder)))).links
    assert link.matched < alike.matched


def test_a_run_with_values_of_another_model_never_belongs() -> None:
    for one, other in itertools.permutations(MODELS, 2):
        found = check_session(Session("mix", (trace(one), by_node(trace(other)))))
        assert found.verdict != BELONG


def test_traces_of_two_methods_belong_to_the_program_that_has_both() -> None:
    loaded = session(DATA / "extra/two_methods")
    file = trace(DATA / "extra/two_methods")
    assert isinstance(file.artifact, ETDump)
    runs = [run for run in file.artifact.run_data if run.name != "Default"]
    halves = [
        replace(file, path=f"{number}.etdp",
                artifact=decode(encode(replace(file.artifact, run_data=(run,)))))
        for number, run in enumerate(runs[:2])
    ]  # fmt: skip
    alone = check_session(Session("alone", tuple(halves)))
    assert alone.verdict == DO_NOT_BELONG  # nothing says that they are methods of one program
    assert "two methods of one program would differ like this too" in alone.mismatch
    program = next(one for one in loaded.files if one.kind == "pte")
    found = check_session(Session("with program", (program, *halves)))
    assert (found.verdict, len(found.links)) == (BELONG, 2)


@pytest.mark.parametrize("place", sorted({row[2] for row in PAIRS}))
def test_table_of_comparisons_names_functions_that_exist(place: str) -> None:
    module, _, name = place.partition(":")
    assert callable(getattr(import_module(f"inspector.check.{module}"), name))
