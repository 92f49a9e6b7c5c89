"""make walk as a test: skipped where the servers of a desktop are not installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.walk.desktop import LIBRARIES, PROGRAMS, missing_packages

_MISSING = missing_packages() or (
    () if importlib.util.find_spec("jeepney") else ("jeepney (of the extra dev)",)
)

pytestmark = [
    pytest.mark.gui,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(_MISSING), reason=f"not installed: {', '.join(_MISSING)}"),
]


@pytest.mark.parametrize("hands", ["keys"])  # by the mouse: make walk
def test_walk_through_the_whole_loop(hands: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.walk", hands, "--output", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pictures = sorted(one.name for one in (tmp_path / hands).glob("*.png"))
    assert pictures[0] == "01_start.png"
    assert len(pictures) >= 12


def test_step_that_fails_fails_the_walk(tmp_path: Path, monkeypatch) -> None:
    from tests.walk import __main__ as walking
    from tests.walk import loop

    def _never(walker) -> None:
        walker.see("push button", "Open the sample")
        walker.see("push button", "no such button", patience=1.0)

    monkeypatch.setattr(loop, "STEPS", (loop.Step("Start", loop._nothing, loop._nothing, _never),))
    assert walking.walk(tmp_path, (1280, 720), keys=True) == 1
    assert (tmp_path / "failed.png").exists()
    assert "Open the sample" in (tmp_path / "failed.txt").read_text()


def test_every_program_is_of_a_named_package() -> None:
    readme = (ROOT / "README.md").read_text()
    packages = (*PROGRAMS.values(), *LIBRARIES.values())
    assert [package for package in packages if package not in readme] == []
