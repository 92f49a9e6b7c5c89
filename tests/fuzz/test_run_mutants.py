"""Damaged programs are run in a process of their own: it neither ends nor hangs nor complains."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.fuzz.test_fuzz import CASES, SLICES

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def test_mutants_that_open_run_or_fail_with_an_error(tmp_path: Path) -> None:
    seeds = [str(seed) for seed in range(SLICES)]
    command = [sys.executable, "-m", "tests.fuzz.run_mutants"]
    done = subprocess.run(
        [*command, str(CASES // SLICES), *seeds, "--fields", "400"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path)},  # without environments of vendors
        timeout=600,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    last = lines[-1] if lines else None
    assert done.returncode == 0, f"ended with {done.returncode} behind {last}: {done.stderr[-800:]}"
    assert [line for line in lines if line[2].startswith("failed")] == []
    outcomes = Counter(line[2].split()[0] for line in lines)
    assert outcomes["ran"] > 30
    assert outcomes["error"] > 50
