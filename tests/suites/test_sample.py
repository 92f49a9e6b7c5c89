"""A sample of the stock wheel's own tests passes, as recorded in passing.txt."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.compat.names import places
from tests.suites import missing, sample, serve, table


@pytest.mark.interop
@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("part", list(sample.PARTS))
def test_recorded_tests_of_the_wheel_pass(part: str, tmp_path: Path) -> None:
    from tests.suites.__main__ import run

    outcomes = run(sample.PARTS[part], tmp_path)
    recorded = {test for test in sample.passing() if sample.in_part(test, part)}
    failed = {
        test: outcomes.get(test, {}).get("error", "not collected")
        for test in sorted(recorded)
        if outcomes.get(test, {"outcome": None})["outcome"] != "passed"
    }
    assert recorded
    assert failed == {}


@pytest.mark.interop
def test_documented_names_are_found_wherever_the_wheel_imports_them_from() -> None:
    wanted = places()["executorch.exir", "to_edge"]
    found = serve.resolve("executorch.exir.program._program", "to_edge")
    assert (found.__module__, found.__name__) == ("compiler.pipeline.edge_manager", wanted.name)


@pytest.mark.interop
def test_name_without_counterpart_fails_when_a_test_uses_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = serve.resolve("executorch.exir.native.native", "to_native")
    name.anything(1)[0]  # while files are imported everything goes
    monkeypatch.setattr(missing, "running", True)
    with pytest.raises(missing.NameMissingError, match=r"exir\.native\.native"):
        name(1)
    with pytest.raises(missing.NameMissingError):
        isinstance(1, name)


def test_not_applicable_tests_have_one_reason_each() -> None:
    assert all(len(reason) > 20 for reason in table.not_applicable().values())


def test_table_counts_each_test_once() -> None:
    test = "executorch_tests/runtime/test/test_x.py::T::test_"
    outcomes = {
        f"{test}a": {"outcome": "passed"},
        f"{test}b": {"outcome": "failed", "needs": ["a.b"], "error": "E"},
        f"{test}c": {"outcome": "failed", "needs": [], "error": "E"},
        f"{test}d": {"outcome": "skipped"},
    }
    assert "| runtime | 4 | 1 | 1 | 1 | 0 | 1 |" in table.as_markdown(outcomes)
    assert "1 a.b" in table.leftovers(outcomes)
