"""The stages of a session: each takes the artifact of its predecessor."""

from __future__ import annotations

import copy
import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch

from compiler.compat.session.quantize import quantized
from compiler.compat.session.recipe import ExportRecipe, LoweringRecipe, StageType
from compiler.frontend import export
from compiler.passes.manager import PassManager
from compiler.pipeline.edge_manager import to_edge, to_edge_transform_and_lower


class PipelineArtifact:
    """The artifact of a stage.

    Attributes:
        data: modules or programs by method, or a manager
        context: what all stages may read
    """

    def __init__(self, data: Any, context: dict[str, Any]) -> None:  # noqa: ANN401
        self.data = data
        self.context = context

    def add_context(self, key: str, value: Any) -> None:  # noqa: ANN401
        """Set an entry that later stages may read."""
        self.context[key] = value

    def get_context(self, key: str, default: Any = None) -> Any:  # noqa: ANN401
        """Return an entry, or the default."""
        return self.context.get(key, default)

    def copy_with_new_data(self, new_data: Any) -> PipelineArtifact:  # noqa: ANN401
        """Return another artifact with a context of its own."""
        return PipelineArtifact(new_data, dict(self.context))


class Stage(ABC):
    """A stage of a session; its artifact is read after it has run."""

    def __init__(self) -> None:
        self._artifact: PipelineArtifact | None = None

    @property
    @abstractmethod
    def stage_type(self) -> StageType:
        """Return which stage it is."""

    @property
    @abstractmethod
    def valid_predecessor_stages(self) -> list[StageType]:
        """Return the stages it may follow; empty for any."""

    @property
    @abstractmethod
    def can_start_pipeline(self) -> bool:
        """Return whether it may be the first."""

    @abstractmethod
    def run(self, artifact: PipelineArtifact) -> None:
        """Run the stage on the artifact of its predecessor."""

    def get_artifacts(self) -> PipelineArtifact:
        """Return its artifact.

        Raises: RuntimeError if it has not run
        """
        if self._artifact is None:
            raise RuntimeError(f"Stage: {type(self).__name__} not executed")
        return self._artifact


class _RecipeStage(Stage):
    """A stage described by a table: its type, its valid predecessors, and its function."""

    def __init__(self, kind: StageType, recipe: ExportRecipe) -> None:
        super().__init__()
        self._kind = kind
        self._recipe = recipe
        self._work, self._after, self._first = _WORK[kind]

    @property
    def stage_type(self) -> StageType:
        return self._kind

    @property
    def valid_predecessor_stages(self) -> list[StageType]:
        return [*self._after]

    @property
    def can_start_pipeline(self) -> bool:
        return self._first

    def run(self, artifact: PipelineArtifact) -> None:
        made = artifact.copy_with_new_data(None)
        made.data = self._work(self._recipe, artifact.data, made)
        self._artifact = made


def _source_transform(recipe: ExportRecipe, data: Any, made: PipelineArtifact) -> Any:  # noqa: ANN401
    del made
    wanted = recipe.quantization_recipe and recipe.quantization_recipe.ao_quantization_configs
    if not wanted:
        return data
    if len(wanted) > 1:
        raise ValueError("AO quantization configs cannot be composed: give one")
    # copied, as nothing given is changed unless the recipe says so
    models = data if recipe.source_transform_in_place else copy.deepcopy(data)
    quantize: Any = importlib.import_module("torchao.quantization").quantize_
    for model in models.values():
        quantize(model, wanted[0].ao_base_config, wanted[0].filter_fn)
    return models


def _quantize(recipe: ExportRecipe, data: Any, made: PipelineArtifact) -> Any:  # noqa: ANN401
    wanted = recipe.quantization_recipe
    if wanted is None or not wanted.quantizers:
        return data
    examples = made.get_context("example_inputs")
    return {
        name: quantized(model, wanted, _examples(examples, name)) for name, model in data.items()
    }


def _examples(examples: Mapping[str, Any], name: str) -> list[tuple[Any, ...]]:
    if not examples.get(name):
        raise ValueError(f"Example inputs for method {name} not found.")
    return list(examples[name])


def _torch_export(recipe: ExportRecipe, data: Any, made: PipelineArtifact) -> Any:  # noqa: ANN401
    shapes = made.get_context("dynamic_shapes", {})
    programs: dict[str, Any] = {}
    for name, model in data.items():
        inputs = _examples(made.get_context("example_inputs"), name)[0]
        with torch.no_grad():
            program: Any = export(
                model, inputs, dynamic_shapes=shapes.get(name), strict=recipe.strict
            )
        for one in recipe.aten_transform_passes or ():
            if not callable(one):
                raise TypeError("Aten transform passes must be callables that return a program")
            program = one(name, program)
        programs[name] = program
    return programs


def _lowering(recipe: ExportRecipe) -> LoweringRecipe:
    return recipe.lowering_recipe or LoweringRecipe()


def _lower(recipe: ExportRecipe, data: Any, made: PipelineArtifact) -> Any:  # noqa: ANN401
    wanted = _lowering(recipe)
    passes = {name: _passes_for(wanted, name, program) for name, program in data.items()}
    return to_edge_transform_and_lower(
        data,
        transform_passes={name: found for name, found in passes.items() if found},
        partitioner=wanted.partitioners,
        constant_methods=made.get_context("constant_methods"),
        compile_config=wanted.edge_compile_config,
        generate_etrecord=bool(made.get_context("generate_etrecord")),
    )


def _passes_for(wanted: LoweringRecipe, name: str, program: Any) -> Any:  # noqa: ANN401
    found: list[Any] = []
    for one in wanted.edge_transform_passes or ():
        if not callable(one):
            raise TypeError("Transform passes must be callables that return passes")
        passes = one(name, program)
        if isinstance(passes, PassManager):
            return passes
        found += passes
    return found


def _to_edge(recipe: ExportRecipe, data: Any, made: PipelineArtifact) -> Any:  # noqa: ANN401
    return to_edge(
        data,
        made.get_context("constant_methods"),
        _lowering(recipe).edge_compile_config,
        bool(made.get_context("generate_etrecord")),
    )


def _transform(recipe: ExportRecipe, data: Any, made: PipelineArtifact) -> Any:  # noqa: ANN401
    del made
    for one in _lowering(recipe).edge_manager_transform_passes or ():
        data = data.transform(one(data))
    return data


def _to_backend(recipe: ExportRecipe, data: Any, made: PipelineArtifact) -> Any:  # noqa: ANN401
    del made
    partitioners = _lowering(recipe).partitioners
    return data.to_backend(partitioners) if partitioners else data


def _to_executorch(recipe: ExportRecipe, data: Any, made: PipelineArtifact) -> Any:  # noqa: ANN401
    del made
    return data.to_executorch(recipe.executorch_backend_config)


_S = StageType
_WORK: dict[StageType, tuple[Any, tuple[StageType, ...], bool]] = {
    _S.SOURCE_TRANSFORM: (_source_transform, (), True),
    _S.QUANTIZE: (_quantize, (_S.SOURCE_TRANSFORM,), True),
    _S.TORCH_EXPORT: (_torch_export, (_S.SOURCE_TRANSFORM, _S.QUANTIZE), True),
    _S.TO_EDGE_TRANSFORM_AND_LOWER: (_lower, (_S.TORCH_EXPORT,), True),
    _S.TO_EDGE: (_to_edge, (_S.TORCH_EXPORT,), True),
    _S.EDGE_PROGRAM_MANAGER_TRANSFORM: (
        _transform,
        (_S.TO_EDGE, _S.TO_EDGE_TRANSFORM_AND_LOWER),
        False,
    ),
    _S.TO_BACKEND: (_to_backend, (_S.TO_EDGE, _S.EDGE_PROGRAM_MANAGER_TRANSFORM), False),
    _S.TO_EXECUTORCH: (
        _to_executorch,
        (
            _S.TO_EDGE_TRANSFORM_AND_LOWER,
            _S.TO_BACKEND,
            _S.EDGE_PROGRAM_MANAGER_TRANSFORM,
            _S.TO_EDGE,
        ),
        False,
    ),
}


def stage_of(kind: StageType, recipe: ExportRecipe) -> Stage:
    """Return the stage of a recipe."""
    return _RecipeStage(kind, recipe)
