"""What quantization costs in each module: errors of its nodes beside the float program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from inspector.numerics.metrics import Metrics
from inspector.numerics.report import INSIDE, Row, RunGap
from inspector.tables.numeric_gap import computing_node
from inspector.tables.rows import RowField, row_table
from inspector.tables.table import Table
from inspector.units import Quantity


@dataclass(frozen=True, slots=True)
class LayerLoss:
    """The loss of one module.

    Attributes:
        module: dotted path, empty for nodes outside of modules, such as the inputs
        worst: its output whose own error is largest beside its signal
        own: that error
        outputs: of its nodes whose own error is known
    """

    module: str
    worst: Row
    own: Metrics
    outputs: int


def layer_losses(run: RunGap) -> tuple[LayerLoss, ...]:
    """Return the modules that lose by themselves, the largest loss first.

    An error that a module received from earlier ones is none of its own. Rows that are joined by
    order and differ are left out, as in the sentence of the largest loss. What leaves a delegate
    counts where it was computed inside.
    """
    rows: dict[str, list[tuple[Row, Metrics]]] = {}
    inside = {row.node for row in run.inside() if row.own is not None}
    for row in run.rows:
        left = row.place != INSIDE and row.node in inside
        if row.own is not None and not row.doubtful and not left:
            rows.setdefault(row.module, []).append((row, row.own))
    found = [_loss(module, each) for module, each in rows.items()]
    return tuple(sorted(found, key=lambda one: -one.own.noise))


def _loss(module: str, rows: Sequence[tuple[Row, Metrics]]) -> LayerLoss:
    worst, own = max(rows, key=lambda one: one[1].noise)
    outputs = {row.node or (row.instruction, row.slot) for row, _ in rows}
    return LayerLoss(module, worst, own, len(outputs))


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def loss_table(run: RunGap) -> Table:
    """Return one row per module; the key is the place of its worst output in the execution."""
    losses = layer_losses(run)
    rows = [
        (
            one.module or None,
            _finite(one.own.noise),
            _finite(one.own.snr_db),
            one.own.largest,
            one.outputs,
            computing_node(one.worst),
        )
        for one in losses
    ]
    fields = (
        RowField("module", mono=True, missing="no module", width=28),
        RowField("own error", Quantity.SHARE),
        RowField("SNR dB", Quantity.PLAIN, missing=""),
        RowField("max abs", Quantity.PLAIN),
        RowField("outputs", Quantity.COUNT),
        RowField("worst output", mono=True),
    )
    return row_table(fields, rows, "modules", keys=[one.worst.order for one in losses])
