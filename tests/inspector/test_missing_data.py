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


_OTHER = """
import torch

class Named(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))
    def forward(self, x):
        return x * self.weight

def model():
    return Named({width}).eval(), (torch.ones(2, {width}),)
"""


def _compiled(folder: Path, width: int) -> Path:
    """Return a folder with a program, its bundle and its data, of one weight of a width."""
    folder.mkdir()
    (folder / "model.py").write_text(_OTHER.replace("{width}", str(width)))
    out, source = folder / "out", f"{folder / 'model.py'}:model"
    assert run("compile", source, "--external-constants", "-o", str(out)).code == 0
    cases = ("--module", source, "-o", str(out / "model.bpte"))
    assert run("bundle", str(out / "model.pte"), *cases).code == 0
    return out


@pytest.mark.parametrize("verb", ["run", "verify", "measure"])
@pytest.mark.parametrize("other", ["other keys", "other sizes", "damaged", "other compile"])
def test_data_of_another_program_is_not_named(
    folder: Path, tmp_path: Path, verb: str, other: str
) -> None:
    program = _compiled(tmp_path / "own", 4)
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("model.pte", "model.bpte"):
        (program / name).rename(moved / name)
    data = moved / _DATA
    if other == "other keys":
        data.write_bytes((folder / _DATA).read_bytes())
    elif other == "other sizes":  # the key of the program's own weight
        data.write_bytes((_compiled(tmp_path / "wide", 5) / _DATA).read_bytes())
    elif other == "damaged":
        data.write_bytes(b"0" * 200)
    else:  # a report of a compile whose data is gone
        (moved / "compile.json").write_bytes((folder / "compile.json").read_bytes())
    found = run(*_verbs(moved)[verb])
    said = found.out + found.err
    assert found.code
    assert "beside the program is" not in said
    assert "of the compile is missing" not in said
    assert "the .ptd file that was saved beside it" in said
    (program / _DATA).rename(moved / "mine.ptd")  # and its own one still is
    found = run(*_verbs(moved)[verb])
    assert found.code
    told = f"mine.ptd beside the program is not loaded: --ptd {moved / 'mine.ptd'}"
    assert told in found.out + found.err
