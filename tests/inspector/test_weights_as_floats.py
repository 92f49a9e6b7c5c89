"""Weights of 4 bits that XNNPACK holds as floats are reported, and no others."""

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
FLOATS = 4 * (64 * 128 + 128 * 96 + 96 * 32)
XNNPACK = ("--partitioner", "xnnpack")


@pytest.mark.parametrize(
    ("words", "layers"),
    [
        ((*XNNPACK, "--quantize", "4w:group=32"), "3 linear layers are"),
        ((*XNNPACK, "--quantize", "8da4w:group=32", "--quantize-module", "0=4w"), "a linear layer"),
        ((*XNNPACK, "--quantize", "8da4w:group=32"), ""),
        ((*XNNPACK, "--quantize", "int8"), ""),
        ((*XNNPACK, "--quantize", "4w", "--deny-op", "aten.linear.default"), ""),
        (("--quantize", "4w:group=32"), ""),
    ],
    ids=["all", "one", "dynamic", "bytes", "denied", "portable"],
)
def test_weights_that_become_floats_are_counted(
    words: tuple[str, ...], layers: str, tmp_path: Path
) -> None:
    (tmp_path / "net.py").write_text(NET)
    source, out = f"{tmp_path / 'net.py'}:build", tmp_path / "out"
    found = run("compile", source, *words, "-o", str(out))
    assert found.code == 0, found.err
    told = found.out + found.err
    assert (f"the weights of 4 bits of {layers}" in told) if layers else ("as floats" not in told)
    size = (out / "model.pte").stat().st_size
    assert (size > FLOATS) is (layers == "3 linear layers are")
