"""Command line of the fuzz loop: python -m tests.fuzz --cases 20000.

One case in ten goes through every verb and every view-model, the others through the decoders
and the analyses.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.fuzz.memory import limit_address_space
from tests.fuzz.run import Report, run
from tests.fuzz.whole import check_case


def main() -> int:
    """Run the cases asked for and print what came of them."""
    parser = argparse.ArgumentParser(description="Damage files and open them.")
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--whole", type=float, default=0.1, help="share with verbs and views")
    options = parser.parse_args()
    limit_address_space()
    start = time.perf_counter()
    whole = round(options.cases * options.whole)
    report = run(options.cases - whole, options.seed)
    wrong = [found for case in range(whole) for found in check_case(case, options.seed)]
    for failure in (*report.failures, *wrong):
        sys.stderr.write(failure + "\n")
    sys.stdout.write(_summary(report, whole, wrong, time.perf_counter() - start))
    return 1 if report.failures or wrong else 0


def _summary(report: Report, whole: int, wrong: list[str], seconds: float) -> str:
    outcomes = ", ".join(f"{count} {name}" for name, count in report.outcomes.most_common())
    return (
        f"{report.outcomes.total() + whole} cases in {seconds:.0f} s: {outcomes},"
        f" {whole} through verbs and views; slowest {report.slowest_s:.2f} s,"
        f" most memory {report.peak_mib:.0f} MiB, {len(report.failures) + len(wrong)} failures\n"
    )


if __name__ == "__main__":
    sys.exit(main())
