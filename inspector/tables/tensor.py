"""Any tensor of a session: its statistics, its values, and its difference from another one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import islice, product
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from inspector.files.session import Session
from inspector.graph.delegate_inside import quantization_text
from inspector.numerics.metrics import Metrics
from inspector.tables.facts import Fact, FactGroup
from inspector.tables.query import QueryError
from inspector.tables.selection import Units
from inspector.tables.table import Column, ColumnKind, Table, number_column, text_column
from inspector.tensors.elements import DifferenceElements, Elements
from inspector.tensors.images import SliceChoice, grid_places, layout_of
from inspector.tensors.sources import TensorSource, session_tensors
from inspector.tensors.summary import ClippedRange, ElementPlace, TensorSummary, summary_of
from inspector.units import Quantity, format_bytes, format_share, plain_text
from schema.dtypes.scalar_type import BY_NAME
from schema.objects.plural import plural

MOST_ROWS = 250_000  # of a table of values; the image shows all
_SLICE = re.compile(r"\[((?:\s*(?::|[0-9]{1,9})\s*,?)+)\]$")
_CLIPPED = 0.01  # share of the values at the limits, beyond the usual one, that is worth a mark
_OFFERED = 20  # names in an error
_LISTED = 3  # places of NaN, infinity and extremes that are shown


def tensor(session: Session, units: Units) -> Table:
    """Return the statistics of each tensor; the elements of a row are read when it is shown."""
    found = session_tensors(session)
    known = _Summaries(found)
    roles = [one.role or None for one in found]
    numbers: tuple[tuple[str, Callable[[TensorSummary], Any]], ...] = (
        ("min", lambda one: _fact(one, "min")),
        ("max", lambda one: _fact(one, "max")),
        ("mean", lambda one: _fact(one, "mean")),
        ("std", lambda one: _fact(one, "std")),
        ("zeros", lambda one: _fact(one, "zero")),
        ("NaN", lambda one: _fact(one, "nan")),
        ("inf", lambda one: _fact(one, "inf")),
        ("at the limits", lambda one: None if one.clipped is None else one.clipped.share),
    )
    columns = (
        *_columns(found, units),
        text_column("role", roles, missing=""),
        *(_number(title, _Statistic(known, get)) for title, get in numbers),
        Column("first NaN or inf", _Statistic(known, _first_special), text=_shown, exact=_shown),
        text_column("quantized", [_quantized(one) for one in found], missing=""),
        text_column("note", [one.missing or None for one in found], missing=""),
    )
    return Table(columns, len(found), [one.key for one in found], noun="tensors")


def tensor_list(session: Session, units: Units) -> Table:
    """Return the tensors with dtype, shape and size; reads no elements."""
    return list_table(session_tensors(session), units)


def list_table(found: Sequence[TensorSource], units: Units) -> Table:
    """Return some tensors with dtype, shape and size; the keys are theirs."""
    return Table(_columns(found, units), len(found), [one.key for one in found], noun="tensors")


def _columns(found: Sequence[TensorSource], units: Units) -> tuple[Column, ...]:
    """Return the columns; what distinguishes tensors of one name is beside it."""
    sizes, names = [one.nbytes for one in found], [one.name for one in found]
    where = (text_column("where", [one.origin for one in found], width=9), *_method(found))
    repeated = len({*names}) < len(names)
    return (
        text_column("name", names, mono=True, width=28),
        *(where if repeated else ()),
        text_column("type", [tensor_type(one) for one in found], mono=True, width=14),
        number_column("size", sizes, Quantity.SIZE, unit=units.size),
        *(() if repeated else where),
    )


def tensor_type(one: TensorSource) -> str:
    """Return the dtype and shape of a tensor as text."""
    known = BY_NAME.get(one.dtype)
    return f"{known.short if known is not None else one.dtype} {list(one.sizes)}"


def _method(found: Sequence[TensorSource]) -> tuple[Column, ...]:
    """Return a column of the methods if there are several."""
    methods = [one.method or None for one in found]
    return (text_column("method", methods, missing=""),) if len({*methods}) > 1 else ()


class _Summaries:
    """Statistics of tensors, each computed once, when it is needed first."""

    def __init__(self, found: Sequence[TensorSource]) -> None:
        self.found = found
        self._known: dict[int, TensorSummary | None] = {}

    def of(self, row: int) -> TensorSummary | None:
        if row not in self._known:
            try:
                self._known[row] = summary_of(self.found[row])
            except (ValueError, OSError):
                self._known[row] = None
        return self._known[row]


class _Statistic(Sequence[Any]):
    """One statistic of each tensor; None where it is missing."""

    def __init__(self, known: _Summaries, get: Callable[[TensorSummary], Any]) -> None:
        self._known, self._get = known, get

    @override
    def __len__(self) -> int:
        return len(self._known.found)

    @overload
    def __getitem__(self, index: int) -> Any: ...  # noqa: ANN401 - a number or a string
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    @override
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        found = self._known.of(index)
        return None if found is None else self._get(found)


def _fact(one: TensorSummary, name: str) -> float | int | None:
    return None if one.facts is None else one.facts[name]


def _first_special(one: TensorSummary) -> str | None:
    return _place(one.special[0].place) if one.special else None


def _number(title: str, values: Sequence[Any]) -> Column:
    """Return a column whose values are read one by one: it has no common unit or decimals."""
    text = _share if title == "at the limits" else _shown
    return Column(title, values, ColumnKind.NUMBER, text, _exact)


def _shown(value: object) -> str:
    if value is None:
        return ""
    return (
        f"{value:.5g}"
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )


def _exact(value: object) -> str:
    return "" if value is None else repr(value)


def _share(value: object) -> str:
    return format_share(value) if isinstance(value, float) else ""


def _quantized(one: TensorSource) -> str | None:
    return quantization_text(one.quantization) if one.quantization is not None else None


def _place(place: Sequence[int]) -> str:
    return f"[{', '.join(map(str, place))}]"


# -- one tensor ------------------------------------------------------------------------------


def tensor_groups(source: TensorSource, found: TensorSummary, units: Units) -> list[FactGroup]:
    """Return the facts of a tensor: what it is, its statistics, its quantization."""
    size = "missing" if source.nbytes is None else format_bytes(source.nbytes, units.size)
    exact = "" if source.nbytes is None else f"{source.nbytes:,} B"
    facts = [
        Fact("type", f"{source.dtype} {list(source.sizes)}"),
        Fact("size", size, exact),
        Fact("where", source.origin if not source.role else f"{source.origin}, {source.role}"),
    ]
    groups = [FactGroup("", tuple(facts)), statistics_group("As stored", found)]
    if source.quantization is not None or found.clipped is not None:
        groups.append(_quantization_group(source, found.clipped))
    return groups


def statistics_group(title: str, found: TensorSummary) -> FactGroup:
    """Return the statistics of elements."""
    facts = found.facts
    if facts is None:
        return FactGroup(title, (Fact("statistics", "missing", "the values have no order"),))
    count = facts["count"] or 0
    listed = [Fact("elements", f"{count:,}")]
    for name, label in (("min", "min"), ("max", "max"), ("mean", "mean"), ("std", "std")):
        value = facts[name]
        if value is None:
            listed.append(Fact(label, "missing"))
            continue
        text = f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
        listed.append(Fact(label, text, repr(value)))
    for name, label in (("zero", "zeros"), ("nan", "NaN"), ("inf", "infinite")):
        number = int(facts[name] or 0)
        share = f"  {format_share(number / count)}" if number and count else ""
        wrong = bool(number) and name != "zero"
        badge = ("problem", "bad") if wrong else ("", "")
        listed.append(Fact(label, f"{number:,}{share}", "", *badge))
    listed += _places("first at", found.special)
    listed += _places("min at", found.lowest)
    listed += _places("max at", found.highest)
    return FactGroup(title, tuple(listed))


def _places(label: str, found: Sequence[ElementPlace]) -> list[Fact]:
    if not found:
        return []
    shown = ", ".join(_place(one.place) for one in found[:_LISTED])
    more = ", …" if len(found) > _LISTED else ""
    hover = ", ".join(f"{_place(one.place)} {one.value!r}" for one in found)
    return [Fact(label, f"{shown}{more}", hover)]


def _quantization_group(source: TensorSource, clipped: ClippedRange | None) -> FactGroup:
    facts: list[Fact] = []
    given = source.quantization
    if given is not None:
        text = quantization_text(given)
        scaling = source.scaling()
        if not given.scale and scaling is not None:
            scales = scaling[0]
            text = f"{given.scheme.replace('_', ' ')}, {len(scales):,} scales from"
            text += f" {scales.min():.4g} to {scales.max():.4g}"
        facts.append(Fact("parameters", text, text))
    if clipped is not None:
        facts += _clipped(clipped)
    return FactGroup("Quantization", tuple(facts))


def _clipped(found: ClippedRange) -> list[Fact]:
    facts = [Fact("range", f"{found.low} … {found.high}", "stored integers")]
    if found.real_low is not None and found.real_high is not None:
        text = f"{found.real_low:.5g} … {found.real_high:.5g}"
        hover = f"{found.real_low!r} … {found.real_high!r}, of the channel with the widest range"
        facts.append(Fact("clips to", text, hover))
    badge = ("clipped", "warn") if found.share >= found.usual + _CLIPPED else ("", "")
    hover = f"{found.at_low:,} at {found.low}, {found.at_high:,} at {found.high}"
    return [*facts, Fact("at the limits", format_share(found.share), hover, *badge)]


def difference_group(found: Metrics, other: str) -> FactGroup:
    """Return how far a tensor is from another one."""
    facts = [
        Fact("less", other, other),
        _largest(found),
        Fact("root mean square", f"{found.mse**0.5:.6g}", repr(found.mse**0.5)),
        Fact("SNR", "missing" if found.snr_db is None else f"{found.snr_db:.1f} dB"),
        Fact("cosine", "missing" if found.cosine is None else f"{found.cosine:.6g}"),
        Fact("out of tolerance", format_share(found.out_of_tolerance)),
    ]
    if _not_finite(found):
        counts = (found.nan + found.inf, found.nan_reference + found.inf_reference)
        alike = counts[0] == counts[1]
        text = f"{counts[0]:,} here, {counts[1]:,} there"
        facts.append(Fact("not finite", text, badge="" if alike else "problem", badge_tone="bad"))
    if found.ulp is not None:
        facts.append(Fact("ULP", f"{found.ulp:.4g}", repr(found.ulp)))
    return FactGroup("Difference", tuple(facts))


def difference_words(found: Metrics, other: str) -> str:
    """Return how far a tensor is from another one, as a line."""
    size = "missing" if found.largest is None else plain_text(found.largest)
    words = f"less {other}: largest difference {size}"
    if not _not_finite(found):
        return words
    # of a number and a NaN there is no difference, but they are not alike either
    return (
        f"{words} where both are finite · {format_share(found.out_of_tolerance)} out of tolerance"
    )


def _largest(found: Metrics) -> Fact:
    size = found.largest
    return Fact("largest", "missing" if size is None else f"{size:.6g}", repr(found.max_abs))


def _not_finite(found: Metrics) -> int:
    return found.nan + found.inf + found.nan_reference + found.inf_reference


# -- values ----------------------------------------------------------------------------------


def values_table(elements: Elements, choice: SliceChoice, real: Elements | None = None) -> Table:
    """Return the elements of a slice, a row each: index by dimension, value, real value.

    Of more than ``MOST_ROWS`` the first rows of the slice are returned. Of a difference both sides
    are columns.
    """
    sizes = elements.sizes
    grid, tile = layout_of(choice, sizes)
    if 0 in sizes:
        grid = (0, 0)
    columns = np.arange(min(grid[1], MOST_ROWS))
    rows = np.arange(min(grid[0], max(MOST_ROWS // max(len(columns), 1), 1)))
    places, there = grid_places(sizes, choice, tile, rows, columns)
    return _listed(elements, places[there], real)


def elements(session: Session, _units: Units, of: str) -> Table:
    """Return the elements of a tensor, or of a slice of it, a row each; at most ``MOST_ROWS``.

    Args:
        session: whose tensor it is
        of: its name or key, and perhaps indices, as in ``conv.weight[0, :]``

    Raises: QueryError for an unknown or ambiguous tensor, one without elements, or other indices
    """
    source, fixed = _tensor_of(session, of)
    free = [
        range(size) if at is None else (at,) for size, at in zip(source.sizes, fixed, strict=True)
    ]
    places = np.array(list(islice(product(*free), MOST_ROWS)), np.int64)
    try:
        return _listed(source.elements(), np.reshape(places, (-1, len(free))), source.real())
    except (ValueError, OSError) as error:
        raise QueryError(f"{source.name}: {error}") from error


def _tensor_of(session: Session, of: str) -> tuple[TensorSource, tuple[int | None, ...]]:
    """Return a tensor and the index in each dimension, None for all."""
    found = session_tensors(session)
    known = _named(found, of)
    slices = "" if known else _SLICE.search(of)
    if slices:
        known = _named(found, of[: slices.start()])
    if len(known) != 1:
        names = [one.key for one in known] or list(dict.fromkeys(one.name for one in found))
        more = f", … ({len(names)} in the table tensor-list)" if len(names) > _OFFERED else ""
        word = (
            f"{len(known)} tensors are called {of!r}; their keys"
            if known
            else (f"unknown tensor {of!r}; available")
        )
        raise QueryError(f"{word}: {', '.join(names[:_OFFERED]) or 'none'}{more}")
    sizes, given = known[0].sizes, [one.strip() for one in slices[1].split(",")] if slices else []
    if len(given) > len(sizes):
        raise QueryError(f"{of}: expected at most {plural(len(sizes), 'index', 'indices')}")
    fixed = [None if one == ":" else int(one) for one in given]
    for at, size in zip(fixed, sizes, strict=False):
        if at is not None and at >= size:
            raise QueryError(f"{of}: index {at} is outside of {list(sizes)}")
    return known[0], (*fixed, *[None] * (len(sizes) - len(fixed)))


def _named(found: Sequence[TensorSource], name: str) -> list[TensorSource]:
    return [one for one in found if one.key == name] or [one for one in found if one.name == name]


def _listed(elements: Elements, places: NDArray[np.int64], real: Elements | None) -> Table:
    parts = [("value", elements)] if real is None else [("value", elements), ("real", real)]
    if isinstance(elements, DifferenceElements):
        parts = [("value", elements.one), ("other", elements.other), ("difference", elements)]
    return element_table(places, [(title, part.at(places)) for title, part in parts])


def element_table(places: NDArray[np.int64], parts: Sequence[tuple[str, NDArray[Any]]]) -> Table:
    """Return elements, a row each: index by dimension, then values by title.

    Shapes: places int64[elements, rank], each of the values [elements]
    """
    found = [
        number_column(f"d{axis}", places[:, axis], Quantity.COUNT)
        for axis in range(places.shape[1])
    ]
    for title, values in parts:
        if values.dtype.kind in "biuf":
            wide = values.astype(np.int64 if values.dtype.kind in "biu" else np.float64)
            found.append(number_column(title, wide, Quantity.PLAIN))
        else:
            found.append(text_column(title, [str(one) for one in values.tolist()], mono=True))
    return Table(tuple(found), len(places), noun="elements")


def has_all_values(elements: Elements, choice: SliceChoice) -> bool:
    """Return whether the table of a slice has all its elements."""
    rows, columns = layout_of(choice, elements.sizes)[0]
    return rows * columns <= MOST_ROWS
