"""Plans of one method by several planners: size, peak, fragmentation, reuse."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.memory.plan import MemoryPlan
from inspector.memory.replan import plan_figures
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import AUTOMATIC, Units
from inspector.tables.table import Table
from inspector.units import Quantity

IN_FILE = "in the file"
_FIELDS = (
    RowField("planner"),
    RowField("planned", Quantity.SIZE),
    RowField("reuse", Quantity.PLAIN),
    RowField("fragmentation", Quantity.SHARE),
    RowField("unused at the peak", Quantity.SIZE),
    RowField("peak", Quantity.SIZE),
    RowField("buffer", Quantity.COUNT),
)


def planner_table(
    plan: MemoryPlan, others: Mapping[str, MemoryPlan], units: Units = AUTOMATIC
) -> Table:
    """Return one row per planner and planned buffer, that of the file first.

    Reuse is the bytes of all values by those of the buffer; fragmentation is the share of the
    buffer that is free at the peak.

    Args:
        plan: of the file
        others: by planner
        units: of sizes
    """
    cells: list[tuple[object, ...]] = []
    keys: list[tuple[str, int]] = []
    for name, one in {IN_FILE: plan, **others}.items():
        for arena in one.arenas:
            found = plan_figures(arena)
            shares = found.reuse, found.fragmentation
            sizes = found.hole_bytes, found.peak_bytes
            cells.append((name, found.planned_bytes, *shares, *sizes, arena.mem_id))
            keys.append((name, arena.mem_id))
    return row_table(_FIELDS, cells, "plans", keys=keys, units=units)
