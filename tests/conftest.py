"""Fixtures shared by all tests. Qt draws offscreen unless the caller chose a platform."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.oracle.client import Oracle

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background; children would inherit that, and tests interrupt some of them.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run, however slow the machine: a red run means a change, not a draw.
# pytest --hypothesis-profile=explore draws new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("repeatable")

DATA = Path(__file__).resolve().parent / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of committed artifacts: corpus/ and extra/ (see their READMEs)."""
    return DATA


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of sessions written by stock releases and of delegate payloads."""
    return DATA / "corpus"


@pytest.fixture(scope="session")
def extra() -> Path:
    """The folder of sessions written by the recipes in tests/data/zoo."""
    return DATA / "extra"


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    """The stock tool in a child process; mark tests which use it with `interop`.

    `oracle(folder)` returns all facts of a session folder, `oracle.ask(verb, …)` one answer
    about one file. The workers of a run share the answers.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with Oracle(shared / "oracle") as found:
        yield found
