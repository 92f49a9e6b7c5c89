"""Command line of the fuzz loop: python -m tests.fuzz --cases 20000."""

from __future__ import annotations

import argparse
import sys
import time

from tests.fuzz.run import run


def main() -> int:
    """Run the cases asked for and print what came of them."""
    parser = argparse.ArgumentParser(description="Damage files and open them.")
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    start = time.perf_counter()
    report = run(options.cases, options.seed)
    for failure in report.failures[:20]:
        sys.stderr.write(failure + "\n")
    outcomes = ", ".join(f"{count} {name}" for name, count in report.outcomes.most_common())
    sys.stdout.write(
        f"{options.cases} cases in {time.perf_counter() - start:.0f} s: {outcomes};"
        f" slowest {report.slowest_s:.2f} s, memory +{report.growth_mib:.0f} MiB,"
        f" {len(report.failures)} failures\n"
    )
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
