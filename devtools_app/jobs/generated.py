"""The report of the text that the window has generated last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from devtools_app.jobs.follower import JobProgress
from inspector.jobs.messages import Ended


def generated_report(found: JobProgress | None) -> Mapping[str, Any] | None:
    """Return the report of a generation, None unless it has finished."""
    outcome = None if found is None else found.outcome
    return outcome.result if outcome is not None and outcome.ended is Ended.FINISHED else None
