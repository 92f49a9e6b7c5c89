"""The filter language: words, /a regular expression/ or ``p50>0.1``."""

from __future__ import annotations

import operator
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.tables.table import Column, ColumnKind, Table
from inspector.units import TYPED_SIZES, TYPED_TIMES

Mask = NDArray[np.bool_]
_BUDGET_SECONDS = 1.0  # for one expression over one column; a nested repeat can take for ever
_CHECK_EVERY = 8  # texts between two looks at the clock
_COMPARISON = re.compile(
    r"(?P<name>[^\s<>=!]+)(?P<op><=|>=|!=|==|=|<|>)"
    r"(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?P<unit>[^\s\d]*)"
)
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}
_FACTORS = {**TYPED_TIMES, **TYPED_SIZES, "%": 0.01}


class FilterError(ValueError):
    """An invalid filter; one sentence for the user."""


class TooSlowError(FilterError):
    """A regular expression needs longer than anybody would wait."""


@dataclass(frozen=True, slots=True)
class FilterTerm:
    """A condition on a number column.

    Attributes:
        column: index of the column
        sign: one of < <= > >= = !=
        number: value to compare with
        factor: base units in one typed unit; None means the unit the column is shown in
    """

    column: int
    sign: str
    number: float
    factor: float | None = None

    def scale(self, column: Column) -> float:
        """Return the number of base units in the typed unit."""
        return column.scale if self.factor is None else self.factor

    def keeps(self, values: NDArray[np.float64]) -> Mask:
        """Return which values fulfil the condition; missing ones never do."""
        with np.errstate(invalid="ignore"):
            found = _OPERATORS[self.sign](values, self.number)
        return np.asarray(found, np.bool_) & ~np.isnan(values)


@dataclass(frozen=True, slots=True)
class Filter:
    """All of these must hold.

    Attributes:
        terms: a word in lower case, or a compiled expression, that some text of the row contains
        comparisons: conditions on numbers
    """

    terms: tuple[str | re.Pattern[str], ...] = ()
    comparisons: tuple[FilterTerm, ...] = ()

    def __bool__(self) -> bool:
        """Return whether the filter has conditions."""
        return bool(self.terms or self.comparisons)


def parse_filter(text: str, table: Table) -> Filter:
    """Parse the filter of a table.

    Words must all occur, in any text column, case ignored. Text between slashes is a regular
    expression; ``^`` and ``$`` are the ends of a cell. ``name>number`` compares the number column
    whose title starts with the name, in the unit shown or in one typed behind the number.

    Raises:
        FilterError: the regular expression is not valid
    """
    text = text.strip()
    if text.startswith("/"):
        body = text[1:-1] if len(text) > 1 and text.endswith("/") else text[1:]
        return Filter((_compiled(body),)) if body else Filter()
    terms: list[str] = []
    comparisons: list[FilterTerm] = []
    for word in text.split():
        comparison = _comparison(word, table)
        if comparison is None:
            terms.append(word.casefold())
        else:
            comparisons.append(comparison)
    return Filter(tuple(terms), tuple(comparisons))


def _compiled(body: str) -> re.Pattern[str]:
    try:
        return re.compile(body, re.IGNORECASE)
    except re.error as error:
        place = f" at character {error.pos + 1}" if error.pos is not None else ""
        raise FilterError(f"not a regular expression{place}: {error.msg}") from error
    except (OverflowError, RecursionError) as error:
        raise FilterError("the regular expression is too big") from error


def _comparison(word: str, table: Table) -> FilterTerm | None:
    match = _COMPARISON.fullmatch(word)
    if match is None:
        return None
    unit = match["unit"].casefold()
    column = _column_named(match["name"], table)
    if column is None or (unit and unit not in _FACTORS):
        return None
    factor = _FACTORS[unit] if unit else None
    return FilterTerm(column, match["op"], float(match["number"]), factor)


def _column_named(name: str, table: Table) -> int | None:
    requested = name.casefold()
    for index, column in enumerate(table.columns):
        title = column.title.casefold().replace(" ", "")
        if column.kind in (ColumnKind.NUMBER, ColumnKind.SHARE) and title.startswith(requested):
            return index
    return None


def matches(term: str | re.Pattern[str]) -> Callable[[Sequence[str]], Mask]:
    """Return a function that matches strings against a word or expression."""
    if isinstance(term, str):
        return lambda texts: np.fromiter(
            (term in text.casefold() for text in texts), np.bool_, len(texts)
        )
    return lambda texts: _search(term, texts)


def _search(pattern: re.Pattern[str], texts: Sequence[str]) -> Mask:
    found = np.zeros(len(texts), np.bool_)
    deadline = time.monotonic() + _BUDGET_SECONDS
    for start in range(0, len(texts), _CHECK_EVERY):
        part = texts[start : start + _CHECK_EVERY]
        found[start : start + len(part)] = [pattern.search(text) is not None for text in part]
        if time.monotonic() > deadline:
            raise TooSlowError("the regular expression is too slow for this table")
    return found
