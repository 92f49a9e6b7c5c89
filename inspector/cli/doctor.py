"""doctor: what disturbs measuring on this machine, and what helps."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from inspector.cli.answer import Answer, shown
from inspector.cli.job_runs import count
from inspector.cli.options import add_output
from inspector.files.machine import this_machine, usable_cores
from inspector.roofline.disturbances import Effect, SystemFiles, disturbances
from inspector.tables.rows import RowField, row_table

_TONES = {
    Effect.SEVERE: "bad",
    Effect.MODERATE: "warn",
    Effect.FINE: "good",
}
_DISTURBS = (Effect.SEVERE, Effect.MODERATE, Effect.SLIGHT)
_ROOT = Path("/")


def _tone(value: object) -> str:
    return next((tone for one, tone in _TONES.items() if one.value == value), "muted")


_FIELDS = (
    RowField("severity", tone=_tone),
    RowField("what"),
    RowField("found"),
    RowField("what helps", missing="—"),
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "--threads", type=count, default=1, metavar="N", help="that are measured with; default: 1"
    )
    add_output(parser)


def run(options: Namespace) -> Answer:
    """Return the disturbances of measurements, the most severe first."""
    cores = usable_cores()
    found = disturbances(SystemFiles(_ROOT, cores, options.threads))
    rows = [(one.severity.value, one.what, one.text, one.remedy or None) for one in found]
    counts = Counter(one.severity for one in found)
    words = [f"{counts[one]} {one.value}" for one in _DISTURBS if counts[one]]
    data = {
        "machine": asdict(this_machine()),
        "threads": options.threads,
        "usable_cores": cores,
        "found": [
            {
                "what": one.what,
                "severity": one.severity.value,
                "text": one.text,
                "remedy": one.remedy or None,
            }
            for one in found
        ],
    }
    sentence = f"disturbances: {', '.join(words)}" if words else "nothing known disturbs measuring"
    table = row_table(_FIELDS, rows, "facts")
    return Answer(data, lines=[f"{this_machine()}", sentence], tables=(shown(table),))
