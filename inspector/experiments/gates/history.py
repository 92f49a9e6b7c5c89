"""The figures of a gate from run to run: a file of JSON lines, and the trend of each metric."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from inspector.experiments.gates.judging import Judgement
from inspector.experiments.gates.quantities import shown
from inspector.experiments.gates.requirement import unit_of
from schema.errors import FormatError
from schema.objects.codec import from_json, to_json

SHOWN = 10  # last values of a metric
_LARGEST = 64 << 20  # bytes


@dataclass(frozen=True, slots=True)
class GateRun:
    """One run of a gate.

    Attributes:
        date: when, in UTC
        program: the judged programs
        sha256: of the program file, empty if unknown
        met: whether all requirements were
        figures: value by metric; None for unknown ones
        failed: requirements that were not met
    """

    date: str
    program: str
    sha256: str
    met: bool
    figures: Mapping[str, float | None] = field(default_factory=dict[str, "float | None"])
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trend:
    """The last values of a metric.

    Attributes:
        metric: its name
        values: oldest first, at most ``SHOWN``; None for unknown ones
        change: of the last value relative to the one before; None if either is unknown or zero
    """

    metric: str
    values: tuple[float | None, ...]
    change: float | None

    def line(self) -> str:
        """Return the trend as one line."""
        unit = unit_of(self.metric)
        texts = ("unknown" if one is None else shown(unit, one) for one in self.values)
        change = "" if self.change is None else f" ({self.change:+.3g} %)"
        return f"trend    {self.metric}: {', '.join(texts)}{change}"

    def content(self) -> dict[str, Any]:
        """Return the trend as a JSON object."""
        return {"metric": self.metric, "values": list(self.values), "change_percent": self.change}


def gate_run(found: Sequence[Judgement], program: str, sha256: str) -> GateRun:
    """Return the run of a gate that ends now."""
    return GateRun(
        datetime.now(timezone.utc).isoformat(timespec="seconds"),
        program,
        sha256,
        all(one.met for one in found),
        {one.requirement.metric: one.content()["value"] for one in found},
        tuple(one.requirement.text for one in found if not one.met),
    )


def append_run(path: Path, run: GateRun) -> None:
    """Add a run to a history.

    Raises: OSError
    """
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(to_json(run), ensure_ascii=False) + "\n")


def read_history(path: Path) -> tuple[GateRun, ...]:
    """Return the runs in a history, oldest first; none if the file does not exist.

    Raises: FormatError naming the line, OSError
    """
    if not path.exists():
        return ()
    if path.stat().st_size > _LARGEST:
        raise FormatError("a history of gates", f"more than {_LARGEST:,} bytes", file=str(path))
    found: list[GateRun] = []
    for number, line in enumerate(path.read_bytes().splitlines()):
        place = f"{path}, line {number + 1}"
        try:
            content = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise FormatError("a run of a gate as JSON", str(error), file=place) from error
        found.append(from_json(content, GateRun, place))
    return tuple(found)


def trends(runs: Sequence[GateRun], metrics: Sequence[str]) -> tuple[Trend, ...]:
    """Return the trend of metrics over the runs that have them."""
    found: list[Trend] = []
    for metric in dict.fromkeys(metrics):
        values = [run.figures[metric] for run in runs if metric in run.figures][-SHOWN:]
        now = values[-1] if values else None
        before = values[-2] if len(values) > 1 else None
        change = 100 * (now - before) / abs(before) if before and now is not None else None
        found.append(Trend(metric, tuple(values), change))
    return tuple(found)
