"""The recipes of XNNPACK: each type, its numbers beside the stock recipe's, and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from compiler.compat.session import (
    ExportRecipe,
    LoweringRecipe,
    QuantizationRecipe,
    recipe_registry,
)
from compiler.compat.xnnpack.recipes import XNNPACKRecipeProvider, XNNPackRecipeType
from inspector.compat.export_session import export
from tests.compiler.stock import Stock


class Layers(torch.nn.Module):
    """Two linear layers with 64 inputs, which groups of 32 and 64 divide."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(64, 64)
        self.second = torch.nn.Linear(64, 16, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


class Image(torch.nn.Module):
    """Convolutions, a sum and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.second = torch.nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.last = torch.nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x))
        x = x + self.second(x)
        return self.last(x.mean((2, 3)))


_MODULES = {"layers": (Layers, (4, 64)), "image": (Image, (1, 3, 8, 8))}
# One module a type: quantizing by torchao's PT2E takes half a minute a model, on either side.
_CASES = [
    *(
        (kind.name, "image" if "STATIC" in kind.name else "layers", {})
        for kind in XNNPackRecipeType
    ),
    ("TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_TENSOR", "layers", {"group_size": 64}),
]


def _case(name: str) -> tuple[torch.nn.Module, list[tuple[torch.Tensor, ...]]]:
    torch.manual_seed(11)
    kind, shape = _MODULES[name]
    return kind().eval(), [(torch.randn(shape),) for _ in range(3)]


@pytest.mark.interop
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("kind", "name", "options"), _CASES)
def test_recipe_gives_the_numbers_of_the_stock_recipe(
    kind: str, name: str, options: dict[str, Any], stock: Stock, tmp_path: Path
) -> None:
    module, inputs = _case(name)
    given, outputs = tmp_path / "given.pt", tmp_path / "outputs.pt"
    torch.save((module, inputs), given)
    answer = stock.ask("recipe", given=str(given), kind=kind, options=options, outputs=str(outputs))
    assert "error" not in answer, answer["error"]
    session = export(module, inputs, ExportRecipe.get_recipe(XNNPackRecipeType[kind], **options))
    graph = session.get_edge_program_manager().exported_program().graph
    calls = [node for node in graph.nodes if "executorch_call_delegate" in str(node.target)]
    assert calls
    assert len(calls) <= sum("executorch_call_delegate" in one for one in answer["operators"])
    for one, expected in zip(inputs, torch.load(outputs), strict=True):
        eager = module(*one).detach()
        (found,) = session.run_method("forward", list(one))
        step = 0.02 * float(eager.abs().max())  # of an 8 bit output, rounded either way
        torch.testing.assert_close(found, expected[0], rtol=0, atol=step)
        assert float((found - eager).abs().max()) <= max(
            2 * float((expected[0] - eager).abs().max()), 1e-5
        )


def test_provider_offers_six_types_and_names_unknown_options() -> None:
    provider = XNNPACKRecipeProvider()
    assert len(provider.get_supported_recipes()) == 6
    assert "xnnpack" in recipe_registry.list_backends()
    with pytest.warns(UserWarning, match="ignores size: supported: no parameters"):
        made = provider.create_recipe(XNNPackRecipeType.FP32, size=3)
    assert made is not None
    assert made.quantization_recipe is None
    grouped = XNNPackRecipeType.TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_TENSOR
    with pytest.raises(ValueError, match="'group_size' must be an integer, got str: 32"):
        provider.create_recipe(grouped, group_size="32")
    with pytest.warns(UserWarning, match="ignores axis: supported: 'group_size'"):
        provider.create_recipe(grouped, axis=1)


def _chosen(**options: Any) -> ExportRecipe:
    return ExportRecipe("a", quantization_recipe=QuantizationRecipe(**options))


def test_combined_calibrations_are_chained() -> None:
    one = _chosen(quantizers=["q"], calibration_inputs_fn=lambda: [(1,), (2,)])
    two = _chosen(dynamic_batch_size=True, calibration_inputs_fn=lambda: [(3,)])
    made = ExportRecipe.combine([one, two]).quantization_recipe
    assert made is not None
    assert made.dynamic_batch_size
    assert made.calibration_inputs_fn is not None
    assert [*made.calibration_inputs_fn()] == [(1,), (2,), (3,)]
    assert [*made.calibration_inputs_fn()] == [(1,), (2,), (3,)]


def test_combined_recipe_without_parts_has_none() -> None:
    made = ExportRecipe.combine([_chosen(), ExportRecipe("b", lowering_recipe=LoweringRecipe())])
    assert made.quantization_recipe is None
    assert made.lowering_recipe is None


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ({"strict": True}, {"strict": False}, "conflicting 'strict' values: True, False"),
        ({"pipeline_stages": []}, {}, "conflicting 'pipeline_stages'"),
        ({"source_transform_in_place": True}, {}, "conflicting 'source_transform_in_place'"),
    ],
)
def test_combined_settings_have_to_agree(
    one: dict[str, Any], two: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ValueError, match=expected):
        ExportRecipe.combine([ExportRecipe(**one), ExportRecipe(**two)])
