"""Quantization of a module with the quantizers of a recipe, by torchao."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Sequence
from typing import Any

import torch

from compiler.compat.session.recipe import GraphEdit, QuantizationRecipe
from compiler.frontend import export, forget_traces


def quantized(
    model: torch.nn.Module, recipe: QuantizationRecipe, examples: Sequence[tuple[Any, ...]]
) -> Any:  # noqa: ANN401 - a graph module
    """Return a graph quantized by the recipe's quantizers; the module is not changed.

    Args:
        model: an eager module
        recipe: with at least one quantizer
        examples: inputs; the first is traced with, all calibrate unless the recipe has others

    Raises:
        ModuleNotFoundError: torchao is not installed
        ValueError: training is asked for without a function that trains
    """
    pt2e: Any = importlib.import_module("torchao.quantization.pt2e")
    steps: Any = importlib.import_module("torchao.quantization.pt2e.quantize_pt2e")
    graph = _edited(_traced(model, recipe, examples[0]), recipe.pre_prepare_passes)
    prepare = steps.prepare_qat_pt2e if recipe.is_qat else steps.prepare_pt2e
    prepared = _edited(prepare(graph, _quantizer(recipe)), recipe.post_prepare_passes)
    if recipe.is_qat:
        _trained(prepared, recipe, pt2e)
    else:
        own = recipe.calibration_inputs_fn
        for inputs in examples if own is None else own():
            prepared(*inputs)
    prepared = _edited(prepared, recipe.pre_convert_passes)
    return _edited(steps.convert_pt2e(prepared), recipe.post_convert_passes)


def _traced(model: torch.nn.Module, recipe: QuantizationRecipe, inputs: tuple[Any, ...]) -> Any:  # noqa: ANN401
    shapes: Any = None
    if recipe.dynamic_batch_size:
        batch = torch.export.Dim("batch", min=1)
        shapes = tuple({0: batch} if isinstance(t, torch.Tensor) else None for t in inputs)
    if recipe.is_qat:  # what is to be trained is traced in training mode
        model = copy.deepcopy(model).train()
        forget_traces()
        return torch.export.export(model, inputs, dynamic_shapes=shapes, strict=True).module()
    return export(model, inputs, dynamic_shapes=shapes, strict=True).module()


def _trained(prepared: Any, recipe: QuantizationRecipe, pt2e: Any) -> None:  # noqa: ANN401
    if recipe.train_fn is None:
        raise ValueError("train_fn must be provided when is_qat=True")
    pt2e.allow_exported_model_train_eval(prepared)
    pt2e.move_exported_model_to_train(prepared)
    recipe.train_fn(prepared)
    pt2e.move_exported_model_to_eval(prepared)


def _quantizer(recipe: QuantizationRecipe) -> Any:  # noqa: ANN401
    quantizers = recipe.quantizers or []
    if len(quantizers) == 1:
        return quantizers[0]
    home: Any = importlib.import_module("torchao.quantization.pt2e.quantizer")
    return home.ComposableQuantizer(quantizers)


def _edited(graph: Any, passes: Sequence[GraphEdit] | None) -> Any:  # noqa: ANN401
    for one in passes or ():
        try:
            graph = one(graph)
        except Exception as error:
            raise RuntimeError(f"quantize: the pass {one!r} raised an error: {error}") from error
    return graph
