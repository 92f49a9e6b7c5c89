"""The part that runs inside pytest: serves the imports and keeps what became of each test."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.suites import missing, serve

_RESULTS = Path(os.environ["SUITES_RESULTS"])
_OURS = os.environ.get("SUITES_SIDE") != "stock"
_PRIVATE = re.compile(r"'(\w+)' object has no attribute '(\w+)'")

if _OURS:
    serve.install()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Names without counterpart fail a test from here on."""
    missing.used.clear()
    missing.running = True
    # Random inputs of float16 exceed the tolerance of these tests in 3 of 100 draws (bmm).
    torch.manual_seed(0)
    try:
        return (yield)
    finally:
        missing.running = False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[Any]:
    """Write the needed names and the kind of error into the report, which crosses processes."""
    report = yield
    if report.failed and call.excinfo is not None:
        error = call.excinfo.value
        needs = list(dict.fromkeys(missing.used)) or _private_name(call.excinfo)
        said = f"{type(error).__name__}: {str(error)[:400]}"
        last = call.excinfo.traceback[-1]
        report.user_properties.append(
            ("suites", {"needs": needs, "error": said, "at": f"{last.path}:{last.lineno + 1}"})
        )
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write what became of a phase or subtest of a test; of a dead process there is a text only."""
    facts: dict[str, Any] = {"outcome": report.outcome, "seconds": round(report.duration, 2)}
    if report.failed:
        said = {"needs": [], "error": str(report.longrepr)[-400:]}
        facts |= dict(report.user_properties).get("suites", said)
    _write(report.nodeid, facts)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Write which files cannot be imported."""
    if report.failed:
        said = str(report.longrepr)[-400:]
        _write(report.nodeid, {"outcome": "failed", "seconds": 0.0, "needs": [], "error": said})


def _write(test: str, facts: dict[str, Any]) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:  # its reports go to the process that started it
        with _RESULTS.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"test": test, **facts}) + "\n")


def _private_name(raised: pytest.ExceptionInfo[BaseException]) -> list[str]:
    """Return the attribute that a stock file asked for and that our class has not."""
    found = _PRIVATE.search(str(raised.value))
    asked_by_stock = "executorch" in str(raised.traceback[-1].path)
    if found is None or not asked_by_stock or not isinstance(raised.value, AttributeError):
        return []
    return [f"{found[1]}.{found[2]}"]
