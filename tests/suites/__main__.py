"""Run the stock wheel's own tests on this project: python -m tests.suites [SUITE or FILE ...].

The tests are copied from the installed wheel into build/suites, and the results are written there:
results.json (every test), table.md (by suite), leftovers.txt (what fails and the name it needs).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.architecture.tree import ROOT
from tests.suites import table
from tests.suites.sample import PARTS, record
from tests.suites.serve import WHEEL

SCRATCH = ROOT / "build" / "suites"
INI = """[pytest]
addopts = --import-mode=importlib --continue-on-collection-errors -q --tb=no --no-header
timeout = 300
timeout_method = signal
python_files = test_*.py *_test.py
"""
PLUGINS = ("-p", "tests.suites.plugin", "-p", "no:cacheprovider", "-p", "no:pytest-qt")


def run(
    names: Sequence[str],
    scratch: Path,
    *,
    workers: int = 0,
    side: str = "ours",
    options: Sequence[str] = (),
) -> table.Outcomes:
    """Run suites, or files below the wheel's package, and return what became of each test.

    Args:
        names: of suites, or paths such as `export/tests/test_export_recipe.py`
        scratch: folder that gets copies of the tests and results.json
        workers: how many processes; 0 is this one's child alone
        side: "ours", or "stock" to run the tests on the wheel itself
        options: further arguments of pytest
    """
    copy_tests(scratch)
    (scratch / "pytest.ini").write_text(INI, "utf-8")
    results = scratch / "results.jsonl"
    results.unlink(missing_ok=True)
    results.touch()
    paths = [path for name in names for path in table.SUITES.get(name, (name,))]
    command = [sys.executable, "-m", "pytest", "-c", "pytest.ini", f"--rootdir={scratch}"]
    command += [*PLUGINS, "-n", str(workers), "--dist", "loadfile", "-W", "ignore", *options]
    with tempfile.TemporaryDirectory() as folder:
        changed = {"SUITES_RESULTS": str(results), "SUITES_SIDE": side, "TMPDIR": folder}
        changed |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        # Options and worker name of a pytest that this runs in are not those of its children.
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        for batch in _batches(paths):
            arguments = [*command, *batch]
            subprocess.run(arguments, cwd=scratch, env={**kept, **changed}, check=False)
    outcomes = table.read(results.read_text("utf-8").splitlines())
    (scratch / "results.json").write_text(json.dumps(outcomes, indent=1, sort_keys=True), "utf-8")
    return outcomes


def _batches(paths: Sequence[str]) -> Iterator[list[str]]:
    """Yield the arguments of each process: all files but some, then each of those alone."""
    alone = [file for file in table.ALONE if any(f"{file}/".startswith(f"{p}/") for p in paths)]
    skipped = [f"--ignore=executorch_tests/{path}" for path in (*table.SKIPPED_FOLDERS, *alone)]
    together = [f"executorch_tests/{path}" for path in paths if path not in alone]
    if together:
        yield [*skipped, *together]
    yield from ([f"executorch_tests/{file}"] for file in alone)


def copy_tests(scratch: Path) -> None:
    """Copy the files with tests out of the wheel; but for relative imports they are unchanged.

    The name of the folder matters: torch.export treats files with "executorch" in their path apart.
    """
    for source in _test_files():
        target = scratch / "executorch_tests" / source.relative_to(WHEEL)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_absolute_imports(source), "utf-8")


def _absolute_imports(source: Path) -> str:
    """Return a file whose relative imports say from where in the wheel they import."""
    package = ("executorch", *source.relative_to(WHEEL).parts[:-1])

    def absolute(found: re.Match[str]) -> str:
        home = ".".join(package[: len(package) - len(found["dots"]) + 1])
        return f"from {home}{'.' if found['rest'] else ''}{found['rest']} import"

    line = re.compile(r"^from (?P<dots>\.+)(?P<rest>[\w.]*) import", re.MULTILINE)
    return line.sub(absolute, source.read_text("utf-8"))


def _test_files() -> Iterator[Path]:
    for folders in table.SUITES.values():
        for folder in folders:
            for pattern in ("test_*.py", "*_test.py"):
                yield from (WHEEL / folder).rglob(pattern)


def main() -> None:
    """Run what was asked for, write and print the tables."""
    parser = argparse.ArgumentParser(prog="tests.suites", description=__doc__)
    parser.add_argument("names", nargs="*", default=list(table.SUITES), metavar="SUITE|FILE")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--side", choices=("ours", "stock"), default="ours")
    parser.add_argument("--output", type=Path, default=SCRATCH)
    parser.add_argument("--sample", action="store_true", help="run the sample of make test")
    parser.add_argument("--record", action="store_true", help="add what passes to passing.txt")
    parser.add_argument("-k", help="choose tests, as pytest does")
    options = parser.parse_args()
    scratch = options.output.resolve() / options.side
    chosen = ("-k", options.k) if options.k else ()
    names = [name for part in PARTS.values() for name in part] if options.sample else options.names
    outcomes = run(names, scratch, workers=options.workers, side=options.side, options=chosen)
    (scratch / "table.md").write_text(table.as_markdown(outcomes), "utf-8")
    (scratch / "leftovers.txt").write_text(table.leftovers(outcomes), "utf-8")
    if options.record:
        record(outcomes)
    sys.stdout.write(f"{table.as_markdown(outcomes)}\nevery test: {scratch / 'results.json'}\n")
    sys.stdout.write(f"what still fails: {scratch / 'leftovers.txt'}\n")


if __name__ == "__main__":
    main()
