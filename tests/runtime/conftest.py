"""Fixtures of the runtime's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.runtime.stock import Stock


@pytest.fixture(scope="session")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stock]:
    """The stock runtime and tools in a child process; mark tests which use it with `interop`."""
    runner = Stock(tmp_path_factory.mktemp("stock"))
    yield runner
    runner.close()
