"""Plurals, units, statistics of times, atomic writes and columns are each of one module.

A rule lists the files that may do it themselves, and why. Rules are tried on code that breaks them.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Mapping
from functools import cache

import pytest

from tests.architecture.tree import PACKAGES, ROOT, tracked_files

UNITS = re.compile(r" ?(?:ns|µs|us|ms|s|B|KiB|MiB|GiB|kB|MB|GB)(?![\w/(])")
STATISTICS = {"median", "nanmedian", "percentile", "nanpercentile", "quantile"}
REPLACING = {"replace", "rename", "mkstemp", "NamedTemporaryFile"}
COLUMNS = {"text_column", "number_column", "badge_column", "share_column", "row_table", "RowField"}
# Code that a rule may find; the tree of a file without it is not built (0.7 s instead of 2.9).
LIKELY = re.compile(
    r"""_column\(|row_table|RowField|QTableWidget|QTreeWidget|\b(?:np|numpy|statistics)\.\w*(?:median|percentile|quantile)|"""
    r"""os\.re|mkstemp|NamedTemp|\.\d+[fg]\} ?[nµumskMGKB]|"""
    r"""['"]([^'"\n]*?)s?['"]\s+if\s[^'"]{1,120}\selse\s+['"]\1s?['"]"""
)
Rule = Callable[[ast.AST], bool]


def is_plural(node: ast.AST) -> bool:
    """Return whether a node chooses between a noun and its plural."""
    if not isinstance(node, ast.IfExp):
        return False
    words = [one.value for one in (node.body, node.orelse) if isinstance(one, ast.Constant)]
    short, long = sorted(map(str, words), key=len) if len(words) == 2 else ("", "")
    return all(isinstance(word, str) for word in words) and long == f"{short}s"


def is_unit(node: ast.AST) -> bool:
    """Return whether a node writes a number with decimals and a unit behind it."""
    parts = node.values if isinstance(node, ast.JoinedStr) else []
    return any(
        isinstance(number, ast.FormattedValue)
        and number.format_spec is not None
        and re.search(r"\.\d+[fg]", ast.unparse(number.format_spec))
        and isinstance(unit, ast.Constant)
        and UNITS.match(str(unit.value))
        for number, unit in itertools.pairwise(parts)
    )


def is_statistic(node: ast.AST) -> bool:
    """Return whether a node calls a median or a percentile of numpy or Python."""
    called = node.func if isinstance(node, ast.Call) else None
    return (
        isinstance(called, ast.Attribute)
        and called.attr in STATISTICS
        and ast.unparse(called.value) in ("np", "numpy", "statistics")
    )


def is_replacing(node: ast.AST) -> bool:
    """Return whether a node moves a file to its place, or makes a temporary one."""
    called = node.func if isinstance(node, ast.Call) else None
    return (
        isinstance(called, ast.Attribute)
        and called.attr in REPLACING
        and ast.unparse(called.value) in ("os", "tempfile")
    )


def is_column(node: ast.AST) -> bool:
    """Return whether a node creates a column of a table, or a widget with rows of its own."""
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Name) and (
        called.id in COLUMNS or called.id in ("QTableWidget", "QTreeWidget")
    )


# rule -> path of a file that may, or of a folder -> why
RULES: Mapping[Rule, Mapping[str, str]] = {
    is_plural: {
        "schema/objects/plural.py": "the one",
        "inspector/experiments/gates/gap_values.py": "names follow the noun, no count precedes it",
    },
    is_unit: {
        "inspector/units.py": "the one",
        "inspector/cli/progress.py": "columns of digits in a terminal",
        "devtools_app/demo.py": "columns of digits in a terminal",
        "inspector/cli/run.py": "a line in the form of the stock runner",
        "compiler/llm/memory_check.py": "a sentence of the compiler, which imports no inspector",
    },
    is_statistic: {
        "inspector/trace/": "the one of times",
        "inspector/compare/statistics.py": "bootstrap draws",
        "inspector/compat/devtools/": "the documented statistics",
        "inspector/experiments/evaluate/report.py": "of errors, not of times",
        "inspector/worker/calibrating.py": "of rates, which need no steady set",
    },
    is_replacing: {
        "schema/objects/atomic_file.py": "the one of files",
        "inspector/jobs/output_folder.py": "the one of folders",
        "inspector/jobs/output_file.py": "a folder's file, moved at the end of a job",
        "compiler/interface/file_data.py": "a mapped file that lives as long as its program",
        "runtime/backends/xnnpack/native/process.py": "shared memory of a process",
    },
    is_column: {
        "inspector/tables/": "the one room of tables",
        "devtools_app/viewmodels/layout/timeline_found.py": "lengths that a filter compares with",
        "devtools_app/dialogs/disk_dialog.py": "a list with boxes to check, its rows of a table",
        "devtools_app/dialogs/bundle_cases.py": "a list to choose rows in, its rows of a table",
    },
}
BREAKS = {
    is_plural: ("f\"{n} node{'' if n == 1 else 's'}\"", "'call' if n == 1 else 'calls'"),
    is_unit: ('f"{t:.4g} ms"', 'f"took {t:,.1f} s so far"', 'f"{n:.2f} KiB"'),
    is_statistic: ("np.median(times)", "statistics.median(times)", "np.percentile(times, 50)"),
    is_replacing: ("os.replace(a, b)", "tempfile.NamedTemporaryFile()"),
    is_column: ('text_column("name", names)', "row_table(fields, rows)", "QTreeWidget()"),
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_only_one_module_does_it(rule: Rule) -> None:
    free = RULES[rule]
    found = _found()[rule]
    assert {name: at for name, at in found.items() if not name.startswith(tuple(free))} == {}
    used = {one for one in free if any(name.startswith(one) for name in found)}
    assert used | {"schema/objects/plural.py", "inspector/units.py"} >= {*free}, "needless freedom"


@pytest.mark.parametrize("rule", BREAKS, ids=lambda rule: rule.__name__)
def test_rules_see_what_they_look_for(rule: Rule) -> None:
    for code in BREAKS[rule]:
        assert LIKELY.search(code), code
        assert any(map(rule, ast.walk(ast.parse(code)))), code
    for code in ("'is' if n == 1 else 'are'", 'f"{n} ms"', "runs.median", "text.replace(a, b)"):
        assert not any(map(rule, ast.walk(ast.parse(code)))), code


@cache
def _found() -> Mapping[Rule, Mapping[str, list[int]]]:
    """Return the lines that a rule finds, by module; most files need not be parsed."""
    found: dict[Rule, dict[str, list[int]]] = {rule: {} for rule in RULES}
    for path in tracked_files():
        name = path.relative_to(ROOT).as_posix()
        if path.suffix != ".py" or name.split("/")[0] not in PACKAGES or "/sample_data/" in name:
            continue
        source = path.read_text("utf-8")
        if not LIKELY.search(source):
            continue
        for node in ast.walk(ast.parse(source)):
            for rule in filter(lambda one: one(node), RULES):
                found[rule].setdefault(name, []).append(getattr(node, "lineno", 0))
    return found
