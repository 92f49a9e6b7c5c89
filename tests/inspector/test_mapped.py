"""Mapped files that are cut short or rewritten while they are read."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from inspector.files import load
from inspector.files.mapped import is_rewritten, map_file, rest

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGBUS"), reason="nobody can truncate it")
SIZE = 64 * mmap.PAGESIZE
_READ = """
import os, sys, threading
import numpy as np
from inspector.files.mapped import guard, is_rewritten, map_file
path, keep, guarded = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "guarded"
end = guard() if guarded else None
with open(path, "rb") as stream:
    data = map_file(stream, path)
os.truncate(path, keep)
answers = []
def read():
    answers.append(int(np.frombuffer(data, np.uint8).sum(dtype=np.int64)))
threads = [threading.Thread(target=read) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
read()
assert bytes(data)[:keep] == b"\\x01" * keep
print(set(answers), is_rewritten(data))
"""


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as stream:
        return map_file(stream, str(path))


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "large.pte"
    path.write_bytes(b"\x01" * SIZE)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("keep", [0, 1, mmap.PAGESIZE, 5 * mmap.PAGESIZE + 7])
def test_guard_outlives_a_file_cut_short(file, keep):
    done = _child(file, keep, "guarded")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [f"{{{keep}}}", "True"]


@pytest.mark.slow
def test_guard_is_what_saves_the_process(file):
    assert _child(file, 0, "bare").returncode == -signal.SIGBUS


@pytest.mark.slow
def test_guard_leaves_other_bus_errors_to_the_system():
    code = "from inspector.files.mapped import guard; import os, signal; end = guard(); end();"
    code += "os.kill(os.getpid(), signal.SIGBUS)"
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert done.returncode == -signal.SIGBUS


def _child(file: Path, keep: int, mode: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _READ, str(file), str(keep), mode]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_mapped_file_that_was_written_to_is_rewritten(file):
    data = _mapped(file)
    assert not is_rewritten(data)
    with file.open("r+b") as stream:
        stream.write(b"other")
    os.utime(file, ns=(1, 1))
    assert is_rewritten(data)
    assert not is_rewritten(_mapped(file))


def test_mapped_file_that_was_replaced_is_as_it_was(file):
    data = _mapped(file)
    other = file.with_suffix(".new")
    other.write_bytes(b"\x02" * SIZE)
    other.replace(file)
    assert not is_rewritten(data)
    assert bytes(data[:4]) == b"\x01" * 4
    file.unlink()
    assert not is_rewritten(data)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system decides")
def test_mapped_file_that_rests_takes_no_memory_and_is_read_again(file):
    def held() -> int:
        rows = Path("/proc/self/smaps").read_text().split(str(file))[1].splitlines()
        return int(next(row.split()[1] for row in rows if row.startswith("Rss:")))

    data = _mapped(file)
    assert bytes(data) == b"\x01" * SIZE
    assert held() == SIZE >> 10
    rest(data)
    assert held() == 0
    assert bytes(data) == b"\x01" * SIZE
    rest(memoryview(b"read"))


def test_file_read_into_memory_is_never_rewritten(file):
    data = load.open_bytes(str(file))
    os.truncate(file, 0)
    assert not is_rewritten(data)
    assert bytes(data) == b"\x01" * SIZE


def test_file_that_became_empty_is_an_error(file):
    os.truncate(file, 0)
    with pytest.raises(OSError, match="became empty"):
        _mapped(file)
