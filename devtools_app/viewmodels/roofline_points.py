"""The roofline as points and lines in logarithmic coordinates. Qt-free."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from devtools_app.appearance.colours import NOT_DELEGATED, backend_index
from devtools_app.viewmodels.canvas_data import LegendEntry, Swatch
from inspector.roofline.rows import Limits, Roofline, RooflineRow, rate_text
from inspector.tables.roofline import roofline_table
from inspector.tables.selection import Units
from inspector.tables.table import Table
from inspector.trace.group_keys import pack
from inspector.units import Quantity, format_quantity, format_share, format_time
from schema.backends import short_backend
from schema.objects.plural import plural

_SMALLEST, _LARGEST = 7.0, 26.0  # pixels of a point
_AROUND = 0.5  # decades around what is drawn
_PREFIXES = {0: "", 1: "k", 2: "M", 3: "G", 4: "T", 5: "P"}


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """An operator in the plane.

    Attributes:
        row: of the table
        x: log10 of FLOPs a byte
        y: log10 of FLOPs a second
        diameter: in pixels; the area is the share of time
        operator: its work and time
    """

    row: int
    x: float
    y: float
    diameter: float
    operator: RooflineRow

    @property
    def backend(self) -> str:
        """Return its id, empty when not delegated."""
        return self.operator.backend

    @property
    def words(self) -> str:
        """Return what hovering shows."""
        return _words(self.operator)


class RooflinePoints(Sequence[RooflinePoint]):
    """Points made on first access.

    Args:
        operators: rows of the table
        rows: of the table, of each point
        places: x, y and diameter of each point

    Shapes: rows int64[points]; places float64[points, 3]
    """

    def __init__(
        self,
        operators: Sequence[RooflineRow],
        rows: NDArray[np.int64],
        places: NDArray[np.float64],
    ) -> None:
        self._operators = operators
        self._rows = rows
        self._places = places

    @override
    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> RooflinePoint: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RooflinePoint, ...]: ...
    @override
    def __getitem__(self, index: int | slice) -> RooflinePoint | tuple[RooflinePoint, ...]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(*index.indices(len(self))))
        row = int(self._rows[index])
        x, y, diameter = self._places[index].tolist()
        return RooflinePoint(row, x, y, diameter, self._operators[row])


@dataclass(frozen=True, slots=True)
class CeilingLine:
    """A limit as a line, with its label at its right or lower end."""

    x: tuple[float, float]
    y: tuple[float, float]
    label: str
    slanted: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class RooflineScene:
    """The content of the drawing.

    Attributes:
        roofline: the operators and their limits
        table: of all operators
        points: operators that have FLOPs, bytes and a time
        ceilings: the limits, none without a calibration
        across: range of x
        up: range of y
        unplaced: how many operators have no place in the plane, by reason
        places: x, y and diameter of the points
        rows: of the table of the points
        backends: of the points, in the order of their first one
        owners: index into backends of each point

    Shapes: places float64[points, 3]; rows, owners int64[points]
    """

    roofline: Roofline
    table: Table
    points: Sequence[RooflinePoint]
    ceilings: tuple[CeilingLine, ...]
    across: tuple[float, float]
    up: tuple[float, float]
    unplaced: tuple[str, ...]
    places: NDArray[np.float64]
    rows: NDArray[np.int64]
    backends: tuple[str, ...]
    owners: NDArray[np.int64]

    @property
    def legend(self) -> tuple[LegendEntry, ...]:
        """Return what the points mean, and why some operators have none."""
        if not self.points:
            return ()
        owners = [
            LegendEntry(short_backend(one), Swatch.FILL, backend_index(one))
            if one
            else LegendEntry("not delegated", Swatch.FILL, NOT_DELEGATED)
            for one in self.backends
        ]
        area = LegendEntry("area: share of the time", Swatch.NOTE)
        absent = [LegendEntry(text, Swatch.NOTE) for text in self.unplaced]
        heading = [LegendEntry("In the table only", Swatch.HEADING)] if absent else []
        return (*owners, area, *heading, *absent)

    @property
    def words(self) -> str:
        """Return how many operators have a place in the plane, and by which limits."""
        shown, total = len(self.points), self.table.length
        parts = [f"{shown:,} of {plural(total, 'operator')} in the plot"]
        calibration = self.roofline.limits.calibration
        if calibration is None:
            parts.append("not calibrated: no limits")
        else:
            threads = plural(self.roofline.limits.threads, "thread")
            parts.append(f"{threads} on {calibration.described}")
        return " · ".join([*filter(None, [self.roofline.limits.note]), *parts])


def roofline_scene(found: Roofline, units: Units) -> RooflineScene:
    """Return the points, ceilings and table of a roofline."""
    largest = max((row.time_ns or 0.0 for row in found.rows), default=0.0)
    made = [
        _point(number, row, largest) for number, row in enumerate(found.rows) if _is_placed(row)
    ]
    dtypes = dict.fromkeys(one.operator.work.dtype or "float32" for one in made)
    across = _range([one.x for one in made], _ridges(found.limits, dtypes))
    ceilings = _ceilings(found.limits, dtypes, across)
    up = _range([one.y for one in made], [max(one.y) for one in ceilings])
    table = roofline_table(found.rows, found.method.label, units)
    places, rows, backends, owners = point_columns(made)
    points = RooflinePoints(found.rows, rows, places)
    columns = (places, rows, backends, owners)
    unplaced = _unplaced(found.rows)
    return RooflineScene(found, table, points, ceilings, across, up, unplaced, *columns)


def _unplaced(rows: Sequence[RooflineRow]) -> tuple[str, ...]:
    idle = sum(row.work.flops == 0 and row.time_ns is not None for row in rows)
    coarse = sum(row.is_coarse and bool(row.work.flops) for row in rows)
    sized = sum(row.has_other_sizes and bool(row.work.flops) for row in rows)
    unknown = sum(row.work.flops is None for row in rows)
    counted = (
        (idle, "that compute nothing"),
        (coarse, "too short for their clock"),
        (sized, "of sizes that the runs may not have had"),
        (unknown, "of unknown work"),
    )
    return tuple(f"{count:,} {reason}" for count, reason in counted if count)


def point_columns(
    points: Sequence[RooflinePoint],
) -> tuple[NDArray[np.float64], NDArray[np.int64], tuple[str, ...], NDArray[np.int64]]:
    """Return places, rows, backends, and the backend of each of some points."""
    places = np.array([(one.x, one.y, one.diameter) for one in points], np.float64)
    rows = np.array([one.row for one in points], np.int64)
    backends = tuple(dict.fromkeys(point.backend for point in points))
    number = {backend: code for code, backend in enumerate(backends)}
    owners = np.array([number[point.backend] for point in points], np.int64)
    return np.reshape(places, (-1, 3)), rows, backends, owners


def seen_points(
    scene: RooflineScene, cells: tuple[float, float]
) -> Iterator[tuple[str, float, NDArray[np.int64]]]:
    """Yield the points to draw by backend and diameter, the largest of a backend first.

    Of points of one backend and size in one cell of the plane the first is drawn.

    Args:
        scene: the points
        cells: width and height of a cell
    """
    at = np.floor(scene.places[:, :2] / np.maximum(cells, 1e-12)).astype(np.int64)
    size = np.rint(scene.places[:, 2]).astype(np.int64)
    first = np.unique(pack(at[:, 0], at[:, 1], size, scene.owners), return_index=True)[1]
    for one, backend in enumerate(scene.backends):
        own = first[scene.owners[first] == one]
        for diameter in np.unique(size[own])[::-1].tolist():
            yield backend, float(diameter), np.sort(own[size[own] == diameter])


def _is_placed(row: RooflineRow) -> bool:
    return bool(row.flops_per_s and row.work.intensity)


def _point(number: int, row: RooflineRow, largest: float) -> RooflinePoint:
    share = math.sqrt((row.time_ns or 0.0) / largest) if largest else 0.0
    return RooflinePoint(
        number,
        math.log10(row.work.intensity or 1.0),
        math.log10(row.flops_per_s or 1.0),
        _SMALLEST + (_LARGEST - _SMALLEST) * share,
        row,
    )


def _words(row: RooflineRow) -> str:
    work = row.work
    lines = [
        " · ".join(filter(None, (row.label, row.module, row.delegate))),
        f"{format_quantity(work.flops, Quantity.OPERATIONS)} and"
        f" {format_quantity(work.nbytes, Quantity.SIZE)} in {format_time(row.time_ns)}",
        f"{rate_text(row)}, {work.intensity:.3g} FLOPs a byte",
    ]
    if row.share is not None:
        lines.append(f"{format_share(row.share)} of the limit: {row.words}")
    return "\n".join(lines)


def _range(values: Sequence[float], others: Iterable[float]) -> tuple[float, float]:
    found = [*values, *others]
    if not found:
        return 0.0, 1.0
    return math.floor(min(found) - _AROUND), math.ceil(max(found) + _AROUND)


def _ridges(limits: Limits, dtypes: Iterable[str]) -> list[float]:
    """Return where peaks and bandwidth meet, log10 of FLOPs a byte."""
    bandwidth = limits.bandwidth
    peaks = [limits.peak(dtype) for dtype in dtypes]
    return [math.log10(peak / bandwidth) for peak in peaks if peak and bandwidth]


def _ceilings(
    limits: Limits, dtypes: Iterable[str], across: tuple[float, float]
) -> tuple[CeilingLine, ...]:
    bandwidth, low, high = limits.bandwidth, *across
    if not bandwidth:
        return ()
    found: list[CeilingLine] = []
    for dtype in dtypes:
        peak = limits.peak(dtype)
        if peak:
            ridge, top = math.log10(peak / bandwidth), math.log10(peak)
            label = f"{dtype} {format_quantity(peak, Quantity.OPERATION_RATE)}"
            found.append(CeilingLine((max(low, ridge), high), (top, top), label))
    end = max((one.x[0] for one in found), default=high)
    memory = math.log10(bandwidth)
    label = f"memory {format_quantity(bandwidth, Quantity.BANDWIDTH)}"
    return (*found, CeilingLine((low, end), (low + memory, end + memory), label, slanted=True))


def decades(low: float, high: float) -> list[tuple[float, str]]:
    """Return ticks at powers of ten with SI prefixes: 0.01, 1, 10, 100, 1 k, 10 M."""
    return [(float(at), decade_text(at)) for at in range(math.ceil(low), math.floor(high) + 1)]


def decade_text(exponent: int) -> str:
    """Return a power of ten in words of three digits and a prefix."""
    if exponent < 0:
        return f"{10.0**exponent:g}"
    prefix = min(exponent // 3, max(_PREFIXES))
    return f"{10 ** (exponent - 3 * prefix):g} {_PREFIXES[prefix]}".rstrip()
