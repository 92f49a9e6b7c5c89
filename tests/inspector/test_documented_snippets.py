"""Scripts in the style of the documents: ported they run without the `executorch` package.

Each script asserts what it computes and prints numbers as JSON; where the stock wheel can run the
script as it is, its numbers are the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector.compat.porting.files import port_file
from tests.architecture.tree import ROOT
from tests.tools.forked import run_stock
from tests.tools.scripts import Scripts

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SNIPPETS = {path.stem: path for path in (ROOT / "tests" / "data" / "snippets").glob("*.py")}
# What the wheel cannot run as it stands, and why.
STOCK_CANNOT = {
    "nanogpt": "its runtime refuses scales of constants that are not folded",
    "visualization": "it needs model_explorer, which it does not install",
}
# An environment in which the package is not installed.
WITHOUT_WHEEL = """
import sys
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
"""
STILL_WITHOUT = """
assert not [name for name in sys.modules if name.partition(".")[0] == "executorch"]
"""
TORCH = ["torch", "torch.export", "torch._dynamo", "torchao.quantization.pt2e.quantize_pt2e"]
OURS = [*TORCH, "compiler", "compiler.backends.xnnpack.quantizer", "inspector", "runtime"]


@pytest.fixture(scope="module")
def ours() -> Iterator[Scripts]:
    scripts = Scripts(OURS, before=WITHOUT_WHEEL, after=STILL_WITHOUT)
    yield scripts
    scripts.close()


def ported_numbers(name: str, folder: Path, ours: Scripts) -> dict[str, object]:
    file = port_file(SNIPPETS[name])
    assert file.ported.missing == ()
    script = folder / f"{name}.py"
    script.write_bytes(file.data)
    return numbers_in(ours.output(script, folder))


def numbers_in(output: str) -> dict[str, object]:
    """Return the JSON of the last line."""
    return json.loads(output.splitlines()[-1])


@pytest.mark.parametrize("name", sorted(STOCK_CANNOT))
def test_ported_snippet_runs_without_the_package(name: str, tmp_path: Path, ours: Scripts) -> None:
    assert ported_numbers(name, tmp_path, ours)


@pytest.mark.interop
@pytest.mark.parametrize("name", sorted(set(SNIPPETS) - set(STOCK_CANNOT)))
def test_ported_snippet_runs_without_the_package_and_gives_the_numbers_of_stock(
    name: str, tmp_path: Path, ours: Scripts
) -> None:
    numbers = ported_numbers(name, tmp_path, ours)
    expected = numbers_in(run_stock([SNIPPETS[name]], cwd=tmp_path).stdout)
    assert numbers.keys() == expected.keys()
    for key, value in numbers.items():
        found, wanted = flat(value), flat(expected[key])
        assert words(found) == words(wanted), key
        figures = [
            [one for one in some if not isinstance(one, str | None)] for some in (found, wanted)
        ]
        assert figures[0] == pytest.approx(figures[1], rel=1e-3, abs=1e-4), key


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
