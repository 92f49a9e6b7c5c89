"""A quantizer that takes nothing of a program is a warning, not a silent float program."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from inspector.recipes.compile_job import Quantization
from inspector.worker.exporter import Exported
from inspector.worker.quantize import quantize_source


class Waves(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x)


@pytest.mark.parametrize(("net", "warned"), [(Waves(), True), (torch.nn.Linear(8, 8), False)])
def test_program_that_stays_real_is_a_warning(net: torch.nn.Module, warned: bool) -> None:
    program = torch.export.export(net.eval(), (torch.rand(8, 8),))
    texts: list[str] = []

    def notify(kind: str, **more: Any) -> None:
        if kind == "warning":
            texts.append(more["text"])

    quantize_source(Quantization(mode="static"), Exported({"forward": program}, {}), notify)
    assert [text for text in texts if "quantized nothing" in text] == texts
    assert bool(texts) == warned
