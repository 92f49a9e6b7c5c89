"""Scripts, each in a fork of one process that has loaded what they import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.architecture.tree import ROOT

_SERVE = """
import importlib, json, os, runpy, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
import torch
torch.export.export(torch.nn.ReLU(), (torch.ones(1),))  # which imports half of torch
for line in sys.stdin:
    script, folder, output, errors = json.loads(line)
    pid = os.fork()
    if pid == 0:
        os.chdir(folder)
        for path, stream in ((output, 1), (errors, 2)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        break
    _, status = os.waitpid(pid, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
else:
    sys.exit()
sys.argv, sys.path[0] = [script], os.path.dirname(script)
runpy.run_path(script, run_name="__main__")
"""


class Scripts:
    """Runs scripts one after the other, each in a fork of a process of its own."""

    def __init__(self, modules: list[str], *, before: str = "", after: str = "") -> None:
        """Start the process.

        Args:
            modules: what it imports
            before: source that it runs first
            after: source that is run behind each script
        """
        self._process = subprocess.Popen(
            [sys.executable, "-c", before + _SERVE + after, *modules],
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def output(self, script: Path, folder: Path) -> str:
        """Return what a script prints; it fails with what it writes to standard error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        files = [folder / f"{script.stem}.{name}" for name in ("output", "errors")]
        request = [str(path) for path in (script, folder, *files)]
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        code = self._process.stdout.readline()
        assert code == "0\n", files[1].read_text()[-3000:]
        return files[0].read_text()

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=30)
