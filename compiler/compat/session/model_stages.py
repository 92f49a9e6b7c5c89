"""The stages before lowering: quantization of modules and graphs, and export."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from typing_extensions import override

from compiler.compat.session.recipe import GraphEdit, QuantizationRecipe, StageType
from compiler.compat.session.stage import KnownStage, PipelineArtifact
from compiler.frontend import export, forget_traces
from compiler.quantize.program import quantize_graph

ProgramPasses = Callable[[str, Any], Any]
_S = StageType


class SourceTransformStage(KnownStage):
    """Quantizes the modules themselves, before they are exported."""

    kind = _S.SOURCE_TRANSFORM

    def __init__(
        self, quantization_recipe: QuantizationRecipe | None, in_place: bool = False
    ) -> None:
        """Store the recipe; in place changes the given modules instead of copies."""
        super().__init__()
        self._quantization_recipe = quantization_recipe
        self._in_place = in_place

    @override
    def run(self, artifact: PipelineArtifact) -> None:
        """Quantize each module; return the artifact unchanged without a configuration.

        Raises: ValueError for more than one configuration
        """
        recipe = self._quantization_recipe
        self._artifact = artifact
        if recipe is None or not recipe.ao_quantization_configs:
            return
        if len(recipe.ao_quantization_configs) > 1:
            raise ValueError("AO quantization configs cannot be composed: pass one")
        config = recipe.ao_quantization_configs[0]
        models = artifact.data if self._in_place else copy.deepcopy(artifact.data)
        for model in models.values():
            self.functions.quantize_(model, config.ao_base_config, config.filter_fn)
            self._unwrap(model)
        self._artifact = artifact.copy_with_new_data(models)

    def _unwrap(self, model: torch.nn.Module) -> None:
        """Do nothing: torch.export supports tensor subclasses."""


class QuantizeStage(KnownStage):
    """Quantizes exported graphs with quantizers, after calibration or training."""

    kind = _S.QUANTIZE
    after = (_S.SOURCE_TRANSFORM,)

    def __init__(self, quantization_recipe: QuantizationRecipe | None) -> None:
        """Store the recipe."""
        super().__init__()
        self._quantization_recipe = quantization_recipe

    @override
    def run(self, artifact: PipelineArtifact) -> None:
        """Quantize each module; return the artifact unchanged without quantizers.

        Raises:
            ValueError: a method without example inputs, or training without `train_fn`
            RuntimeError: a pass of the recipe failed
        """
        recipe = self._quantization_recipe
        self._artifact = artifact
        if recipe is None or not recipe.quantizers:
            return
        examples = artifact.get_context("example_inputs")
        quantized: dict[str, Any] = {}
        for name, model in artifact.data.items():
            if not examples.get(name):
                raise ValueError(f"Example inputs for method {name} not found or empty.")
            quantized[name] = self._quantized(model, recipe, list(examples[name]))
        self._artifact = artifact.copy_with_new_data(quantized)

    def _quantized(
        self, model: torch.nn.Module, recipe: QuantizationRecipe, examples: Sequence[Any]
    ) -> Any:  # noqa: ANN401 - a graph module
        shapes = _batch_shapes(examples[0]) if recipe.dynamic_batch_size else None
        graph = self._traced(model, examples[0], shapes, is_qat=recipe.is_qat)
        graph = self._apply_passes(graph, recipe.pre_prepare_passes)
        quantizer = self._get_quantizer_for_prepare_pt2e(recipe.quantizers or [])
        if recipe.is_qat and recipe.train_fn is None:
            raise ValueError("train_fn must be provided when is_qat=True")

        def observed(prepared: Any) -> Any:  # noqa: ANN401
            prepared = self._apply_passes(prepared, recipe.post_prepare_passes)
            own = recipe.calibration_inputs_fn
            self._observe(prepared, recipe, examples if own is None else own())
            return self._apply_passes(prepared, recipe.pre_convert_passes)

        call = self.functions
        prepare = call.prepare_qat_pt2e if recipe.is_qat else call.prepare_pt2e
        converted = quantize_graph(graph, quantizer, observed, prepare, call.convert_pt2e)
        return self._apply_passes(converted, recipe.post_convert_passes)

    def _traced(
        self, model: torch.nn.Module, inputs: tuple[Any, ...], shapes: object, *, is_qat: bool
    ) -> Any:  # noqa: ANN401 - a graph module
        """Return the graph of a module, which is not changed."""
        if not is_qat:
            return export(model, inputs, dynamic_shapes=shapes, strict=True).module()
        forget_traces()
        # quantization-aware training traces in training mode
        training = copy.deepcopy(model).train()
        run: Any = torch.export.export
        return run(training, inputs, dynamic_shapes=shapes, strict=True).module()

    def _observe(
        self,
        prepared: Any,  # noqa: ANN401 - a graph module
        recipe: QuantizationRecipe,
        inputs: Iterable[tuple[Any, ...]],
    ) -> None:
        """Train or calibrate a prepared graph."""
        if not recipe.is_qat:
            for one in inputs:
                prepared(*one)
            return
        assert recipe.train_fn is not None
        self.functions.allow_exported_model_train_eval(prepared)
        self.functions.move_exported_model_to_train(prepared)
        recipe.train_fn(prepared)
        self.functions.move_exported_model_to_eval(prepared)

    def _get_quantizer_for_prepare_pt2e(self, quantizers: Sequence[Any]) -> Any:  # noqa: ANN401
        one = len(quantizers) == 1
        return quantizers[0] if one else self.functions.ComposableQuantizer(quantizers)

    @staticmethod
    def _apply_passes(model: Any, passes: Sequence[GraphEdit] | None) -> Any:  # noqa: ANN401
        for one in passes or ():
            try:
                model = one(model)
            except Exception as error:
                raise RuntimeError(f"QuantizeStage: Pass '{one!r}' raised an error: {error}") from (
                    error
                )
        return model


def _batch_shapes(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    batch = torch.export.Dim("batch", min=1)
    return tuple({0: batch} if isinstance(one, torch.Tensor) else None for one in inputs)


class TorchExportStage(KnownStage):
    """Exports each module."""

    kind = _S.TORCH_EXPORT
    after = (_S.SOURCE_TRANSFORM, _S.QUANTIZE)

    def __init__(
        self, aten_transform_passes: list[ProgramPasses] | None = None, strict: bool = True
    ) -> None:
        """Store functions that transform the exported programs, and whether to export strictly."""
        super().__init__()
        self._aten_transform_passes = aten_transform_passes
        self.strict = strict

    @override
    def run(self, artifact: PipelineArtifact) -> None:
        """Export each module with the first of its example inputs.

        Raises: ValueError without example inputs, or for a pass that cannot be called
        """
        examples = artifact.get_context("example_inputs")
        shapes = artifact.get_context("dynamic_shapes", {})
        programs: dict[str, Any] = {}
        for name, model in artifact.data.items():
            if not examples.get(name):
                raise ValueError(f"Example inputs for method {name} not found.")
            with torch.no_grad():
                program = self._exported(model, examples[name][0], shapes.get(name))
            for one in self._aten_transform_passes or ():
                if not callable(one):
                    raise ValueError(  # noqa: TRY004 - as documented
                        "Aten transform passes must be a callable that can transform and return "
                        "an exported program"
                    )
                program = one(name, program)
            programs[name] = program
        self._artifact = artifact.copy_with_new_data(programs)

    def _exported(self, model: Any, inputs: tuple[Any, ...], shapes: Any) -> Any:  # noqa: ANN401
        return export(model, inputs, dynamic_shapes=shapes, strict=self.strict)
