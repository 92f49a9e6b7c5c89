"""Results of a runtime that computes otherwise when it keeps the values of its layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inspector.numerics.metrics import Metrics
from inspector.numerics.report import INSIDE, Row
from schema.backends import backend_of

OTHER = (
    "the layer with this value is {off:.4g} off where each layer's value is kept, which is a second"
    " import of the payload: the runtime computes otherwise without"
)
_MOST = 10.0  # times that an output may be further off than the layer whose value it is


def with_other_results(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return rows with a note at results that are further off than the layer of their value.

    Only of backends that log values by a second import: a fault of the first is not in these.
    """
    layers = {_key(row): row.total for row in rows if row.place == INSIDE and row.total is not None}
    return tuple(
        replace(row, note=OTHER.format(off=layer.max_abs))
        if (layer := layers.get(_key(row))) is not None and _is_apart(row, layer)
        else row
        for row in rows
    )


def _is_apart(row: Row, layer: Metrics) -> bool:
    probed = row.place != INSIDE and backend_of(row.operator).probes
    far = row.total is not None and row.total.max_abs > _MOST * layer.max_abs
    return probed and far and row.differs and not row.note


def _key(row: Row) -> tuple[int, str, str]:
    return row.instruction, row.node, row.value
