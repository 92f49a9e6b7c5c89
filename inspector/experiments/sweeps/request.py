"""A sweep as data: what the history of jobs keeps of it, and the command that does the same."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from inspector.experiments.sweeps.grid import value_text
from inspector.experiments.sweeps.task import SweepSettings
from inspector.jobs.commands import command_of
from inspector.jobs.history import SWEEP, JobEntry, request_of
from schema.objects.codec import from_json

_SPECIAL = set(",+\"'[](){}")
_GRID, _END = "job-grid.json", "END_OF_GRID"


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """A request for a sweep.

    Attributes:
        recipe: file of the recipe
        grid: values of each field
        settings: the measurements of each point
        workers: points at once, 0 for one a processor
        points: the points themselves, instead of the combinations of a grid
        record: ETRecord whose modules are quantized one at a time, instead of a grid
    """

    recipe: str
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict[str, Sequence[Any]])
    settings: SweepSettings = field(default_factory=SweepSettings)
    workers: int = 0
    points: tuple[Mapping[str, Any], ...] = ()
    record: str = ""


def axis_text(name: str, values: Sequence[Any]) -> str:
    """Return an axis of a grid as it is written on the command line."""
    parts = [part for value in values for part in _parts(value)]
    if all(not set(part) & _SPECIAL for part in parts):
        return f"{name}={','.join(map(value_text, values))}"
    return f"{name}={json.dumps(list(values), ensure_ascii=False)}"


def _parts(value: object) -> list[str]:
    """Return the strings in a value; commas and plus signs separate values on the command line."""
    if isinstance(value, (list, tuple)):
        return [str(one) for one in cast("Sequence[object]", value)]
    return [value_text(value).replace("+", "")]


def sweep_command(request: SweepRequest, target: str) -> str:
    """Return the command of a sweep."""
    words = ["etscope", "sweep", request.recipe]
    words += ["--sensitivity", f"--record={request.record}"] if request.record else []
    lines = ""
    if request.points:
        content = json.dumps([dict(one) for one in request.points], ensure_ascii=False, indent=1)
        lines = f"cat > {_GRID} <<'{_END}'\n{content}\n{_END}\n"
        words.append(f"--grid={_GRID}")
    words += [f"--grid={axis_text(name, values)}" for name, values in request.grid.items()]
    how = request.settings
    named = (
        ("runs", how.runs),
        ("inputs", "" if how.inputs == SweepSettings().inputs else how.inputs),
        ("data", how.data),
        ("metric", how.metric),
        ("samples", how.samples),
        ("method", how.method),
        ("device", how.device),
        ("workers", request.workers),
        ("timeout", how.timeout),
    )
    words += [f"--{name}={value}" for name, value in named if value]
    words += ["--gap"] if how.gap else []
    return f"{lines}{shlex.join([*words, '-o', target])}\n"


def requested_job(entry: JobEntry) -> Any:  # noqa: ANN401 - each kind has its own
    """Return the job of an entry of the history.

    Raises: ContentError if another version wrote it, KeyError for an unknown kind
    """
    if entry.kind == SWEEP:
        return from_json(dict(entry.request), SweepRequest, entry.kind)
    return request_of(entry)


def job_command(job: object, target: str = "") -> str:
    """Return the command of a job or a sweep, empty if the command line has none for it."""
    return sweep_command(job, target) if isinstance(job, SweepRequest) else command_of(job, target)
