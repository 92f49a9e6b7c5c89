"""Which fields of a recipe a sweep can vary, their known values, and how values are written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devtools_app.viewmodels.recipe_form import FieldKind, FormField, sections
from inspector.experiments.sweeps.grid import GridError, parse_grid, value_text
from inspector.experiments.sweeps.price import KnownTimes
from inspector.jobs.history import JobEntry, about
from inspector.jobs.messages import Ended
from inspector.recipes.compile_job import REPORT, CompileJob
from schema.backends import partitioners
from schema.errors import FormatError
from schema.objects.codec import read_object
from schema.recipe.passes import recipe_passes

_SOURCE = ("source.path", "source.function", "python")  # another program is no point of a sweep
_PLANNERS = ("greedy", "interval", "naive")
_LARGEST = 64 << 20  # bytes of a report
_EXAMPLES = {FieldKind.NUMBER: "1, 5, 20", FieldKind.LINES: "none, NAME, NAME+NAME"}


@dataclass(frozen=True, slots=True)
class SweepField:
    """A field that can be varied.

    Attributes:
        path: as ``rules.min_nodes``
        title: its section and label
        help: its description
        choices: (value, label) of each value to pick; empty for values that are typed
        known: values to add to what is typed
        text: its value in the recipe, as it is typed
        example: values as they are typed
    """

    path: str
    title: str
    help: str
    choices: tuple[tuple[Any, str], ...] = ()
    known: tuple[str, ...] = ()
    text: str = ""
    example: str = ""


def sweep_fields(job: CompileJob) -> tuple[SweepField, ...]:
    """Return the fields of a recipe that a sweep can vary, in the order of the form."""
    return tuple(
        _field(section.title, one)
        for section in sections(job)
        for one in section.fields
        if one.path not in _SOURCE
    )


def _field(section: str, one: FormField) -> SweepField:
    choices: tuple[tuple[Any, str], ...] = one.choices
    if one.kind is FieldKind.FLAG:
        choices = ((False, "off"), (True, "on"))
    known = {
        "partitioners": ("none", *(each.alias for each in partitioners())),
        "memory_planner": _PLANNERS,
        "passes": ("none", *recipe_passes()),
    }.get(one.path, ())
    example = _EXAMPLES.get(one.kind, "a, b")
    text = value_text(one.value)
    return SweepField(one.path, f"{section}: {one.label}", one.help, choices, known, text, example)


def values_of(field: SweepField, text: str) -> tuple[Any, ...]:
    """Return the values in what was typed.

    Raises: GridError
    """
    if not text.strip():
        raise GridError(f"{field.title}: type values with commas between, as {field.example}")
    rows = parse_grid([f"{field.path}={text}"]).rows
    return tuple({json.dumps(row[0]): row[0] for row in rows}.values())


def known_times(
    entries: Sequence[JobEntry], job: CompileJob, programs: Iterable[str]
) -> KnownTimes:
    """Return how long the last compile and the last run took.

    Args:
        entries: of the history of jobs, newest first
        job: the recipe whose source was compiled
        programs: files of the program
    """
    done = [one for one in entries if one.ended is Ended.FINISHED and one.seconds is not None]
    compiles = (one for one in done if one.kind == "compile" and _source(one) == job.source.path)
    paths = tuple(programs)
    runs = about([one for one in done if one.kind == "run"], [Path(path).parent for path in paths])
    found = next((one.seconds for one in compiles), None)
    compiled = found if found is not None else _reported(paths)
    return KnownTimes(compiled, runs[0].seconds if runs else None, found is not None)


def _source(entry: JobEntry) -> str:
    source: Mapping[str, Any] = entry.request.get("source") or {}
    return str(source.get("path", ""))


def _reported(programs: Sequence[str]) -> float | None:
    """Return the duration in the report of the compile beside a program, in seconds."""
    for path in programs:
        try:
            report = read_object(Path(path).with_name(REPORT), "the report", _LARGEST)
        except (FormatError, OSError):
            continue
        total = report.get("total_ms")
        if isinstance(total, (int, float)):
            return float(total) / 1e3
    return None
