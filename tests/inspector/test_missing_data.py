"""Verbs that load a program without its ``.ptd`` name the file, whoever loads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.inspector.cli_runs import run

pytestmark = pytest.mark.slow
_DATA = "_default_external_constant.ptd"
_SOURCE = """
import torch

def model():
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval(), (torch.ones(2, 4),)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(_SOURCE)
    out, source = tmp_path / "out", f"{tmp_path / 'model.py'}:model"
    found = run("compile", source, "--external-constants", "-o", str(out))
    assert found.code == 0, found.err
    assert (out / _DATA).is_file()
    cases = ("--module", source, "-o", str(out / "model.bpte"))
    found = run("bundle", str(out / "model.pte"), *cases)
    assert found.code == 0, found.err
    return out


def _verbs(folder: Path) -> dict[str, tuple[str, ...]]:
    program = str(folder / "model.pte")
    return {
        "run": ("run", program, "-o", str(folder.parent / "run"), "--force"),
        "verify": ("verify", str(folder / "model.bpte")),
        "measure": ("compare", program, program, "--measure", "1"),
    }


@pytest.mark.parametrize("verb", ["run", "verify", "measure"])
def test_data_beside_a_program_that_is_not_loaded_is_named(folder: Path, verb: str) -> None:
    found = run(*_verbs(folder)[verb])
    assert found.code
    told = f"{_DATA} beside the program is not loaded: --ptd {folder / _DATA}"
    assert told in found.out + found.err


@pytest.mark.parametrize("verb", ["run", "verify", "measure"])
def test_data_of_a_compile_that_is_gone_is_named(folder: Path, verb: str) -> None:
    (folder / _DATA).rename(folder.parent / _DATA)
    found = run(*_verbs(folder)[verb])
    assert found.code
    assert f"{_DATA} of the compile is missing in {folder}" in found.out + found.err


def test_a_bundled_program_with_its_data_passes(folder: Path) -> None:
    found = run("verify", str(folder / "model.bpte"), "--ptd", str(folder / _DATA))
    assert found.code == 0, found.out + found.err
