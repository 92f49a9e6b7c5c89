"""Scripts in the style of the documents: ported they run without the `executorch` package.

Each script asserts what it computes and prints numbers as JSON; where the stock wheel can run the
script as it is, its numbers are the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from inspector.compat.porting.files import port_file
from tests.architecture.tree import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SNIPPETS = {path.stem: path for path in (ROOT / "tests" / "data" / "snippets").glob("*.py")}
# What the wheel cannot run as it stands, and why.
STOCK_CANNOT = {
    "nanogpt": "its runtime refuses scales of constants that are not folded",
    "visualization": "it needs model_explorer, which it does not install",
}
# Runs a script as in an environment in which the package is not installed.
WITHOUT_WHEEL = """
import runpy, sys
class Without:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "executorch":
            return None
        return self.finder.find_spec(name, path, target)
sys.meta_path[:] = map(Without, sys.meta_path)
runpy.run_path(sys.argv[1], run_name="__main__")
assert not [name for name in sys.modules if name.partition(".")[0] == "executorch"]
"""


def numbers_of(command: list[str], folder: Path) -> dict[str, object]:
    """Run a script and return the JSON of its last line."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def ported_numbers(name: str, folder: Path) -> dict[str, object]:
    file = port_file(SNIPPETS[name])
    assert file.ported.missing == ()
    script = folder / f"{name}.py"
    script.write_bytes(file.data)
    return numbers_of(["-c", WITHOUT_WHEEL, str(script)], folder)


@pytest.mark.parametrize("name", sorted(STOCK_CANNOT))
def test_ported_snippet_runs_without_the_package(name: str, tmp_path: Path) -> None:
    assert ported_numbers(name, tmp_path)


@pytest.mark.interop
@pytest.mark.parametrize("name", sorted(set(SNIPPETS) - set(STOCK_CANNOT)))
def test_ported_snippet_runs_without_the_package_and_gives_the_numbers_of_stock(
    name: str, tmp_path: Path
) -> None:
    ours = ported_numbers(name, tmp_path)
    stock = numbers_of([str(SNIPPETS[name])], tmp_path)
    assert ours.keys() == stock.keys()
    for key, value in ours.items():
        found, wanted = flat(value), flat(stock[key])
        assert words(found) == words(wanted), key
        numbers = [
            [one for one in some if not isinstance(one, str | None)] for some in (found, wanted)
        ]
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-3, abs=1e-4), key


def words(found: list[object]) -> list[object]:
    """Return the texts among leaves, with nothing in the place of numbers."""
    return [one if isinstance(one, str) else None for one in found]


def flat(value: object) -> list[object]:
    """Return the leaves of nested lists and objects in order."""
    if isinstance(value, dict):
        value = [item for pair in sorted(value.items()) for item in pair]
    if isinstance(value, list):
        return [leaf for item in value for leaf in flat(item)]
    return [value]
