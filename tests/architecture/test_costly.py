"""The table of costly tests names tests that exist."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from tests.architecture.tree import ROOT
from tests.conftest import sample
from tests.costly import ALWAYS, affordable, costs
from tests.tools.costs import read


def test_costly_tests_exist() -> None:
    files: dict[str, set[str]] = {}
    for test in costs().keys() | ALWAYS:
        path, _, name = test.partition("::")
        files.setdefault(path, set()).add(name)
    for path, names in files.items():
        text = (ROOT / path).read_text("utf-8")
        assert names <= set(re.findall(r"^ *def (test_\w+)", text, re.MULTILINE)), path


@pytest.mark.parametrize(
    ("cases", "spent", "expected"), [(100, 100.0, 2), (100, 1.0, 100), (2, 13.0, 1), (1, 26.0, 0)]
)
def test_cases_fit_the_budget(cases: int, spent: float, expected: int) -> None:
    assert affordable(cases, spent) == expected


def test_costs_are_read_from_the_log_of_a_run() -> None:
    log = """\
[gw1] [  1%] PASSED tests/a.py::test_b[x y]
[gw0] [ 10%] PASSED tests/a.py::test_b[z]
[gw0] [ 10%] PASSED tests/a.py::test_quick
12.50s call     tests/a.py::test_b[x y]
1.04s setup    tests/a.py::test_b[z]
0.41s call     tests/a.py::test_quick
"""
    assert read(log) == {"tests/a.py::test_b": (2, 13.5)}


@pytest.mark.parametrize(
    ("most", "expected"), [(99, ["c[0]", "c[4]", "c[8]"]), (1, ["c[0]"]), (0, [])]
)
def test_cases_that_are_kept_are_evenly_spread(most: int, expected: list[str]) -> None:
    left_out: list[list[Any]] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: left_out.append(items))
    items: list[Any] = [SimpleNamespace(nodeid=f"c[{number}]") for number in range(12)]
    items.append(SimpleNamespace(nodeid="other"))
    whole = len(items)
    sample(SimpleNamespace(hook=hook), items, {"c": 3}, most)  # pyright: ignore[reportArgumentType]
    names = [item.nodeid for item in items]
    assert names == [*expected, *["other"][:most]]
    assert len(left_out[0]) == whole - len(names)
