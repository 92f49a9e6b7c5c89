"""A vendor's quantizer in another interpreter gives the program that it gives here."""

from __future__ import annotations

import sys

import pytest
import torch

from compiler.named import parse_named
from compiler.quantize.program import named_quantizer, quantize_program
from inspector.recipes.compile_job import Quantization
from inspector.toolchain.child import ToolchainError
from inspector.worker.backend_python import QuantizerElsewhere, close_interpreters
from inspector.worker.exporter import AnswerError, Exported
from inspector.worker.quantize import quantize_source
from tests.architecture.tree import run_python

pytestmark = [
    pytest.mark.slow,
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore"),  # of the package, about itself
]
WORDS = "vulkan"


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.head(x))


def test_program_quantized_elsewhere_computes_what_one_quantized_here_does() -> None:
    # In a process of its own: the package declares a namespace that other tests declare, too.
    run_python(f"import {__name__} as tests; tests.compare()", warnings="ignore")


def compare() -> None:
    """Quantize a program here and elsewhere."""
    torch.manual_seed(0)
    inputs = (torch.randn(2, 8),)
    program = torch.export.export(Net().eval(), inputs)
    here = quantize_program(program, named_quantizer(WORDS))
    try:
        elsewhere = QuantizerElsewhere(sys.executable, parse_named(WORDS, "mode"))
        for calls in (None, [inputs]):
            found = elsewhere.quantized(program, calls)
            torch.testing.assert_close(found.module()(*inputs), here.module()(*inputs))
            targets = [str(node.target) for node in found.graph.nodes]
            assert any("quantized_decomposed" in one for one in targets)
        bad = QuantizerElsewhere(sys.executable, parse_named("vulkan:nix=1", "mode"))
        with pytest.raises(ToolchainError, match="nix"):
            bad.quantized(program, None)
    finally:
        close_interpreters()


def test_environment_that_is_missing_is_named_before_anything_is_quantized() -> None:
    program = torch.export.export(Net().eval(), (torch.randn(2, 8),))
    with pytest.raises(AnswerError, match="no environment 'nowhere'"):
        quantize_source(
            Quantization(quantizer=WORDS), Exported({"forward": program}, {}), _ignore, "nowhere"
        )


def _ignore(*_content: object, **_more: object) -> None:
    """Ignore messages."""
