"""Threads of the window take memory from one pool."""

from __future__ import annotations

import subprocess
import sys

import pytest

_POOLS = """
import sys, threading
from pathlib import Path
from devtools_app.shell.memory_pool import share_free_memory
if sys.argv[1] == "shared":
    assert share_free_memory()
kept = []
wait = threading.Barrier(5)
def work():
    kept.append([bytes(2000) for _ in range(100)])
    wait.wait()
for _ in range(4):
    threading.Thread(target=work).start()
wait.wait()
# a pool of a thread is a mapping of 64 MiB, most of it without access
rows = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
ends = [[int(end, 16) for end in row[0].split("-")] for row in rows if row[1] == "---p"]
print(sum(end - start > 32 << 20 for start, end in ends))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of the GNU C library")
def test_threads_share_free_memory() -> None:
    def pools(how: str) -> int:
        command = [sys.executable, "-c", _POOLS, how]
        return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)

    if not pools("own"):
        pytest.skip("this C library has one pool")
    assert pools("shared") == 0
