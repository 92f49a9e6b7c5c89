"""Tests marked `zoo` run only when they are asked for: pytest -m zoo, with the extra zoo."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "zoo" in config.option.markexpr:
        return
    left_out = [item for item in items if item.get_closest_marker("zoo")]
    items[:] = [item for item in items if not item.get_closest_marker("zoo")]
    config.hook.pytest_deselected(items=left_out)
