"""Command line of the benchmarks: python -m tests.bench [NAME …] [--files FOLDER]."""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
from pathlib import Path

from tests.bench.cases import CASES
from tests.bench.result import Result


def main() -> int:
    """Run the benchmarks asked for and print one line a figure."""
    parser = argparse.ArgumentParser(description="Measure speed side by side with the stock tool.")
    names = [case.__name__ for case in CASES]
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    default = Path(tempfile.gettempdir()) / "etscope-bench"
    parser.add_argument("--files", type=Path, default=default, help="where large files are kept")
    options = parser.parse_args()
    unknown = set(options.names) - set(names)
    if unknown:
        parser.error(f"unknown benchmark {sorted(unknown)[0]!r}; available: {', '.join(names)}")
    options.files.mkdir(parents=True, exist_ok=True)
    sys.stdout.write(f"Python {platform.python_version()} on {platform.machine()}\n")
    missed = 0
    for case in CASES:
        if not options.names or case.__name__ in options.names:
            missed += sum(not _report(result) for result in case(options.files))
    sys.stdout.write(f"{missed} limit(s) missed\n")
    return 1 if missed else 0


def _report(result: Result) -> bool:
    sys.stdout.write(result.line() + "\n")
    sys.stdout.flush()
    return result.holds


if __name__ == "__main__":
    sys.exit(main())
