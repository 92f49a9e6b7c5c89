"""A data set, a metric and a number of samples as they are typed."""

from __future__ import annotations

import os

from inspector.experiments.evaluate.request import EvalRequest
from inspector.recipes.data_source import DataSourceError, data_source
from inspector.recipes.emission import in_file


def data_request(data: str, metric: str, samples: str) -> tuple[str, EvalRequest | None]:
    """Return what is wrong with the fields, or the request."""
    data, metric, samples = data.strip(), metric.strip(), samples.strip()
    try:
        source = data_source(data)
    except DataSourceError as error:
        return str(error), None
    if source.path and not os.path.exists(source.path):
        return f"{source.path} not found", None
    if metric and not in_file(metric):
        return f"{metric}: expected a metric as data.py:accuracy", None
    if samples and not (samples.isascii() and samples.isdigit() and int(samples)):
        return f"{samples!r}: expected a number of samples", None
    if source.generated and not samples:
        return f"{data} has no end: set a number of samples", None
    return "", EvalRequest(data, metric, int(samples) if samples else None)
