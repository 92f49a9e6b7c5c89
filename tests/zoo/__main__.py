"""Measure the architectures, each in processes of its own; write models.md and partitions.md."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tests.architecture.tree import ROOT
from tests.zoo.columns import stamp
from tests.zoo.models import MODELS
from tests.zoo.partitions import write_partitions
from tests.zoo.table import write_page

PAGE, PARTITIONS = ROOT / "docs" / "models.md", ROOT / "docs" / "partitions.md"
SIDES = ("ours", "stock", "gaps")
QUICK = "partitions"  # compiles only, and has a page of its own


def main() -> int:
    parser = argparse.ArgumentParser(description="Compile and run real architectures.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all that are not done")
    parser.add_argument("--again", action="store_true", help="measure also what was measured")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds a process may take")
    parser.add_argument("--results", type=Path, default=ROOT / "zoo-output")
    parser.add_argument("--side", choices=(*SIDES, QUICK), help="default: all")
    options = parser.parse_args()
    unknown = set(options.names) - set(MODELS)
    if unknown:
        parser.error(f"unknown model {sorted(unknown)[0]!r}; there are {', '.join(MODELS)}")
    sides = (*SIDES, QUICK) if options.side is None else (options.side,)
    for side in sides:
        for name in options.names or MODELS:
            done = options.results / name / f"{side}.json"
            if options.again or not done.exists():
                sys.stdout.write(f"{name}: {side}: {measure(side, name, options)}\n")
                sys.stdout.flush()
    wrong = write_partitions(options.results, MODELS, PARTITIONS) if QUICK in sides else []
    if sides != (QUICK,):
        wrong += write_page(options.results, PAGE)
    sys.stdout.write("\n".join([*wrong, f"{len(wrong)} defects\n"]))
    return 1 if wrong else 0


def measure(side: str, name: str, options: argparse.Namespace) -> str:
    """Run one side of one model; return how its process ended."""
    folder = options.results / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{side}.json").unlink(missing_ok=True)
    command = [sys.executable, "-m", f"tests.zoo.{side}", name, str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (folder / f"{side}.log").open("w") as log:
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, timeout=options.timeout
            )
        except subprocess.TimeoutExpired:
            return f"not done in {options.timeout:.0f} s"
    written = (folder / f"{side}.json").exists()
    if written and side in SIDES:
        stamp(folder, side)
    return "done" if written else f"ended with code {done.returncode}, see {folder / side}.log"


if __name__ == "__main__":
    sys.exit(main())
