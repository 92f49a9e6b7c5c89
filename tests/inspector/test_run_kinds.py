"""Traces without a program: runs of different programs are never one mean."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pytest

from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.findings.session import findings
from inspector.profile.methods import analyse_profile, time_of
from inspector.profile.run_kinds import kind_labels
from inspector.tables.methods import method_json
from tests.inspector.cli_runs import run, valid
from tests.inspector.sessions import DATA

CORPUS = DATA / "corpus/v1.5.1"
DIFFERENT = [
    (CORPUS / "mm_portable", CORPUS / "tinygpt_portable"),
    (CORPUS / "mm_xnnpack", CORPUS / "convnet_xnnpack"),
    (CORPUS / "convnet_portable", CORPUS / "convnet_xnnpack"),
    (DATA / "extra/xnnpack_8da4w", DATA / "extra/xnnpack_dynamic_quantised"),
    (DATA / "corpus/special/control_flow", DATA / "extra/map_rows"),
    (DATA / "extra/lstm_portable", DATA / "extra/gru_portable"),
]
ALONE = ("mm_portable", "mm_xnnpack", "tinygpt_xnnpack", "convnet_portable")


def _traces(*folders: Path) -> Session:
    return load_session([folder / "run.etdp" for folder in folders])


@pytest.mark.parametrize("pair", DIFFERENT, ids=lambda pair: "+".join(one.name for one in pair))
def test_times_of_different_programs_are_kept_apart(pair: tuple[Path, Path]) -> None:
    both = analyse_profile(_traces(*pair)).methods
    alone = [time for one in pair for time in analyse_profile(_traces(one)).methods]
    assert sorted(time.method_ms for time in both) == sorted(time.method_ms for time in alone)
    assert len({time.title for time in both}) == len(both) > 1
    told = [one.text for one in findings(_traces(*pair))]
    assert any(text.startswith(f"The traces are of {len(both)} different") for text in told)


@pytest.mark.parametrize("name", ALONE)
def test_a_second_trace_of_one_program_is_in_no_mean(name: str, tmp_path: Path) -> None:
    again = tmp_path / "again.etdp"
    shutil.copy(CORPUS / name / "run.etdp", again)
    once = analyse_profile(_traces(CORPUS / name)).methods
    twice = analyse_profile(load_session([CORPUS / name / "run.etdp", again])).methods
    assert [time.runs for time in once] == [time.runs for time in twice]
    assert [time.method_ms for time in twice] == pytest.approx([t.method_ms for t in once])
    assert [time.title for time in twice] == ["method unknown"]


def test_known_method_is_not_unknown_beside_a_program() -> None:
    methods = analyse_profile(load_session([CORPUS / "mm_portable"])).methods
    assert [time.title for time in methods] == ["forward"]


def test_profile_lists_each_unknown_method() -> None:
    files = [folder / "run.etdp" for folder in DIFFERENT[0]]
    data = valid(run("profile", *files, "--format", "json"), "profile")["data"]
    names = [f"unknown, {folder.name}/run.etdp" for folder in DIFFERENT[0]]
    assert list(data["methods"]) == names
    text = run("profile", *files).out
    assert all(f"method {name}: " in text for name in names)


@pytest.mark.parametrize(
    "files", list(itertools.product(("a/run.etdp", "b/run.etdp", "c/other.etdp", ""), repeat=3))
)
def test_labels_of_kinds_are_never_the_same(files: tuple[str, ...]) -> None:
    assert len(set(kind_labels(files))) == len(files)


@pytest.mark.parametrize("program", [CORPUS / "convnet_portable", DATA / "extra/two_methods"])
def test_times_of_runs_of_another_program_are_of_none_of_its_methods(program: Path) -> None:
    foreign = load_session([program / "model.pte", CORPUS / "mm_portable" / "run.etdp"])
    assert [time_of(foreign, method) for method in foreign.methods] == [None] * len(foreign.methods)
    assert all(method_json(foreign, method)["method_ms"] is None for method in foreign.methods)
    assert [one.method for one in analyse_profile(foreign).methods] == [""]
    own = load_session([program])
    times = {method: time_of(own, method) for method in own.methods}
    assert all(times[one.method] is one for one in analyse_profile(own).methods)
