"""The table of costly tests names tests that exist."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from tests.architecture.tree import ROOT
from tests.conftest import sample
from tests.costly import LIMITS


@pytest.mark.parametrize("path", LIMITS)
def test_costly_tests_exist(path: str) -> None:
    found = set(re.findall(r"^def (test_\w+)", (ROOT / "tests" / path).read_text("utf-8"), re.M))
    assert LIMITS[path].keys() <= found
    assert min(LIMITS[path].values()) > 0


@pytest.mark.parametrize(("most", "expected"), [(99, ["c[0]", "c[4]", "c[8]"]), (1, ["c[0]"])])
def test_cases_that_are_kept_are_evenly_spread(most: int, expected: list[str]) -> None:
    left_out: list[list[Any]] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: left_out.append(items))
    items: list[Any] = [SimpleNamespace(nodeid=f"c[{number}]") for number in range(12)]
    items.append(SimpleNamespace(nodeid="other"))
    whole = len(items)
    sample(SimpleNamespace(hook=hook), items, {"c": 3}, most)  # pyright: ignore[reportArgumentType]
    names = [item.nodeid for item in items]
    assert names == [*expected, "other"]
    assert len(left_out[0]) == whole - len(names)
