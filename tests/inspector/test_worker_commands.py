"""Programs installed beside an interpreter are found by what runs in it, whatever the path is.

Vendors' compilers start such programs (VGF its model converter, Ethos-U Vela). An interpreter of a
virtual environment that is started by its path has their folder on no path.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from inspector.toolchain.child import SCRIPT
from tests.architecture.tree import ROOT

pytestmark = pytest.mark.slow
NAME = Path(sys.executable).name
_SOURCE = """
import shutil
from pathlib import Path

import torch

found = shutil.which({name!r})
Path({told!r}).write_text(found or "nothing")


class Net(torch.nn.Module):
    def forward(self, x):
        return torch.sin(x)


def build():
    return Net(), (torch.ones(2),)


def samples():
    return [(torch.ones(2),)]


class Mine:
    def __new__(cls):
        from executorch.exir.backend.test.op_partitioner_demo import AddMulPartitionerDemo
        return AddMulPartitionerDemo()
"""


def _environment(folder: Path) -> dict[str, str]:
    (folder / "bare").mkdir()
    return {**os.environ, "PATH": str(folder / "bare"), "PYTHONPATH": str(ROOT)}


def _source(folder: Path) -> tuple[str, Path]:
    path, told = folder / "net.py", folder / "told.txt"
    path.write_text(_SOURCE.format(name=NAME, told=str(told)))
    return f"{path}:build", told


def _etscope(folder: Path, *words: str) -> None:
    code = "import sys; from inspector.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, *words]
    run = subprocess.run(
        command, env=_environment(folder), capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("more", [(), ("--toolchain", "executorch")], ids=["own", "stock"])
@pytest.mark.interop
@pytest.mark.timeout(600)
def test_a_compile_finds_what_is_installed_beside_its_interpreter(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    source, told = _source(tmp_path)
    _etscope(tmp_path, "compile", source, "-o", str(tmp_path / "out"), *more)
    found = Path(told.read_text())
    assert found.name == NAME, "a vendor's program beside the interpreter is not found"
    assert found.parent == Path(sys.executable).parent


@pytest.mark.interop
@pytest.mark.timeout(600)
def test_another_interpreter_finds_what_is_installed_beside_it(tmp_path: Path) -> None:
    """That of `--backend-python`: no package of ours has run there before the vendor's code."""
    source, told = _source(tmp_path)
    given = {"name": f"{source.rpartition(':')[0]}:Mine", "options": {}}
    question = {"do": "prepare", "number": 0, "partitioner": given, "libraries": []}
    with subprocess.Popen(
        [sys.executable, str(SCRIPT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(tmp_path),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(question).encode() + b"\n")
        process.stdin.flush()
        kinds = (json.loads(line)["type"] for line in process.stdout)
        assert "finished" in kinds
        process.stdin.close()
    assert Path(told.read_text()).parent == Path(sys.executable).parent
