"""What quantization costs in each module: errors of its nodes beside the float program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

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
        outputs: of its nodes whose own error is known
    """

    module: str
    worst: Row
    outputs: int

    @property
    def noise(self) -> float:
        """Return the root mean square of the worst own error beside that of its signal."""
        assert self.worst.own is not None
        return self.worst.own.noise


def layer_losses(run: RunGap) -> tuple[LayerLoss, ...]:
    """Return the modules that lose by themselves, the largest loss first.

    An error that a module received from earlier ones is none of its own. Rows that are joined by
    order and differ are left out, as in the sentence of the largest loss. What leaves a delegate
    counts where it was computed inside.
    """
    rows: dict[str, list[Row]] = {}
    inside = {row.node for row in run.inside() if row.own is not None}
    for row in run.rows:
        left = row.place != INSIDE and row.node in inside
        if row.own is not None and not row.doubtful and not left:
            rows.setdefault(row.module, []).append(row)
    found = [_loss(module, each) for module, each in rows.items()]
    return tuple(sorted(found, key=lambda one: -one.noise))


def _loss(module: str, rows: Sequence[Row]) -> LayerLoss:
    worst = max(rows, key=lambda row: row.own.noise if row.own is not None else 0.0)
    return LayerLoss(module, worst, len({row.node or (row.instruction, row.slot) for row in rows}))


def _decibels(row: Row) -> float | None:
    found = row.own.snr_db if row.own is not None else None
    return found if found is not None and math.isfinite(found) else None


def loss_table(run: RunGap) -> Table:
    """Return one row per module; the key is the place of its worst output in the execution."""
    losses = layer_losses(run)
    rows = [
        (
            one.module or None,
            one.noise if math.isfinite(one.noise) else None,
            _decibels(one.worst),
            one.worst.own.largest if one.worst.own is not None else None,
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
    table = row_table(fields, rows, "modules", keys=[one.worst.order for one in losses])
    largest = max((row[1] for row in rows if row[1] is not None), default=0.0)
    columns = [replace(one, full=largest or 1.0) if one.full else one for one in table.columns]
    return replace(table, columns=tuple(columns))
