"""Tables for tests, small and large."""

from __future__ import annotations

import numpy as np

from inspector.tables.table import (
    Table,
    Total,
    badge_column,
    number_column,
    share_column,
    text_column,
)
from inspector.units import Quantity


def operators() -> Table:
    """Return six operators with modules, times and shares; the last one has no name."""
    names = ["conv_10", "conv_2", "Erf", "add", "relu", None]
    times = np.array([212e3, 81e3, 548e3, np.nan, 56e3, 182e3])
    return Table(
        (
            text_column("operator", names, missing="unattributed", mono=True),
            text_column("module", ["conv1", "conv1", "act", "act", "head", ""]),
            number_column("p50", times, Quantity.TIME, total=Total.SUM),
            number_column("bytes", [400, 300, 200, None, 0, 2048], Quantity.SIZE, total=Total.MAX),
            share_column("share of method", times / 1e6),
            badge_column("join", ["exact"] * 5 + ["none"], tone=lambda v: "warn" * (v == "none")),
        ),
        6,
        keys=["a", "b", "c", "d", "e", "rest"],
        muted=np.array([False] * 5 + [True]),
        noun="operators",
    )


def large(rows: int) -> Table:
    """Return many rows: half of the names differ, few modules."""
    random = np.random.default_rng(7)
    return Table(
        (
            text_column("operator", [f"aten_conv_{i % (rows // 2)}_x" for i in range(rows)]),
            text_column("module", [f"layers.{i % 120}.attn" for i in range(rows)]),
            number_column("p50", random.random(rows) * 1e6, Quantity.TIME),
            number_column("bytes", random.integers(0, 1 << 20, rows), Quantity.SIZE),
        ),
        rows,
    )
