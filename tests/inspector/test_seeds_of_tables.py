"""Programs that differ in their seed alone belong to their own records, however they are packed."""

from __future__ import annotations

from pathlib import Path

import pytest

from schema.program import decode
from tests.inspector.cli_runs import run

pytestmark = pytest.mark.slow

SOURCE = """
import torch
from torch import nn


class Words(nn.Module):
    # without biases and norms, whose floats tell one seed from another

    def __init__(self, layers):
        super().__init__()
        self.table = nn.Embedding(100, 64)
        self.layers = nn.ModuleList(nn.Linear(64, 64, bias=False) for _ in range(layers))

    def forward(self, tokens):
        x = self.table(tokens)
        for layer in self.layers:
            x = layer(x).relu()
        return x.relu()


def made(seed, layers):
    torch.manual_seed(seed)
    return Words(layers).eval(), (torch.zeros(1, 3, dtype=torch.long),)


def table():
    return made(0, 0)


def other_table():
    return made(1, 0)


def words():
    return made(0, 2)


def other_words():
    return made(1, 2)
"""
CASES = {
    "table_8": ("table", ("--quantize-embedding", "8")),
    "table_4": ("table", ("--quantize-embedding", "4")),
    "table_4_groups": ("table", ("--quantize-embedding", "4:group=32")),
    "table_2": ("table", ("--quantize-embedding", "2")),
    "layers_8": ("words", ("--quantize", "int8", "--quantize-embedding", "8")),
    "layers_4": ("words", ("--quantize", "4w", "--quantize-embedding", "4")),
    "delegated": (
        "words",
        ("--quantize", "8da4w", "--quantize-embedding", "4", "--partitioner", "xnnpack"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_only_the_record_of_its_seed_belongs_to_a_program(name: str, tmp_path: Path) -> None:
    source = tmp_path / "model.py"
    source.write_text(SOURCE)
    function, words = CASES[name]
    own, other = tmp_path / "own", tmp_path / "other"
    for folder, built in ((own, function), (other, f"other_{function}")):
        answer = run("compile", f"{source}:{built}", *words, "-o", folder)
        assert answer.code == 0, answer.err
    assert run("check", own / "model.pte", own / "model.etrecord").code == 0
    found = run("check", own / "model.pte", other / "model.etrecord")
    assert found.code == 1
    assert "in the program differ from the record" in found.out


def _operators(folder: Path) -> set[str]:
    plans = decode((folder / "model.pte").read_bytes()).plans
    return {operator.name for plan in plans for operator in plan.operators}


@pytest.mark.parametrize("bits", ["8", "4", "2"])
def test_tables_are_looked_up_as_they_are_stored(bits: str, tmp_path: Path) -> None:
    """Without a setting: a program that computes the whole table in each call is of no use."""
    source, out = tmp_path / "model.py", tmp_path / "out"
    source.write_text(SOURCE)
    words = ("--quantize-embedding", bits)
    assert run("compile", f"{source}:table", *words, "-o", out).code == 0
    kernel = {"8": "embedding_byte", "4": "embedding_4bit", "2": "embedding_2bit"}[bits]
    assert _operators(out) == {f"quantized_decomposed::{kernel}", "aten::relu"}
    assert (out / "model.pte").stat().st_size < 100 * 64 * int(bits) // 8 + 3000
    off = ("--backend-config", "do_quant_fusion_and_const_prop=false")
    assert run("compile", f"{source}:table", *words, *off, "-o", tmp_path / "off").code == 0
    assert "aten::mul" in _operators(tmp_path / "off")
