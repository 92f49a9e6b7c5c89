"""`python -m tests.tools.costs LOG`: record what tests take, as a run of all cases printed it.

The log is that of `pytest --all-cases -v --durations=0 --durations-min=0.4`.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

from tests.costly import COSTS

# Seconds from which on a test is worth a line.
LEAST = 4.0


def read(log: str) -> dict[str, tuple[int, float]]:
    """Return cases and seconds of each test of a log that took long."""
    spent: Counter[str] = Counter()
    for seconds, test in re.findall(r"^([\d.]+)s (?:call|setup|teardown) +([^\s\[]+)", log, re.M):
        spent[test] += float(seconds)
    cases = Counter(re.findall(r"^(?:\[gw\d+\] \[ *\d+%\] )?PASSED ([^\s\[]+)", log, re.M))
    found = {test: (cases[test], round(total, 1)) for test, total in spent.items() if cases[test]}
    return {test: cost for test, cost in sorted(found.items()) if cost[1] >= LEAST}


def main() -> None:
    """Write the table beside `tests/costly.py`."""
    table = read(Path(sys.argv[1]).read_text("utf-8", errors="replace"))
    lines = (f"{json.dumps(test)}: {json.dumps(cost)}" for test, cost in table.items())
    COSTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
