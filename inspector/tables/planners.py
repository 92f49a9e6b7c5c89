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
_PLANNER, _BUFFER = RowField("planner"), RowField("buffer", Quantity.COUNT)
_FIGURES = (
    RowField("planned", Quantity.SIZE),
    RowField("reuse", Quantity.PLAIN),
    RowField("fragmentation", Quantity.SHARE),
    RowField("unused at the peak", Quantity.SIZE),
    RowField("peak", Quantity.SIZE),
)


def planner_table(
    plan: MemoryPlan, others: Mapping[str, MemoryPlan], units: Units = AUTOMATIC
) -> Table:
    """Return one row per planner and planned buffer, that of the file first.

    Reuse is the bytes of all values by those of the buffer; fragmentation is the share of the
    buffer that is free at the peak. Of several buffers each row begins with its own.

    Args:
        plan: of the file
        others: by planner
        units: of sizes
    """
    several = len({arena.mem_id for one in (plan, *others.values()) for arena in one.arenas}) > 1
    cells: list[tuple[object, ...]] = []
    keys: list[tuple[str, int]] = []
    for name, one in {IN_FILE: plan, **others}.items():
        for arena in one.arenas:
            found = plan_figures(arena)
            shares = found.reuse, found.fragmentation
            sizes = found.hole_bytes, found.peak_bytes
            figures = found.planned_bytes, *shares, *sizes
            buffer = arena.mem_id
            cells.append((name, buffer, *figures) if several else (name, *figures, buffer))
            keys.append((name, arena.mem_id))
    fields = (_BUFFER, *_FIGURES) if several else (*_FIGURES, _BUFFER)
    return row_table((_PLANNER, *fields), cells, "plans", keys=keys, units=units)
