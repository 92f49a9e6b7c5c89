"""What became of the tests, as a table and as the list of what still fails."""

from __future__ import annotations

import fnmatch
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
Outcomes = dict[str, dict[str, Any]]

# Suite -> folders of the wheel. Models of XNNPACK need packages with models in them.
SUITES: dict[str, tuple[str, ...]] = {
    "runtime": ("runtime/test",),
    "pybindings": ("extension/pybindings/test",),
    "training": ("extension/training",),
    "flat_tensor": ("extension/flat_tensor",),
    "harness": ("backends/test/harness",),
    "export": ("export",),
    "devtools": ("devtools",),
    "exir": ("exir",),
    "xnnpack": ("backends/xnnpack/test",),
    "transforms": ("backends/transforms/test",),
    "kernels": ("kernels",),
    "schema": ("schema",),
    "codegen": ("codegen",),
}
SKIPPED_FOLDERS = ("backends/xnnpack/test/models",)
# They define operators under the name of another file's: each has a process of its own.
ALONE = (
    "exir/dialects/backend/test/test_backend_ops.py",
    "exir/operator/test/test_operator.py",
    "exir/tests/test_passes.py",
)
_ORDER = ("passed", "skipped", "failed")
COLUMNS = ("tests", "pass", "needs a name", "fails", "n/a", "skipped")


def read(lines: Iterable[str]) -> Outcomes:
    """Return the worst outcome of the phases and subtests of each test."""
    found: Outcomes = {}
    for line in lines:
        facts = json.loads(line)
        test = facts.pop("test")
        kept = found.setdefault(test, {"outcome": "passed", "seconds": 0.0})
        seconds = round(kept["seconds"] + facts["seconds"], 2)
        if _ORDER.index(facts["outcome"]) > _ORDER.index(kept["outcome"]):
            kept.update(facts)
        kept["seconds"] = seconds
    return found


def suite_of(test: str) -> str:
    """Return the suite that a test id belongs to."""
    return next(
        name
        for name, folders in SUITES.items()
        if any(test.startswith(f"executorch_tests/{folder}/") for folder in folders)
    )


def not_applicable() -> dict[str, str]:
    """Return the pattern of test ids -> why no counterpart can pass them."""
    reasons = json.loads((HERE / "not_applicable.json").read_text("utf-8"))
    return {pattern: reason for reason, patterns in reasons.items() for pattern in patterns}


def class_of(test: str, outcome: dict[str, Any], patterns: dict[str, str]) -> str:
    """Return the column that counts a test."""
    if outcome["outcome"] in ("passed", "skipped"):
        return "pass" if outcome["outcome"] == "passed" else "skipped"
    if any(fnmatch.fnmatchcase(test, pattern) for pattern in patterns):
        return "n/a"
    return "needs a name" if outcome.get("needs") else "fails"


def as_markdown(outcomes: Outcomes) -> str:
    """Return the table by suite with a line of sums."""
    patterns = not_applicable()
    counts: dict[str, Counter[str]] = {name: Counter() for name in SUITES}
    for test, outcome in outcomes.items():
        counts[suite_of(test)][class_of(test, outcome, patterns)] += 1
    counts["all"] = sum(counts.values(), Counter())
    lines = [f"| suite | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for name, found in counts.items():
        if found:
            cells = (found.total(), *(found[column] for column in COLUMNS[1:]))
            lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def leftovers(outcomes: Outcomes) -> str:
    """Return what still fails: the names that are needed, then tests with their error."""
    patterns = not_applicable()
    needed: Counter[str] = Counter()
    failing: list[str] = []
    for test, outcome in sorted(outcomes.items()):
        column = class_of(test, outcome, patterns)
        if column == "needs a name":
            needed[outcome["needs"][0]] += 1
        elif column == "fails":
            failing.append(f"{test}\n    {outcome['error'].splitlines()[0]}")
    names = [f"{count:4} {name}" for name, count in needed.most_common()]
    return "\n".join(["tests  name needed", *names, "", "failing otherwise", *failing, ""])
