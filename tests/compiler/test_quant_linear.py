"""Linear layers over quantized weights: as small in the file as they are quantized."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn

import compiler.passes.standard.quant_embedding as quant_embedding
from compiler import ExecutorchBackendConfig, to_edge
from compiler.quantize.weights import WeightModes, quantize_weights
from runtime import Runtime
from schema import program as pte
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow
TORCH_OPERATORS = quant_embedding  # importing it registers torch's operators
_FUSING = ExecutorchBackendConfig(do_quant_fusion_and_const_prop=True)
INPUTS, HIDDEN = 64, 96


class _Net(nn.Module):
    """Layers with and without a bias, one that two places use, and a product of activations."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(INPUTS, HIDDEN)
        self.second = nn.Linear(HIDDEN, INPUTS, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return both layers twice, and a product of their results."""
        found = self.second(self.first(x).relu())
        again = self.second(self.first(found).relu())
        return torch.matmul(found, again.transpose(-1, -2))


# bits per weight in the file, by word; scales come on top
WORDS = {"4w": 4, "4w:group=16": 4, "int8": 8, "int8:group=32": 8, "8da4w": 4, "8da8w": 8}
RANKS = {"matrix": (5, INPUTS), "batch": (2, 3, INPUTS)}


def _program(word: str, rank: str) -> tuple[torch.export.ExportedProgram, torch.Tensor]:
    torch.manual_seed(1)
    x = torch.randn(RANKS[rank])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchao's, about itself
        exported = torch.export.export(_Net().eval(), (x,))
        return quantize_weights(exported, WeightModes(word)), x


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("word", WORDS)
def test_weights_take_their_bits_in_the_file(word: str, rank: str) -> None:
    exported, x = _program(word, rank)
    buffer = to_edge(exported).to_executorch(_FUSING).buffer
    scales = 4 * (2 * INPUTS * HIDDEN // _group(word))
    places = 8 * (INPUTS + HIDDEN) if WORDS[word] < 8 else 0
    most = 2 * INPUTS * HIDDEN * WORDS[word] // 8 + scales + places
    assert _constants(buffer) <= most + 4 * HIDDEN + 256
    (found,) = Runtime.get().load_program(buffer).load_method("forward").execute([x])
    wanted = exported.module()(x)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    names = {op.name for op in pte.decode(buffer).plans[0].operators}
    kernel = "mixed_linear" if WORDS[word] == 8 else "embedding_4bit"
    assert f"quantized_decomposed::{kernel}" in names


def _group(word: str) -> int:
    _, _, group = word.partition("=")
    return int(group) if group else (32 if "4w" in word else INPUTS)


def _constants(buffer: bytes) -> int:
    table = pte.decode(buffer).table
    place = table.constant_segment
    return 0 if place is None else (table.segments or ())[place.segment_index].size


@pytest.mark.interop
def test_the_stock_kernels_give_the_same_numbers(stock: Stock) -> None:
    cases = [(word, rank) for word in WORDS for rank in RANKS]
    made = [_program(word, rank) for word, rank in cases]
    programs: list[tuple[bytes, Any]] = [
        (to_edge(exported).to_executorch(_FUSING).buffer, (x,)) for exported, x in made
    ]
    for case, (exported, x), found in zip(cases, made, stock.run_each(programs), strict=True):
        assert not isinstance(found, str), (case, found)
        torch.testing.assert_close(found[0], exported.module()(x), rtol=1e-4, atol=1e-4)


def test_a_matrix_that_other_operators_read_stays_as_it_was() -> None:
    class Shown(nn.Module):
        """Returns the transposed weight too."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("rows", torch.randint(-8, 8, (HIDDEN, INPUTS)).to(torch.int8))
            self.register_buffer("scales", torch.rand(HIDDEN) + 0.1)
            self.register_buffer("zeros", torch.randint(0, 3, (HIDDEN,)))

        def forward(self, x: torch.Tensor) -> Any:
            weight = torch.ops.quantized_decomposed.dequantize_per_channel(
                self.rows, self.scales, self.zeros, 0, -128, 127, torch.int8
            )
            turned = weight.permute(1, 0)
            return torch.mm(x, turned), turned * 2

    x = torch.randn(5, INPUTS)
    exported = torch.export.export(Shown().eval(), (x,))
    buffer = to_edge(exported).to_executorch(_FUSING).buffer
    found = Runtime.get().load_program(buffer).load_method("forward").execute([x])
    for one, other in zip(found, exported.module()(x), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    assert "quantized_decomposed::embedding_4bit" not in {
        op.name for op in pte.decode(buffer).plans[0].operators
    }


def test_a_language_model_without_a_backend_keeps_four_bits() -> None:
    from dataclasses import replace

    from compiler.llm.export import export_llm
    from tests.llm.configs import CACHE, config

    plain = config("llama3", CACHE)
    sizes: dict[str, int] = {}
    for word in (None, "int8", "4w"):
        quantization = replace(plain.quantization, qmode=word)
        sizes[str(word)] = _constants(export_llm(replace(plain, quantization=quantization)).buffer)
    table = 96 * 64 * 4
    linear = sizes["None"] - table
    assert sizes["int8"] - table < linear / 3
    assert sizes["4w"] - table < linear / 4
