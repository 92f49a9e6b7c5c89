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
from inspector.tables.machine import disturbance_table

_DISTURBS = (Effect.SEVERE, Effect.MODERATE, Effect.SLIGHT)
_ROOT = Path("/")


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
    return Answer(
        data, lines=[f"{this_machine()}", sentence], tables=(shown(disturbance_table(found)),)
    )
