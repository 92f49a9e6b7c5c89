"""One word for the same layer of every block: wildcards in the paths of modules."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn

from compiler.quantize.patterns import expand_modules
from compiler.quantize.program import QuantizationModes, QuantizeError, quantize_program
from compiler.quantize.weights import WeightModes, quantize_weights

WIDTH = 32
PATHS = ("layers", *(f"layers.{n}{end}" for n in (0, 10) for end in ("", ".attn", ".attn.wq")))


class _Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wq, self.wo = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return as many numbers as it takes."""
        return self.wo(self.wq(x))


class _Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn, self.mlp = _Attention(), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return as many numbers as it takes."""
        return self.mlp(self.attn(x).relu())


class _Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_Block() for _ in range(2))
        self.head = nn.Linear(WIDTH, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return 5 numbers of each row."""
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"layers.*": "a"}, {"layers.0": "a", "layers.10": "a"}),
        ({"layers.*.attn": "a"}, {"layers.0.attn": "a", "layers.10.attn": "a"}),
        ({"layers.1*.*.w*": "a"}, {"layers.10.attn.wq": "a"}),
        (
            {"layers.*.attn": "a", "layers.0.attn": "b"},
            {"layers.0.attn": "b", "layers.10.attn": "a"},
        ),
        ({"*.10": "b", "*.*": "a"}, {"layers.0": "a", "layers.10": "b"}),
        ({"layers.?.attn": "a", "*.nowhere": "b"}, {"layers.?.attn": "a", "*.nowhere": "b"}),
    ],
)
def test_a_star_is_any_letters_of_one_name(given: dict[str, str], wanted: dict[str, str]) -> None:
    assert expand_modules(given, PATHS) == wanted


def _program() -> torch.export.ExportedProgram:
    return torch.export.export(_Net().eval(), (torch.randn(3, WIDTH),))


def _quantized(how: WeightModes | QuantizationModes) -> int:
    """Return how many linear layers have quantized weights."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchao's, about itself
        if isinstance(how, WeightModes):
            program = quantize_weights(_program(), how)
        else:
            program = quantize_program(_program(), how)
    layers = [n for n in program.graph.nodes if n.target is torch.ops.aten.linear.default]
    assert len(layers) == 7
    return sum("dequantize" in str(node.args[1].target) for node in layers)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [WeightModes, QuantizationModes])
@pytest.mark.parametrize(
    ("modules", "count"),
    [
        ({"layers.*.attn": True}, 4),
        ({"layers.*.mlp": True}, 2),
        ({"layers.*.attn.wq": True, "layers.1": True}, 4),
        ({"head": True, "layers.*": True, "layers.*.attn": False}, 3),
        ({"layers.*": True, "layers.0": False}, 3),
    ],
)
def test_wildcards_choose_the_layers_of_every_block(
    kind: Any, modules: dict[str, bool], count: int
) -> None:
    word = "int8" if kind is WeightModes else "weight-only"
    words = {path: word if chosen else "none" for path, chosen in modules.items()}
    assert _quantized(kind("none", modules=words)) == count


@pytest.mark.slow
@pytest.mark.parametrize("kind", [WeightModes, QuantizationModes])
def test_a_wildcard_without_a_module_is_refused_with_those_there_are(kind: Any) -> None:
    word = "int8" if kind is WeightModes else "weight-only"
    with pytest.raises(
        QuantizeError, match=r"quantization\.modules\.blocks\.\*\.attn: .*available: layers"
    ):
        _quantized(kind("none", modules={"blocks.*.attn": word}))
