"""Workers that are started before they are wanted."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector.jobs.executing import RunJob
from inspector.jobs.messages import Ended
from inspector.jobs.process import Worker
from inspector.jobs.run import JobRun
from inspector.jobs.spare import SpareWorker
from inspector.jobs.table import EXECUTES
from tests.inspector.sessions import DATA

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("real_workers")]

PROGRAM = DATA / "corpus/v1.5.1/mm_portable/model.pte"
PATIENCE = 60.0


@pytest.fixture
def spare() -> Iterator[SpareWorker]:
    made = SpareWorker(EXECUTES)
    yield made
    made.close()


def test_spare_worker_runs_a_program_and_is_spare_no_more(
    spare: SpareWorker, tmp_path: Path
) -> None:
    spare.start()
    first = spare.pid
    spare.start()
    assert spare.pid == first, "one is enough"
    worker = spare.take()
    assert worker is not None
    assert spare.pid is None
    assert spare.take() is None
    run = JobRun(RunJob(str(PROGRAM)), tmp_path / "run", worker=worker)
    try:
        outcome = run.wait(PATIENCE)
        assert outcome is not None
        assert outcome.ended is Ended.FINISHED, outcome
        assert (tmp_path / "run/run.etdp").exists()
    finally:
        run.close()


def test_spare_worker_that_died_is_not_given_and_replaced(spare: SpareWorker) -> None:
    spare.start()
    pid = spare.pid
    assert pid is not None
    held: Worker | None = spare._worker
    os.kill(pid, signal.SIGKILL)
    assert held is not None
    assert held.wait(PATIENCE) is not None
    assert not spare.ready
    spare.start()
    assert spare.pid not in (None, pid)
    os.kill(spare.pid or 0, 0)


def test_spare_worker_ends_with_its_owner_and_none_comes_after(spare: SpareWorker) -> None:
    spare.start()
    held = spare._worker
    assert held is not None
    spare.close()
    assert held.outcome is not None
    spare.start()
    assert spare.pid is None
    assert spare.take() is None
