"""Quantized weights that XNNPACK holds as floats are reported, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.inspector.cli_runs import run

pytestmark = pytest.mark.slow
NET = """
import torch
from torch import nn


def build():
    torch.manual_seed(0)
    layers = nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 96), nn.ReLU(), nn.Linear(96, 32)
    return nn.Sequential(*layers), (torch.randn(3, 64),)
"""
TABLE = """

class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.layer = nn.Embedding(50, 64), nn.Linear(64, 96)

    def forward(self, tokens):
        return self.layer(self.table(tokens))


def rows():
    torch.manual_seed(0)
    return Rows(), (torch.zeros(1, 3, dtype=torch.int64),)
"""
FLOATS = 4 * (64 * 128 + 128 * 96 + 96 * 32)
XNNPACK = ("--partitioner", "xnnpack")


@pytest.mark.parametrize(
    ("words", "layers"),
    [
        ((*XNNPACK, "--quantize", "4w:group=32"), "3 linear layers are"),
        ((*XNNPACK, "--quantize", "8da4w:group=32", "--quantize-module", "0=4w"), "a linear layer"),
        ((*XNNPACK, "--quantize", "8da4w:group=32"), ""),
        ((*XNNPACK, "--quantize", "int8"), ""),
        ((*XNNPACK, "--quantize", "8da8w"), ""),
        ((*XNNPACK, "--quantize", "int8:group=32"), "3 linear layers are"),
        ((*XNNPACK, "--quantize", "8da8w:group=32"), "3 linear layers are"),
        ((*XNNPACK, "--quantize", "4w", "--deny-op", "aten.linear.default"), ""),
        (("--quantize", "4w:group=32"), ""),
    ],
    ids=[
        "all",
        "one",
        "dynamic",
        "bytes",
        "dynamic bytes",
        "bytes in groups",
        "dynamic bytes in groups",
        "denied",
        "portable",
    ],
)
def test_weights_that_become_floats_are_counted(
    words: tuple[str, ...], layers: str, tmp_path: Path
) -> None:
    (tmp_path / "net.py").write_text(NET)
    source, out = f"{tmp_path / 'net.py'}:build", tmp_path / "out"
    found = run("compile", source, *words, "-o", str(out))
    assert found.code == 0, found.err
    told = found.out + found.err
    assert (f"the quantized weights of {layers}" in told) if layers else ("as floats" not in told)
    size = (out / "model.pte").stat().st_size
    assert (size > FLOATS) is (layers == "3 linear layers are")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--quantize", "8da4w:group=32", "--quantize-embedding", "4:group=32"), False),
        (("--quantize-embedding", "4:group=32"), False),
        (("--quantize", "4w:group=32", "--quantize-embedding", "4:group=32"), True),
    ],
)
def test_a_table_of_embeddings_is_no_layer(
    words: tuple[str, ...], told: bool, tmp_path: Path
) -> None:
    (tmp_path / "net.py").write_text(NET + TABLE)
    out = str(tmp_path / "out")
    found = run("compile", f"{tmp_path / 'net.py'}:rows", *XNNPACK, *words, "-o", out)
    assert found.code == 0, found.err
    assert ("of a linear layer is in the file as floats" in found.out + found.err) is told


BRANCHES = """

class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.top, self.one = nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda y: self.one(y), lambda y: y + 1, (self.top(x),))


def branches():
    return Branches().eval().requires_grad_(False), (torch.randn(2, 32),)
"""


def test_layers_in_branches_are_named_by_a_compile(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NET + BRANCHES)
    source, out = str(tmp_path / "net.py:branches"), ("-o", str(tmp_path / "out"))
    found = run("compile", source, "--quantize", "int8", *out)
    assert found.code == 0, found.err
    words = "forward: the weights of a linear layer in branches or loops stay floats: one"
    assert words in found.out + found.err
