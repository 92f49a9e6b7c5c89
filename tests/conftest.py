"""Fixtures shared by all tests. Qt draws offscreen unless the caller chose a platform."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections.abc import Generator, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import devtools_app  # noqa: F401  # its choice for Qt for Python, before pytest-qt imports that
from inspector.jobs import process
from tests.costly import limits
from tests.oracle.client import Oracle
from tests.seeding import seed, seed_imports, seeded
from tests.tools.forked import WORKER, Forks

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# Each core has a test process of its own; threads that wait for one another would spin.
os.environ.setdefault("OMP_NUM_THREADS", "1")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background; children would inherit that, and tests interrupt some of them.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run, however slow the machine: a red run means a change, not a draw.
# pytest --hypothesis-profile=explore draws new ones, quick (make check) a fifth of them.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None)
settings.register_profile("quick", derandomize=True, deadline=None, database=None, max_examples=20)
settings.load_profile("repeatable")

seed_imports()
DATA = Path(__file__).resolve().parent / "data"
REAL_START = process.started
# Cases of a parametrized test that make check runs; the whole suite runs all of them.
CASES = 16


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


@pytest.fixture(scope="session", autouse=True)
def _no_calibration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let no test read what this machine has measured, or write into the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _forked_workers() -> Iterator[None]:
    """Let workers be forks of one process that has loaded torch (see tests/tools/forked.py)."""
    forks = Forks(REAL_START, [f"inspector.worker.{name}" for name in WORKER])
    if hasattr(os, "fork"):
        process.started = forks.started
    yield
    process.started = REAL_START
    forks.close()


@pytest.fixture
def real_workers() -> Iterator[None]:
    """Let every worker be a process of its own from the start, as for users."""
    forked, process.started = process.started, REAL_START
    yield
    process.started = forked


@cache
def _marks_of_file(path: Path) -> frozenset[str]:
    """Return the marks that a file of tests gives to all of its tests."""
    found = re.search(r"^pytestmark = (\[[^\]]*\]|.*)", path.read_text("utf-8"), re.MULTILINE)
    return frozenset(re.findall(r"pytest\.mark\.(\w+)", found[1])) if found else frozenset()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file whose tests are all left out: half of the time of collecting make check."""
    left_out = set(re.findall(r"not (\w+)", config.option.markexpr))
    only_these = re.fullmatch(r"not \w+( and not \w+)*", config.option.markexpr)
    if only_these is None or not collection_path.name.startswith("test_"):
        return None
    return True if left_out & _marks_of_file(collection_path) else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of make thorough."""
    parser.addoption("--all-cases", action="store_true", help="every case of costly tests")


def pytest_configure(config: pytest.Config) -> None:
    """Keep our seeds where pytest-randomly is installed: it only draws the order."""
    if config.pluginmanager.hasplugin("randomly"):
        config.option.randomly_reset_seed = False


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run files with long tests first, so that processes beside each other end together."""
    quick = config.getoption("hypothesis_profile", None) == "quick"
    if not config.getoption("all_cases"):
        sample(config, items, limits(), CASES if quick else len(items))
    if not config.pluginmanager.hasplugin("randomly"):
        long = {item.path for item in items if _is_long(item)}
        items.sort(key=lambda item: item.path not in long)


def sample(
    config: pytest.Config, items: list[pytest.Item], known: Mapping[str, int], most: int
) -> None:
    """Keep so many cases of each test, evenly spread."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept: set[int] = set()
    for name, cases in tests.items():
        count = min(known.get(name, most), most, len(cases))
        kept |= {id(cases[index * len(cases) // count]) for index in range(count)}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


def pytest_collection_finish() -> None:
    """Let no collection of garbage walk through the tests themselves: half a million objects."""
    gc.collect()
    gc.freeze()


def _is_long(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("timeout")
    return mark is not None and mark.args[0] > float(item.config.getini("timeout"))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Let a file of tests draw the same whatever was imported before it."""
    with seeded(f"collection of {collector.nodeid}"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Generator[None, Any, Any]:
    """Let a shared fixture draw the same whichever test asks for it first."""
    if fixturedef.scope == "function":
        return (yield)
    param = getattr(request, "param_index", 0)
    with seeded(f"fixture {fixturedef.baseid} {fixturedef.argname} {param}"):
        return (yield)


@pytest.fixture(autouse=True)
def own_seed(request: pytest.FixtureRequest) -> None:
    """Let a test draw the same in every run, order and process."""
    seed(request.node.nodeid)
