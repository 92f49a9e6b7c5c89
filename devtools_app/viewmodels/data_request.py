"""A data set, a metric and a number of samples as they are typed."""

from __future__ import annotations

from inspector.experiments.evaluate.request import EvalRequest
from inspector.recipes.data_source import DataSourceError, data_source
from inspector.recipes.emission import in_file
from inspector.recipes.job_checks import data_problem, function_problem


def data_request(data: str, metric: str, samples: str) -> tuple[str, EvalRequest | None]:
    """Return what is wrong with the fields, or the request."""
    data, metric, samples = data.strip(), metric.strip(), samples.strip()
    try:
        source = data_source(data)
    except DataSourceError as error:
        return str(error), None
    if source.index is not None:
        return f"{data}: expected all samples, found one", None
    if wrong := data_problem(data):
        return wrong, None
    if metric and not in_file(metric):
        return f"{metric}: expected a metric as data.py:accuracy", None
    if metric and (wrong := function_problem(metric)):
        return wrong, None
    if samples and not (samples.isascii() and samples.isdigit() and int(samples)):
        return f"{samples!r}: expected a number of samples", None
    if source.generated and not samples:
        return f"{data} has no end: set a number of samples", None
    return "", EvalRequest(data, metric, int(samples) if samples else None)
