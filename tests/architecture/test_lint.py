"""Format, lint and types are part of the suite: a warning is a failure."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.tree import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # pyright has no cache between runs

COMMANDS = {
    "format": ("ruff", "format", "--check", "--quiet"),
    "lint": ("ruff", "check", "--output-format", "concise"),
    "types": ("pyright", "--pythonpath", sys.executable),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_sources_tool_has_nothing_to_say(name: str) -> None:
    command = [sys.executable, "-m", *COMMANDS[name]]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
