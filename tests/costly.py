"""How many cases of costly tests an ordinary run takes; `make thorough` runs all of them.

`costs.json` has the cases and seconds of each test that takes long, as a run of all cases recorded
them (`python -m tests.tools.costs LOG`). Of a test with many cases so many are taken, evenly
spread, as fit `BUDGET`; a test whose one case takes longer than `LONGEST` is left to
`make thorough`, unless much rests on it (`ALWAYS`).
"""

from __future__ import annotations

import json
from pathlib import Path

COSTS = Path(__file__).parent / "costs.json"
# Seconds of a slow machine (two cores, AVX2 alone) whose cores are shared by three workers.
BUDGET = 2.0
LONGEST = 7.0

# Tests of which an ordinary run takes every case.
ALWAYS = frozenset(
    {
        "tests/architecture/test_imports.py::test_import_every_module_loads_only_what_its_package_may",
        "tests/architecture/test_lint.py::test_sources_tool_has_nothing_to_say",
        "tests/architecture/test_phrases.py::test_no_string_of_the_window_has_one_of_the_phrases",
        "tests/architecture/test_sizes.py::test_sources_every_module_says_what_it_is",
        "tests/architecture/test_wheel.py::test_wheel_in_a_clean_environment_etscope_runs",
        "tests/app/test_loop.py::test_story_from_a_verdict_to_a_compared_variant_and_back",
        "tests/app/test_shots.py::test_demo_without_a_display_writes_pictures_and_the_summary",
        "tests/runtime/test_operators.py::test_operator_results_equal_stock_or_are_named",
        "tests/app/test_shots.py::test_screenshots_of_all_views_are_one_of_each_and_quiet",
        "tests/inspector/test_backend_python.py::test_payloads_are_made_there_and_rules_hold",
        "tests/inspector/test_compat_traces.py::test_blocks_are_those_of_the_stock_tool",
        "tests/inspector/test_sensitivity.py::test_the_module_that_costs_most_comes_first_with_the_edit_that_leaves_it",
        "tests/inspector/test_toolchain_interop.py::test_both_leave_the_same_files_and_outputs",
        "tests/suites/test_sample.py::test_recorded_tests_of_the_wheel_pass",
        "tests/walk/test_walk.py::test_walk_through_the_whole_loop",
    }
)


def costs() -> dict[str, tuple[int, float]]:
    """Return cases and seconds of each test that takes long, by its name as pytest has it."""
    return {test: (cases, spent) for test, (cases, spent) in json.loads(COSTS.read_text()).items()}


def affordable(cases: int, spent: float) -> int:
    """Return how many cases of a test that took `spent` seconds for all an ordinary run takes."""
    each = spent / cases
    if each > LONGEST:
        return 0
    return min(cases, max(1, int(BUDGET / each)))


def limits() -> dict[str, int]:
    """Return the number of cases that an ordinary run takes of each costly test."""
    return {test: affordable(*cost) for test, cost in costs().items() if test not in ALWAYS}
