"""Weights that were folded before a vendor's compiler took them are in its payload."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from inspector.recipes.compile_job import CompileJob
from inspector.recipes.source import Source
from inspector.worker import backend_python
from inspector.worker.compile_job import compile_into
from runtime import Runtime

pytestmark = [pytest.mark.slow, pytest.mark.interop]
NETS = """
import torch


class Gated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.gate = torch.nn.Linear(4, 4), torch.nn.Parameter(torch.tensor([0.3]))

    def forward(self, x):
        return x + torch.tanh(self.gate) * self.layer(x)


class Biased(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(7, 4)
        self.register_buffer("places", torch.arange(3) + 1)

    def forward(self, x):
        return x + self.table(self.places).sum(0)


class Periodic(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(4))

    def forward(self, x):
        return x + 1 / (self.scale.exp() + 1e-6) * torch.sin(x)


def build():
    torch.manual_seed(0)
    return {NAME}().eval(), (torch.linspace(-1, 1, 8).reshape(2, 4),)
"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("vendor", ["native", "vulkan"])
@pytest.mark.parametrize("name", ["Gated", "Biased", "Periodic"])
def test_folded_weights_have_their_values(tmp_path: Path, name: str, vendor: str) -> None:
    path, text = tmp_path / "net.py", NETS.replace("{NAME}", name)
    path.write_text(text)
    folder = tmp_path / "out"
    folder.mkdir()
    job = CompileJob(
        Source(str(path), "build"), partitioners=(vendor,), backend_python=sys.executable
    )
    try:
        compile_into(job, folder, lambda _kind, **_content: None)
    finally:
        backend_python.close_interpreters()
    names: dict[str, Any] = {}
    exec(text, names)
    module, inputs = names["build"]()
    method = Runtime().load_program(folder / "model.pte").load_method("forward")
    torch.testing.assert_close(method.execute(list(inputs))[0], module(*inputs))
