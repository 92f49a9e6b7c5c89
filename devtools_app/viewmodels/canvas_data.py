"""Input of the canvases: frozen columns built by view-models, without Qt or sessions.

Colours are references, resolved by the theme: a number from 0 is a backend (or another category)
of the qualitative palette, PLAIN is nothing special, NOT_DELEGATED the warm grey.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from devtools_app.appearance.colours import PLAIN
from inspector.units import Quantity

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Swatch(str, Enum):
    """Kind of swatch of a legend entry."""

    REGION = "region"  # tinted with a border, as a delegate is drawn
    FILL = "fill"  # a filled block of a category
    OUTLINE = "outline"  # bold border, as what is not delegated
    PLAIN = "plain"
    BAR = "bar"  # a box with a share bar, in the accent colour
    RAMP = "ramp"  # the colour map of the overlay, from low to high
    HATCH = "hatch"  # unattributed time, smaller parts
    RING = "ring"  # found by a search
    GHOST = "ghost"  # dashed: what another graph has here
    HEADING = "heading"  # of the entries after it
    NOTE = "note"  # quiet words without a swatch
    STRIPE = "stripe"  # at the left of a box, and its outline: what runs it
    STRIPE_OUTSIDE = "stripe outside"  # the same for what is not delegated


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """One line of a legend.

    Attributes:
        label: its meaning
        swatch: its form
        colour: reference for REGION and FILL
        low: text at the low end of a ramp
        high: text at its high end
        diverging: the ramp is the one for signed values
    """

    label: str
    swatch: Swatch = Swatch.FILL
    colour: int = PLAIN
    low: str = ""
    high: str = ""
    diverging: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class GraphOverlay:
    """Colours and share bars of nodes; at most one of values and categories is given.

    A closed cluster shows the largest value inside, the category common to all inside, and
    the sum of the shares inside.

    Attributes:
        title: as in ``time``
        values: position on the colour map, 0..1; NaN if unknown
        categories: reference of a colour, or PLAIN
        shares: length of the share bar, 0..1; or NaN
        diverging: values use the map for signed differences, 0.5 is neutral
        legend: entries shown for it
        sparse: a closed cluster shows the category of those inside that have one

    Shapes: values, shares float64[nodes]; categories int64[nodes]
    """

    title: str = ""
    values: Floats | None = None
    categories: Ints | None = None
    shares: Floats | None = None
    diverging: bool = False
    legend: tuple[LegendEntry, ...] = ()
    sparse: bool = False

    @property
    def nodes(self) -> int | None:
        """Return the number of nodes it describes, None without columns."""
        columns = (self.values, self.categories, self.shares)
        return next((len(column) for column in columns if column is not None), None)


@dataclass(frozen=True, slots=True)
class TimelineLane:
    """One row of the timeline.

    Attributes:
        label: shown at the left
        group: run or method; lanes of a group stand together under its name
        depth: level of nesting, 0 outermost
        apart: whether its events lie in none of the lanes above
    """

    label: str
    group: str = ""
    depth: int = 0
    apart: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class TimelineCounter:
    """A quantity over time, below the lanes of a group.

    Attributes:
        label: what is counted
        group: of lanes
        start: from when each value holds, to the next one
        value: values, NaN where unknown
        top: largest value
        note: where the values come from, shown on hover
        missing: why there are no values, else empty
        quantity: of the values

    Shapes: start, value float64[values]
    """

    label: str
    group: str
    start: Floats
    value: Floats
    top: float
    note: str
    missing: str = ""
    quantity: Quantity = Quantity.SIZE


@dataclass(frozen=True, slots=True, eq=False)
class TimelineData:
    """Events in lanes, as columns.

    Attributes:
        lanes: rows from top to bottom
        lane: row of each event
        start: begin of each event
        end: its end, not before its begin
        colour: reference of its colour
        label: number of its name
        names: names used by label
        unattributed: drawn hatched: time that belongs to no event
        quantity: TIME for nanoseconds, TICKS for a clock of unknown rate
        logged: whether values were logged meanwhile: all is hatched, times are not the program's
        counters: quantities over time

    Shapes: lane, colour, label int64[events]; start, end float64[events];
        unattributed bool[events]
    """

    lanes: tuple[TimelineLane, ...]
    lane: Ints
    start: Floats
    end: Floats
    colour: Ints
    label: Ints
    names: tuple[str, ...]
    unattributed: Bools
    quantity: Quantity = Quantity.TIME
    logged: bool = False
    counters: tuple[TimelineCounter, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class MemoryData:
    """Values of one planned buffer in address and time.

    Attributes:
        names: of each value
        first: first step at which it is live
        last: last step at which it is live, inclusive
        offset: first byte in the planned buffer
        nbytes: size
        colour: reference of its colour
        strong: drawn in full colour, as those live at the peak; others are tinted
        steps: number of steps on the axis
        planned_bytes: size of the planned buffer
        peak_step: step with the most live bytes, None when unknown
        peak_bytes: live bytes at that step
        lower_bound_bytes: no plan can be smaller, None when unknown
        planner: shown beside the planned size, as in ``greedy``
        step_name: name of a step
        scale_bytes: size of a plan beside it, which is drawn on the same scale

    Shapes: first, last, offset, nbytes, colour int64[values]; strong bool[values]
    """

    names: tuple[str, ...]
    first: Ints
    last: Ints
    offset: Ints
    nbytes: Ints
    colour: Ints
    strong: Bools
    steps: int
    planned_bytes: int
    peak_step: int | None = None
    peak_bytes: int = 0
    lower_bound_bytes: int | None = None
    planner: str = ""
    step_name: str = "instruction"
    scale_bytes: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class TreemapData:
    """Parts within parts, sized by bytes; part 0 is the whole.

    A part with children has the sum of their bytes.

    Attributes:
        names: of each part
        nbytes: size of each part
        parent: part around it, -1 for the whole; parents come before their children
        colour: reference of its colour
        kinds: what each part is, shown on hover

    Shapes: nbytes, parent, colour int64[parts]
    """

    names: tuple[str, ...]
    nbytes: Ints
    parent: Ints
    colour: Ints
    kinds: tuple[str, ...] = ()
