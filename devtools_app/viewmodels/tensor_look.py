"""Content of the view of tensors for one tensor: facts, image, values, or a difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from inspector.files.session import Session
from inspector.tables.facts import FactGroup
from inspector.tables.row_order import RowOrder
from inspector.tables.selection import Units
from inspector.tables.tensor import (
    difference_group,
    difference_words,
    has_all_values,
    statistics_group,
    tensor_groups,
    values_table,
)
from inspector.tensors.differences import difference, distance, partners
from inspector.tensors.elements import DifferenceElements, Elements
from inspector.tensors.images import SliceChoice, TensorImage, fitting, image_of
from inspector.tensors.sources import TensorSource, session_tensors
from inspector.tensors.summary import TensorSummary, summary, summary_of
from inspector.units import format_share, plain_text

KEPT = "kept "  # begins the key of a tensor that a comparison kept, before its path
HERE = "."  # in place of a session in the key of a tensor to compare with: this one
_MOST_OTHERS = 12  # tensors of one session that are offered
Check = Callable[[], object]
Open = Callable[[], TensorSource]
Others = tuple[
    tuple[TensorSource, ...], tuple[tuple[str, Session], ...], Mapping[tuple[int, int], str]
]


@dataclass(frozen=True, slots=True, eq=False)
class TensorReport:
    """Statistics of a tensor or of a difference.

    Attributes:
        source: the tensor
        summary: of what is drawn, None with a problem
        groups: facts
        others: tensors it may be compared with: text and key
        words: one line
        problem: why there are no values, empty otherwise
    """

    source: TensorSource
    summary: TensorSummary | None
    groups: tuple[FactGroup, ...]
    others: tuple[tuple[str, str], ...]
    words: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class TensorPicture:
    """A slice of a tensor.

    Attributes:
        sizes: of the tensor
        choice: the slice
        image: of it, None with a problem
        values: its elements, None unless requested
        describe: returns the hover text of an element
        problem: why there are no values, empty otherwise
    """

    sizes: tuple[int, ...]
    choice: SliceChoice
    image: TensorImage | None
    values: RowOrder | None
    describe: Callable[[tuple[int, ...]], str]
    problem: str = ""


def kept_key(path: Path) -> str:
    """Return the key of a tensor that a comparison kept."""
    return f"{KEPT}{path}"


def tensor_report(
    source: TensorSource, other: Open | None, name: str, others: Others, units: Units, check: Check
) -> TensorReport:
    """Return the statistics of a tensor, less another one if there is one.

    Args:
        source: the tensor
        other: opens the tensor that is the reference, or None
        name: of that one
        others: tensors of the session, other sessions, keys of kept references
        units: for display
        check: called between pieces; raises to cancel
    """
    offered = _others(source, others)
    try:
        if other is not None:
            reference = other()
            apart = difference(source, reference)
            found = summary(apart, check)
            metrics = distance(apart, reference.dtype, check)
            label = name or f"{reference.name}, {reference.origin}"
            groups = (difference_group(metrics, label), statistics_group("Each element", found))
            words = difference_words(metrics, label)
            return TensorReport(source, found, groups, offered, words)
        found = summary_of(source, check)
    except (ValueError, OSError) as error:
        return TensorReport(source, None, (), offered, problem=_sentence(error))
    groups = tuple(tensor_groups(source, found, units))
    return TensorReport(source, found, groups, offered, _words(source, found))


def _words(source: TensorSource, found: TensorSummary) -> str:
    text = f"{source.dtype} {list(source.sizes)}"
    facts = found.facts
    if facts is not None:
        if facts["min"] is not None and facts["max"] is not None:
            text += f" · {plain_text(facts['min'])} to {plain_text(facts['max'])}"
        wrong = (facts["nan"] or 0) + (facts["inf"] or 0)
        text += f" · {wrong:,} not finite" if wrong else ""
    if found.clipped is not None and found.clipped.share:
        text += f" · {format_share(found.clipped.share)} at the limits"
    return text


def _others(source: TensorSource, others: Others) -> tuple[tuple[str, str], ...]:
    here, sessions, kept = others
    found = [("nothing", "")]
    if source.key.startswith(KEPT) or source.origin.endswith("of the gap"):
        path = source.key.rpartition("/")[0]
        return (*found, ("reference", kept_key(Path(path))))
    step, slot = source.instruction, source.slot
    of_gap = kept.get((step, slot)) if step is not None and slot is not None else None
    if of_gap:
        found.append(("reference of the gap", of_gap))
    for session, content in sessions:
        same = partners(source, session_tensors(content))[:_MOST_OTHERS]
        found += [(f"{session}: {name}", f"{session} {key}") for name, key in _told_apart(same)]
    own = _told_apart(partners(source, here)[:_MOST_OTHERS])
    return (*found, *((name, f"{HERE} {key}") for name, key in own))


def _told_apart(same: tuple[TensorSource, ...]) -> list[tuple[str, str]]:
    """Return name and key of each tensor; of namesakes with their origin, and method if needed."""
    names = Counter(one.name for one in same)
    origins = Counter((one.name, one.origin) for one in same)

    def name_of(one: TensorSource) -> str:
        if names[one.name] == 1:
            return one.name
        method = one.method if origins[one.name, one.origin] > 1 else ""
        return " · ".join(filter(None, (one.name, one.origin, method)))

    return [(name_of(one), one.key) for one in same]


def tensor_picture(
    source: TensorSource,
    other: Open | None,
    choice: SliceChoice | None,
    check: Check,
    *,
    values: bool,
) -> TensorPicture:
    """Return a slice of a tensor, less another one if there is one.

    Args:
        source: the tensor
        other: opens the tensor that is the reference, or None
        choice: the slice; the usual one if it does not fit
        check: called between pieces; raises to cancel
        values: whether its elements are listed too
    """
    chosen = fitting(choice, source.sizes)
    real: Elements | None = None
    try:
        if other is None:
            elements = source.elements()
            real = source.real()
        else:
            elements = difference(source, other())
        image = image_of(elements, chosen, check)
    except (ValueError, OSError) as error:
        return TensorPicture(source.sizes, chosen, None, None, str, _sentence(error))
    order = None
    if values:
        table = values_table(elements, chosen, real)
        if not has_all_values(elements, chosen):
            table = replace(table, noun="elements, the first rows of the slice")
        order = RowOrder(table)

    def describe(place: tuple[int, ...]) -> str:
        return _described(elements, real, place)

    return TensorPicture(source.sizes, chosen, image, order, describe)


def _described(elements: Elements, real: Elements | None, place: tuple[int, ...]) -> str:
    at = np.zeros((1, len(place)), np.int64)
    at[0] = place
    text = f"[{', '.join(map(str, place))}]\n{elements.at(at)[0]!s}"
    if isinstance(elements, DifferenceElements):
        text += f"\n{elements.one.at(at)[0]!s} less {elements.other.at(at)[0]!s}"
    return text if real is None else f"{text}, stands for {float(real.at(at)[0]):.6g}"


def _sentence(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    return f"{text[:1].upper()}{text[1:]}"
