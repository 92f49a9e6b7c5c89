"""A job is one file and one line of the table; nothing else names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.jobs import run as job_runs
from inspector.jobs import table
from inspector.jobs.messages import Counted, Ended
from inspector.jobs.run import JobRun
from inspector.jobs.table import JOBS, kind_of
from schema.objects.codec import ContentError
from tests.inspector.jobs_here import Here
from tests.inspector.toy_job import COUNT, CountJob, Total


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add one line to the table, and do without processes."""
    monkeypatch.setattr(table, "JOBS", (*JOBS, COUNT))
    monkeypatch.setattr(job_runs, "Worker", Here)


def test_toy_job_of_a_single_file_runs_like_every_other(tmp_path: Path) -> None:
    run = JobRun(CountJob(4), tmp_path / "made")
    outcome = run.wait()
    assert outcome is not None
    assert outcome.ended is Ended.FINISHED, outcome
    assert (run.result, run.state, run.kind.label) == (Total(4), 4, "counting")
    assert run.take()[-1] == Counted(4, 4)
    assert (tmp_path / "made/total.txt").read_text("utf-8") == "4"
    assert outcome.result == {"total": 4, "folder": str(tmp_path / "made")}


def test_toy_job_that_fails_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    run = JobRun(CountJob(-1), tmp_path / "made")
    outcome = run.wait()
    assert outcome is not None
    assert outcome.ended is Ended.FAILED
    assert "expected a number from 0, found -1" in outcome.sentence
    assert list(tmp_path.iterdir()) == []


def test_request_of_another_shape_names_the_field() -> None:
    with pytest.raises(ContentError, match="count: to: expected an integer, found 'four'"):
        COUNT.read({"to": "four"})
    with pytest.raises(KeyError, match="available: compile, run"):
        kind_of(3)
