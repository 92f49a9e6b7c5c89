"""A report that is not of the trace beside it, or damaged, is named and not used."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devtools_app.sample_data import LOOP
from devtools_app.viewmodels.headline import time_sum
from devtools_app.viewmodels.status import status_facts
from inspector.files.load import load_session
from inspector.files.session import Session, SessionOptions
from inspector.findings.session import findings
from inspector.profile.methods import (
    PARTS_WITH_VALUES,
    TIMES_WITH_VALUES,
    VALUES_LOGGED,
    analyse_profile,
)
from inspector.tables.selection import AUTOMATIC
from tests.inspector.cli_runs import run
from tests.inspector.sessions import DATA

RUN = DATA / "runs/convnet_xnnpack"
OTHER = DATA / "runs/convnet_portable"
Report = dict[str, Any]


def _session(place: Path, change: Callable[[Report], object]) -> Session:
    """Return the session of a run whose report was changed."""
    shutil.copytree(RUN, place)
    report = json.loads((place / "run.json").read_bytes())
    written = change(report)
    text = (
        written if isinstance(written, str) else json.dumps(report if written is None else written)
    )
    (place / "run.json").write_text(text)
    return load_session([place])


DAMAGED: dict[str, tuple[Callable[[Report], object], str]] = {
    "cut": (lambda one: json.dumps(one)[:400], "as JSON"),
    "no files": (lambda one: one.pop("files") and None, "list of files"),
    "a negative time": (lambda one: one.update(run_ms=[-1.0]), "expected times from 0"),
    "a word": (lambda one: one.update(run_ms=["soon"]), "run_ms"),
    "another run": (
        lambda one: [each.update(bytes=7) for each in one["files"]] and None,
        "another run, whose trace has 7 bytes",
    ),
    "another program": (
        lambda _: json.loads((OTHER / "run.json").read_bytes()),
        "another run",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_report_that_cannot_be_used_is_an_issue(name: str, tmp_path: Path) -> None:
    change, words = DAMAGED[name]
    session = _session(tmp_path / "run", change)
    issues = [one for one in session.all_issues() if one.where.endswith("run.json")]
    assert issues
    assert all(words in one.message for one in issues), issues
    (time,) = analyse_profile(session).methods
    assert time.bare is None
    assert time.latency_ms == time.method_ms


@pytest.mark.parametrize("written", ['{"name": "of another tool"}', "[1, 2]"])
def test_a_file_of_another_program_with_that_name_is_none(written: str, tmp_path: Path) -> None:
    session = _session(tmp_path / "run", lambda _: written)
    assert not [one for one in session.all_issues() if one.where.endswith("run.json")]


def test_a_trace_in_the_folder_of_another_run_has_no_report(tmp_path: Path) -> None:
    shutil.copy(RUN / "run.json", tmp_path / "run.json")
    shutil.copy(RUN / "run.etdp", tmp_path / "mine.etdp")
    session = load_session([tmp_path / "mine.etdp"])
    assert analyse_profile(session).methods[0].bare is None
    assert not session.all_issues()


def test_runs_without_a_trace_that_took_longer_are_doubted(tmp_path: Path) -> None:
    slow = _session(
        tmp_path / "run", lambda one: one.update(run_ms=[9 * time for time in one["run_ms"]])
    )
    (first, *_) = findings(slow)
    assert first.doubt
    assert first.text.startswith("Runs without a trace took ")


def test_a_unit_other_than_the_stated_one_is_doubted() -> None:
    known = load_session([RUN])
    assert not any("Ticks are read" in one.text for one in findings(known))
    chosen = load_session([RUN], SessionOptions("us", time_scale_assumed=False))
    texts = [one.text for one in findings(chosen) if one.doubt]
    assert "Ticks are read as us, but the trace states ns" in texts


LOGGED = DATA / "corpus/v1.5.1/convnet_xnnpack"


def test_times_in_text_have_their_tags() -> None:
    assert "with tracing, values logged, ns assumed" in run("summary", LOGGED).out
    text = run("profile", LOGGED).out
    assert text.startswith("forward: with logging of values, ")
    assert "likely other load" not in text  # the logging is the cause of what differs
    bare, traced, *_ = run("profile", RUN).out.splitlines()
    assert bare.endswith("without a trace")
    assert traced.startswith("forward: with tracing, ")


def test_the_slowest_of_runs_that_logged_values_come_first() -> None:
    rows = json.loads(run("profile", LOGGED, "--format", "json").out)["data"]["rows"]
    longest = sorted((row["total_ms"] or 0.0 for row in rows), reverse=True)[:3]
    lines = run("profile", LOGGED, "--all", "--top", "3", "--format", "tsv").out.splitlines()
    column = lines[0].split("\t").index("mean (ns)")
    means = [float(line.split("\t")[column]) for line in lines[1:]]
    assert len(means) == 3
    assert means == pytest.approx([time * 1e6 for time in longest])


@pytest.fixture
def without_clean_trace(tmp_path: Path) -> list[str]:
    """Files of a run of which the trace without values is cut off."""
    sample = next(Path(path) for path in LOOP if Path(path).is_dir())
    folder = tmp_path / "run"
    shutil.copytree(sample, folder)
    (folder / "run.etdp").write_bytes((sample / "run.etdp").read_bytes()[:2000])
    return [*(path for path in LOOP if Path(path).is_file()), str(folder)]


def test_times_without_a_trace_have_no_tag_of_the_trace_beside_them(
    without_clean_trace: list[str],
) -> None:
    session = load_session(without_clean_trace)
    profile = analyse_profile(session)
    (time,) = profile.methods
    assert profile.values_logged
    assert VALUES_LOGGED in profile.tags  # of operators and delegates
    assert time.bare is not None
    assert f"parts: {VALUES_LOGGED}" in profile.tags_of(time)
    assert VALUES_LOGGED not in profile.tags_of(time)
    texts = [one.text for one in findings(session)]
    assert PARTS_WITH_VALUES in texts
    assert TIMES_WITH_VALUES not in texts
    shown = time_sum(status_facts(session, time.method), AUTOMATIC)
    assert shown.hatched
    assert dict(shown.badges)[f"parts: {VALUES_LOGGED}"]
    assert PARTS_WITH_VALUES[1:] in run("profile", *without_clean_trace).out
