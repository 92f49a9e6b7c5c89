"""The metrics that a form offers, in words, with the comparison that fits each."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.experiments.gates.requirement import EVAL, EVAL_FIGURES, METRICS


@dataclass(frozen=True, slots=True)
class OfferedMetric:
    """A metric to pick.

    Attributes:
        metric: its name
        words: what it is
        sign: the usual comparison
    """

    metric: str
    words: str
    sign: str = "<="


_FIRST = (
    OfferedMetric("latency.mean", "mean time of the steady runs"),
    OfferedMetric("latency.stock", "median time with the calls of the stock runtime"),
    OfferedMetric("latency", "median time of a run"),
    OfferedMetric("size", "bytes of the program and its data files"),
    OfferedMetric("arena", "sum of the planned buffers"),
    OfferedMetric("rss", "resident peak of a steady run beyond the idle worker"),
    OfferedMetric("delegated", "share of the computing nodes that delegates took", ">="),
    OfferedMetric("delegates", "number of delegates"),
    OfferedMetric("gap.max_abs", "largest error of any logged value"),
    OfferedMetric("gap.snr_db", "worst signal to noise of any logged value", ">="),
    OfferedMetric("gap.coverage", "share of the outputs that were compared", ">="),
    OfferedMetric(f"{EVAL}snr", "signal to noise on a data set", ">="),
    OfferedMetric(f"{EVAL}top1", "share of samples with the same largest output", ">="),
    OfferedMetric(f"{EVAL}refused", "samples that did not run"),
)
_MORE = (".snr_db", ".cosine", "coverage", "snr", "cosine", "top1")  # more of it is better


def offered_metrics() -> tuple[OfferedMetric, ...]:
    """Return all metrics, the usual ones first."""
    known = {one.metric for one in _FIRST}
    names = (*METRICS, *(f"{EVAL}{name}" for name in EVAL_FIGURES))
    rest = (name for name in names if name not in known)
    others = (
        OfferedMetric(name, "worst of all that was compared", ">=" if _is_more(name) else "<=")
        for name in rest
    )
    return (*_FIRST, *others)


def _is_more(name: str) -> bool:
    return name.endswith(_MORE)
