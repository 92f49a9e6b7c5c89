"""Runs a snippet in a process of its own and returns the numbers it prints."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(__file__).resolve().parents[1] / "data"
# The Inspector of one side: both in one process would share torch's caches; imports are left out.
INSPECTOR = """
import json, sys, time, warnings, logging
warnings.simplefilter("ignore"); logging.disable(logging.CRITICAL)
folder, stock = sys.argv[1], sys.argv[2] == "stock"
if stock:
    from executorch.devtools import Inspector
else:
    from inspector import Inspector
    import pandas

def opened():
    return Inspector(
        etdump_path=folder + "/run.etdp",
        etrecord=folder + "/model.etrecord",
        debug_buffer_path=folder + "/run.debug",
    )

samples = []
"""
ENVIRONMENT = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(ROOT)}


def ask(code: str, *arguments: str) -> Any:
    """Return what the last line of the snippet's output says, read as JSON."""
    return _last_line("-c", code, *arguments)


def ask_module(name: str, *arguments: str) -> Any:
    """Return what the last line of a module's output says, read as JSON."""
    return _last_line("-m", name, *arguments)


def _last_line(*arguments: str) -> Any:
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
        cwd=ROOT,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def wall_seconds(code: str, runs: int = 5) -> float:
    """Return the median time of a whole process over several runs, after one warm-up."""
    ask(code)
    samples: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        ask(code)
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)


def peak_mib() -> float:
    """Return the most memory this process ever had, in MiB.

    Linux carries the ru_maxrss of a parent over to the program its child starts; VmHWM begins anew.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    import resource

    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
