"""A requirement as a user writes it: a metric, a comparison, and a bound with its unit."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from inspector.experiments.gates.quantities import BoundUnit, in_base, unit_words
from inspector.numerics.metrics import Metrics

OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
LEAST, MOST = (">=", ">"), ("<=", "<")
GAP = "gap."
EVAL = "eval."
OWN, INHERITED, COVERAGE = "gap.own.", "gap.inherited.", "gap.coverage"
_PARTS = re.compile(r"\s*(?P<metric>[A-Za-z_][\w.]*)\s*(?P<sign>[<>=!~]+)\s*(?P<bound>.*?)\s*")
_NUMBER = r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)"
_RELATIVE = re.compile(rf"(?:{_NUMBER}\s*(?:x|×|\*)?\s*)?baseline", re.IGNORECASE)
_WHOLE = 100  # percent
_ABSOLUTE = re.compile(rf"{_NUMBER}\s*(?P<unit>%|[A-Za-zµμ]*)")


class RequirementError(ValueError):
    """Not a requirement; one sentence with what was expected and found."""


class Kind(str, Enum):
    """The input needed to compute a metric."""

    PROGRAM = "program"
    TIME = "time"
    GAP = "gap"
    EVAL = "eval"


_STATIC = {
    "delegated": BoundUnit.PERCENT,
    "arena": BoundUnit.BYTES,
    "size": BoundUnit.BYTES,
    "delegates": BoundUnit.COUNT,
}
_OF_RUN = {"rss": BoundUnit.BYTES}
_GAP_QUANTITIES = {
    "out_of_tolerance": BoundUnit.SHARE,
    "snr_db": BoundUnit.DECIBELS,
    **dict.fromkeys(("elements", "nan", "nan_reference", "inf", "inf_reference"), BoundUnit.COUNT),
}


def _gap_metrics() -> dict[str, BoundUnit]:
    found = {COVERAGE: BoundUnit.PERCENT}
    for prefix in (GAP, OWN, INHERITED):
        for name in Metrics.__dataclass_fields__:
            found[f"{prefix}{name}"] = _GAP_QUANTITIES.get(name, BoundUnit.NUMBER)
    return found


# figures of an evaluation on a data set; any other name behind eval. is a metric of the user
EVAL_FIGURES: Mapping[str, BoundUnit] = {
    "snr": BoundUnit.DECIBELS,
    "cosine": BoundUnit.NUMBER,
    "max_abs": BoundUnit.NUMBER,
    "mean_abs": BoundUnit.NUMBER,
    "top1": BoundUnit.SHARE,
    "refused": BoundUnit.COUNT,
}

# metrics of the time of a run: the median of all runs, and the mean of the steady ones
# and the median as the stock runtime would take it: kernels as measured, its calls
LATENCY, LATENCY_MEAN, LATENCY_STOCK = "latency", "latency.mean", "latency.stock"
_TIMED = (LATENCY, LATENCY_MEAN, LATENCY_STOCK)

# metric -> what it is measured in
METRICS: Mapping[str, BoundUnit] = {
    **_STATIC,
    **dict.fromkeys(_TIMED, BoundUnit.TIME),
    **_OF_RUN,
    **_gap_metrics(),
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """A bound on one metric.

    Units: bound in the base unit of the metric (%, bytes, ms), or a factor when it is relative

    Attributes:
        text: as the user wrote it
        metric: one of ``METRICS``
        sign: one of ``OPERATORS``
        bound: what the value is compared with
        relative: whether the bound is a multiple of the baseline's value
    """

    text: str
    metric: str
    sign: str
    bound: float
    relative: bool = False

    @property
    def quantity(self) -> BoundUnit:
        """Return the unit of the metric."""
        return unit_of(self.metric)

    @property
    def kind(self) -> Kind:
        """Return the input needed to compute it."""
        if self.metric.startswith(GAP):
            return Kind.GAP
        if self.metric.startswith(EVAL):
            return Kind.EVAL
        return Kind.TIME if self.metric in _TIMED else Kind.PROGRAM

    def holds(self, value: float) -> bool:
        """Return whether a value, or its ratio to the baseline's, meets the requirement."""
        return OPERATORS[self.sign](value, self.bound)


def unit_of(metric: str) -> BoundUnit:
    """Return the unit of a metric.

    Raises: KeyError for an unknown one
    """
    name = metric.removeprefix(EVAL)
    if name != metric and name.isidentifier():
        return EVAL_FIGURES.get(name, BoundUnit.NUMBER)
    return METRICS[metric]


def own_metric(metric: str) -> str:
    """Return the name of a metric of the user, empty for one of ours."""
    name = metric.removeprefix(EVAL)
    return "" if name == metric or name in EVAL_FIGURES else name


def parse_requirement(text: str) -> Requirement:
    """Return the requirement in a text such as ``arena<=4MiB``.

    Raises: RequirementError
    """
    parts = _PARTS.fullmatch(text)
    if parts is None or parts["sign"] not in OPERATORS:
        signs = ", ".join(OPERATORS)
        raise RequirementError(
            f"{text!r}: expected a metric, one of {signs}, and a bound, as in arena<=4MiB"
        )
    metric, sign, bound = parts["metric"], parts["sign"], parts["bound"]
    if not _is_metric(metric):
        raise RequirementError(f"{text!r}: no metric {metric!r}; {_known_metrics(metric)}")
    found = _RELATIVE.fullmatch(bound)
    if found is not None:
        factor = float(found["number"] or 1)
        if not 0 < factor < math.inf:
            raise RequirementError(f"{text!r}: expected a positive factor, found {bound!r}")
        return Requirement(text, metric, sign, factor, relative=True)
    return Requirement(text, metric, sign, _absolute(text, metric, bound))


def _is_metric(metric: str) -> bool:
    try:
        unit_of(metric)
    except KeyError:
        return False
    return True


def _absolute(text: str, metric: str, bound: str) -> float:
    quantity = unit_of(metric)
    found = _ABSOLUTE.fullmatch(bound)
    value = in_base(quantity, float(found["number"]), found["unit"]) if found else None
    if value is None or not math.isfinite(value):
        words = unit_words(quantity)
        raise RequirementError(
            f"{text!r}: {metric} is compared with {words}, or as in 1.1x baseline; found {bound!r}"
        )
    if quantity is BoundUnit.COUNT and value != int(value):
        raise RequirementError(f"{text!r}: {metric} is an integer; found {bound!r}")
    if quantity is BoundUnit.PERCENT and not 0 <= value <= _WHOLE:
        raise RequirementError(f"{text!r}: {metric} is from 0 to 100 %; found {bound!r}")
    return value


def _known_metrics(asked: str) -> str:
    if asked == "gap" or asked.startswith(GAP):
        names = ", ".join(Metrics.__dataclass_fields__)
        return (
            f"available: gap. and one of {names}, the same behind gap.own. and gap.inherited.,"
            + (f" and {COVERAGE}")
        )
    if asked.startswith(EVAL[:-1]):
        names = ", ".join(EVAL_FIGURES)
        return f"available: eval. and one of {names}, or a metric of the user by its name"
    names = ", ".join((*_STATIC, *_TIMED, *_OF_RUN))
    return f"available: {names}, gap.max_abs and the like, eval.snr and the like"
