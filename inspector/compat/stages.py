"""The stages of a session as classes of their own, as `executorch.export.stages` documents them.

`ExportSession` makes its stages from the recipe (compiler.compat.session.stages). These are for
programs that build a pipeline by hand or register a stage:
`session.register_stage(kind, QuantizeStage(r))`.
They need torchao, and they do what the classes of that name do, call by call.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, ClassVar

import torch
from torch.export import Dim, ExportedProgram
from torch.fx.passes.infra.pass_manager import PassManager as FxPassManager
from typing_extensions import Self, override

from compiler import EdgeCompileConfig, EdgeProgramManager, ExecutorchBackendConfig, PassManager
from compiler import to_edge as to_edge
from compiler import to_edge_transform_and_lower as to_edge_transform_and_lower
from compiler.compat.session.recipe import LoweringRecipe, QuantizationRecipe, StageType
from compiler.compat.session.stages import PipelineArtifact, Stage
from inspector.api.delegation_info import get_delegation_info as get_delegation_info

_pt2e: Any = importlib.import_module("torchao.quantization.pt2e")
_steps: Any = importlib.import_module("torchao.quantization.pt2e.quantize_pt2e")
_quantizers: Any = importlib.import_module("torchao.quantization.pt2e.quantizer")
# Names of this module, so that a caller may replace one as it may in the stock module.
quantize_: Any = importlib.import_module("torchao.quantization").quantize_
unwrap_tensor_subclass: Any = importlib.import_module("torchao.utils").unwrap_tensor_subclass
allow_exported_model_train_eval: Any = _pt2e.allow_exported_model_train_eval
move_exported_model_to_eval: Any = _pt2e.move_exported_model_to_eval
move_exported_model_to_train: Any = _pt2e.move_exported_model_to_train
convert_pt2e: Any = _steps.convert_pt2e
prepare_pt2e: Any = _steps.prepare_pt2e
prepare_qat_pt2e: Any = _steps.prepare_qat_pt2e
ComposableQuantizer: Any = _quantizers.ComposableQuantizer

Partitioners = Sequence[Any] | Mapping[str, Sequence[Any]]
ProgramPasses = Callable[[str, ExportedProgram], Any]
_S = StageType


class _Stage(Stage):
    """A stage whose type and place in a pipeline are written in the class."""

    kind: StageType
    after: tuple[StageType, ...] = ()
    first = True

    @property
    @override
    def stage_type(self) -> StageType:
        return self.kind

    @property
    @override
    def valid_predecessor_stages(self) -> list[StageType]:
        return [*self.after]

    @property
    @override
    def can_start_pipeline(self) -> bool:
        return self.first


class SourceTransformStage(_Stage):
    """Quantizes the modules themselves, before they are exported."""

    kind = _S.SOURCE_TRANSFORM

    def __init__(
        self, quantization_recipe: QuantizationRecipe | None, in_place: bool = False
    ) -> None:
        """Take the recipe; in place means the given modules instead of copies."""
        super().__init__()
        self._quantization_recipe = quantization_recipe
        self._in_place = in_place

    @override
    def run(self, artifact: PipelineArtifact) -> None:
        """Quantize each module; leave the artifact as it is without a configuration.

        Raises: ValueError for more than one configuration
        """
        recipe = self._quantization_recipe
        self._artifact = artifact
        if recipe is None or not recipe.ao_quantization_configs:
            return
        if len(recipe.ao_quantization_configs) > 1:
            raise ValueError("AO quantization configs cannot be composed: give one")
        config = recipe.ao_quantization_configs[0]
        models = artifact.data if self._in_place else copy.deepcopy(artifact.data)
        for model in models.values():
            quantize_(model, config.ao_base_config, config.filter_fn)
            unwrap_tensor_subclass(model)
        self._artifact = artifact.copy_with_new_data(models)


class QuantizeStage(_Stage):
    """Quantizes exported graphs with quantizers, after calibration or training."""

    kind = _S.QUANTIZE
    after = (_S.SOURCE_TRANSFORM,)

    def __init__(self, quantization_recipe: QuantizationRecipe | None) -> None:
        """Take the recipe."""
        super().__init__()
        self._quantization_recipe = quantization_recipe

    @override
    def run(self, artifact: PipelineArtifact) -> None:
        """Quantize each module; leave the artifact as it is without quantizers.

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
            quantized[name] = self._quantized(model, recipe, examples[name])
        self._artifact = artifact.copy_with_new_data(quantized)

    def _quantized(self, model: Any, recipe: QuantizationRecipe, examples: Any) -> Any:  # noqa: ANN401
        if recipe.is_qat:
            model.train()  # batch norm and dropout are exported as they train
        shapes = _batch_shapes(examples[0]) if recipe.dynamic_batch_size else None
        run: Any = torch.export.export
        graph = run(model, examples[0], dynamic_shapes=shapes, strict=True).module()
        graph = self._apply_passes(graph, recipe.pre_prepare_passes)
        quantizer = self._get_quantizer_for_prepare_pt2e(recipe.quantizers or [])
        if recipe.is_qat and recipe.train_fn is None:
            raise ValueError("train_fn must be provided when is_qat=True")
        prepared = (prepare_qat_pt2e if recipe.is_qat else prepare_pt2e)(graph, quantizer)
        prepared = self._apply_passes(prepared, recipe.post_prepare_passes)
        if recipe.train_fn is not None and recipe.is_qat:
            allow_exported_model_train_eval(prepared)
            move_exported_model_to_train(prepared)
            recipe.train_fn(prepared)
            move_exported_model_to_eval(prepared)
        else:
            own = recipe.calibration_inputs_fn
            for inputs in examples if own is None else own():
                prepared(*inputs)
        prepared = self._apply_passes(prepared, recipe.pre_convert_passes)
        return self._apply_passes(convert_pt2e(prepared), recipe.post_convert_passes)

    def _get_quantizer_for_prepare_pt2e(self, quantizers: Sequence[Any]) -> Any:  # noqa: ANN401
        composable = [one for one in quantizers if isinstance(one, _quantizers.Quantizer)]
        older = [one for one in quantizers if one not in composable]
        if not quantizers:
            raise ValueError("No quantizers detected")
        if composable and older:
            raise ValueError("Mixed quantizer types are not supported")
        if len(older) > 1:
            raise ValueError("Multiple quantizers of torch.ao.quantization.quantizer not supported")
        return older[0] if older else ComposableQuantizer(composable)

    @staticmethod
    def _apply_passes(model: Any, passes: Sequence[Callable[..., Any]] | None) -> Any:  # noqa: ANN401
        for one in passes or ():
            try:
                model = one(model)
            except Exception as error:
                raise RuntimeError(f"QuantizeStage: Pass '{one!r}' raised an error: {error}") from (
                    error
                )
        return model


def _batch_shapes(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    batch = Dim("batch", min=1)
    return tuple({0: batch} if isinstance(one, torch.Tensor) else None for one in inputs)


class TorchExportStage(_Stage):
    """Exports each module."""

    kind = _S.TORCH_EXPORT
    after = (_S.SOURCE_TRANSFORM, _S.QUANTIZE)

    def __init__(
        self,
        aten_transform_passes: list[Callable[[str, ExportedProgram], ExportedProgram]]
        | None = None,
        strict: bool = True,
    ) -> None:
        """Take what changes the exported programs, and whether to export by bytecode."""
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
            if name not in examples:
                raise ValueError(f"Example inputs for method {name} not found.")
            run: Any = torch.export.export
            with torch.no_grad():
                program = run(
                    model, examples[name][0], dynamic_shapes=shapes.get(name), strict=self.strict
                )
            for one in self._aten_transform_passes or ():
                if not callable(one):
                    raise ValueError(  # noqa: TRY004 - as documented
                        "Aten transform passes must be a callable that can transform and return "
                        "an exported program"
                    )
                program = one(name, program)
            programs[name] = program
        self._artifact = artifact.copy_with_new_data(programs)


class _FromRecipe(_Stage):
    """A stage of the lowering: made from a recipe by the names of its arguments."""

    fields: ClassVar[dict[str, str]] = {}

    @classmethod
    def from_recipe(cls, lowering_recipe: LoweringRecipe | None) -> Self:
        """Return the stage that a recipe describes; one that does nothing of its own for None."""
        if lowering_recipe is None:
            return cls()
        return cls(**{own: getattr(lowering_recipe, name) for own, name in cls.fields.items()})

    @property
    def delegation_info(self) -> Any:  # noqa: ANN401 - a DelegationInfo
        """Return the delegation of `forward`, or of the first method by name."""
        return self.get_artifacts().get_context("delegation_info")

    @property
    def delegation_info_by_method(self) -> dict[str, Any]:
        """Return the delegation of each method."""
        return self.get_artifacts().get_context("delegation_info_by_method")

    def _leave(self, artifact: PipelineArtifact, manager: EdgeProgramManager) -> None:
        found = {
            name: get_delegation_info(manager.exported_program(name).graph_module)
            for name in sorted(manager.methods)
        }
        self._artifact = artifact.copy_with_new_data(manager)
        self._artifact.add_context("delegation_info_by_method", found)
        first = next(iter(found.values()), None)
        self._artifact.add_context("delegation_info", found.get("forward", first))


class EdgeTransformAndLowerStage(_FromRecipe):
    """Lowers exported programs and gives parts of them to backends."""

    kind = _S.TO_EDGE_TRANSFORM_AND_LOWER
    after = (_S.TORCH_EXPORT,)
    fields: ClassVar = {
        "partitioners": "partitioners",
        "transform_passes": "edge_transform_passes",
        "compile_config": "edge_compile_config",
    }

    def __init__(
        self,
        partitioners: Partitioners | None = None,
        transform_passes: list[ProgramPasses] | None = None,
        compile_config: EdgeCompileConfig | None = None,
    ) -> None:
        """Take what `to_edge_transform_and_lower` takes; passes by a function of the program."""
        super().__init__()
        self._partitioners = partitioners
        self._transform_passes = transform_passes
        self._compile_config = compile_config

    @override
    def run(self, artifact: PipelineArtifact) -> None:
        """Lower all programs.

        Raises: ValueError for a pass that cannot be called; what lowering raises
        """
        passes = _passes_of(self._transform_passes, artifact.data)
        lower: Any = to_edge_transform_and_lower
        manager = lower(
            artifact.data,
            partitioner=self._partitioners,
            transform_passes=passes,
            constant_methods=artifact.get_context("constant_methods"),
            compile_config=self._compile_config,
            generate_etrecord=artifact.get_context("generate_etrecord", False),
        )
        self._leave(artifact, manager)


def _passes_of(given: Sequence[ProgramPasses] | None, programs: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return a pass manager, the passes by method, or None where there are none."""
    found: dict[str, list[Any]] = {}
    for name, program in programs.items():
        for one in given or ():
            if not callable(one):
                raise ValueError(  # noqa: TRY004 - as documented
                    "Transform passes must be a callable that resolves to passes"
                )
            passes = one(name, program)
            if isinstance(passes, (FxPassManager, PassManager)):
                return passes
            found.setdefault(name, []).extend(passes)
    return {name: passes for name, passes in found.items() if passes} or None


class ToEdgeStage(_FromRecipe):
    """Lowers exported programs."""

    kind = _S.TO_EDGE
    after = (_S.TORCH_EXPORT,)
    fields: ClassVar = {"edge_compile_config": "edge_compile_config"}

    def __init__(self, edge_compile_config: EdgeCompileConfig | None = None) -> None:
        """Take the configuration of `to_edge`."""
        super().__init__()
        self._edge_compile_config = edge_compile_config

    @override
    def run(self, artifact: PipelineArtifact) -> None:
        """Lower all programs."""
        manager = to_edge(
            artifact.data,
            constant_methods=artifact.get_context("constant_methods"),
            compile_config=self._edge_compile_config,
            generate_etrecord=artifact.get_context("generate_etrecord", False),
        )
        self._artifact = artifact.copy_with_new_data(manager)


class EdgeProgramManagerTransformStage(_FromRecipe):
    """Changes lowered programs by passes, which may be made from the manager."""

    kind = _S.EDGE_PROGRAM_MANAGER_TRANSFORM
    after = (_S.TO_EDGE, _S.TO_EDGE_TRANSFORM_AND_LOWER)
    first = False
    fields: ClassVar = {
        "edge_transform_passes": "edge_transform_passes",
        "edge_manager_transform_passes": "edge_manager_transform_passes",
    }

    def __init__(
        self,
        edge_transform_passes: list[ProgramPasses] | None = None,
        edge_manager_transform_passes: list[Callable[[EdgeProgramManager], Any]] | None = None,
    ) -> None:
        """Take functions that return passes for a program, or for the manager."""
        super().__init__()
        self._edge_transform_passes = edge_transform_passes
        self._edge_manager_transform_passes = edge_manager_transform_passes

    @override
    def run(self, artifact: PipelineArtifact) -> None:
        """Run the passes of the programs, then those of the manager, one function after another.

        Raises: TypeError if the stage before left no manager
        """
        manager = artifact.data
        if not isinstance(manager, EdgeProgramManager):
            raise TypeError(f"Expected EdgeProgramManager but got {type(manager)}")
        if self._edge_transform_passes:
            programs = {name: manager.exported_program(name) for name in manager.methods}
            passes = _passes_of(self._edge_transform_passes, programs)
            manager = manager if passes is None else manager.transform(passes)
        for one in self._edge_manager_transform_passes or ():
            passes = one(manager)
            manager = manager.transform(passes) if passes else manager
        self._artifact = artifact.copy_with_new_data(manager)


class ToBackendStage(_FromRecipe):
    """Gives parts of lowered programs to backends."""

    kind = _S.TO_BACKEND
    after = (_S.TO_EDGE, _S.EDGE_PROGRAM_MANAGER_TRANSFORM)
    first = False
    fields: ClassVar = {"partitioners": "partitioners"}

    def __init__(self, partitioners: Partitioners | None = None) -> None:
        """Take partitioners in their order, for all methods or by method."""
        super().__init__()
        self._partitioners = partitioners

    @override
    def run(self, artifact: PipelineArtifact) -> None:
        """Let one partitioner after another (of each method) take its part.

        Raises: RuntimeError without a manager
        """
        manager = artifact.data
        if manager is None:
            raise RuntimeError("Edge program manager is not set.")
        for one in _rounds(self._partitioners or ()):
            manager = manager.to_backend(one)
        self._leave(artifact, manager)


def _rounds(partitioners: Partitioners) -> Iterator[Any]:
    if not isinstance(partitioners, Mapping):
        yield from partitioners
        return
    for found in zip_longest(*partitioners.values()):
        named = zip(partitioners, found, strict=True)
        yield {name: one for name, one in named if one is not None}


class ExecutorchStage(_Stage):
    """Plans memory and writes the program."""

    kind = _S.TO_EXECUTORCH
    after = (_S.TO_EDGE_TRANSFORM_AND_LOWER, _S.TO_BACKEND, _S.EDGE_PROGRAM_MANAGER_TRANSFORM)
    first = False

    def __init__(self, backend_config: ExecutorchBackendConfig | None) -> None:
        """Take the configuration of `to_executorch`."""
        super().__init__()
        self._backend_config = backend_config

    @override
    def run(self, artifact: PipelineArtifact) -> None:
        """Write the program.

        Raises: RuntimeError without a manager
        """
        if artifact.data is None:
            raise RuntimeError("Edge program manager is not set.")
        program = artifact.data.to_executorch(self._backend_config)
        self._artifact = artifact.copy_with_new_data(program)
