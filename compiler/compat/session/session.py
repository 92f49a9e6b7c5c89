"""Export sessions, which run the stages of a recipe and store their artifacts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.compat.session.delegation import delegation_table
from compiler.compat.session.recipe import ExportRecipe, StageType
from compiler.compat.session.stage import PipelineArtifact, Stage
from compiler.compat.session.stages import stage_of
from compiler.pipeline.edge_manager import EdgeProgramManager
from compiler.pipeline.program_manager import ExecutorchProgramManager
from compiler.record.record import ETRecord

FORWARD = "forward"
_BEFORE_EXPORT = (StageType.SOURCE_TRANSFORM, StageType.QUANTIZE)
_EDGE = (
    StageType.TO_BACKEND,
    StageType.EDGE_PROGRAM_MANAGER_TRANSFORM,
    StageType.TO_EDGE_TRANSFORM_AND_LOWER,
    StageType.TO_EDGE,
)


def export(  # noqa: PLR0913 - as documented
    model: Any,  # noqa: ANN401 - modules or programs, one or by method, or a path
    example_inputs: Any = None,  # noqa: ANN401 - a list of input tuples, or such by method
    export_recipe: ExportRecipe | None = None,
    name: str | None = None,
    dynamic_shapes: Any = None,  # noqa: ANN401 - of one method, or by method
    constant_methods: Mapping[str, Any] | None = None,
    artifact_dir: str | None = None,
    generate_etrecord: bool = False,
) -> ExportSession:
    """Run all stages of a recipe and return the session with their artifacts.

    Args:
        model: a module, a graph module or an exported program, a dictionary of them by method, or
            the path of an
            exported program
        example_inputs: input tuples; the first is used for export, all for calibration; or a
            dictionary of them by method
        export_recipe: configuration; None exports and emits only
        name: of the session
        dynamic_shapes: dynamic dimensions; by method, or for the only method
        constant_methods: values by the name of the method that returns them
        artifact_dir: stored in the context of the stages, for custom stages
        generate_etrecord: keep the data for an ETRecord

    Raises: errors of the stages
    """
    session = ExportSession(
        model,
        example_inputs,
        export_recipe,
        name,
        dynamic_shapes,
        constant_methods,
        artifact_dir,
        generate_etrecord,
    )
    session.export()
    return session


class ExportSession:
    """Runs the stages of a recipe over one model or several methods."""

    def __init__(  # noqa: PLR0913 - as documented
        self,
        model: Any,  # noqa: ANN401
        example_inputs: Any = None,  # noqa: ANN401
        export_recipe: ExportRecipe | None = None,
        name: str | None = None,
        dynamic_shapes: Any = None,  # noqa: ANN401
        constant_methods: Mapping[str, Any] | None = None,
        artifact_dir: str | None = None,
        generate_etrecord: bool | None = False,
    ) -> None:
        """Store the arguments of ``export``.

        Raises:
            TypeError: the model is neither a module nor a program
            ValueError: a module without example inputs
        """
        loaded: Any = torch.export.load(model) if isinstance(model, str) else model
        self._model: dict[str, Any] = _by_method(loaded)
        self._input_model_type = _kind_of(self._model)
        if example_inputs is None and self._input_model_type != "ExportedProgram":
            raise ValueError(
                f"example_inputs are required when model is {self._input_model_type}: only an "
                "ExportedProgram contains example inputs"
            )
        self._example_inputs: dict[str, Any] = _by_method(example_inputs or {})
        self._recipe = export_recipe or ExportRecipe()
        self._pipeline_stages = self._recipe.pipeline_stages or self._get_default_pipeline()
        self._stage_registry = self._build_stages(self._pipeline_stages)
        self._run_context: dict[str, Any] = {
            "example_inputs": self._example_inputs,
            "dynamic_shapes": _shapes_by_method(dynamic_shapes, self._model),
            "constant_methods": constant_methods,
            "export_recipe": self._recipe,
            "session_name": name,
            "artifact_dir": artifact_dir,
            "generate_etrecord": generate_etrecord,
        }
        self._stage_to_artifacts: dict[StageType, PipelineArtifact] = {}

    def _build_stages(self, stages: Sequence[StageType]) -> dict[StageType, Stage]:
        """Return the recipe's stage of each type; unknown types have to be registered."""
        known = set(StageType)
        return {kind: stage_of(kind, self._recipe) for kind in stages if kind in known}

    def _get_default_pipeline(self) -> list[StageType]:
        exported = self._input_model_type == "ExportedProgram"
        stages: list[StageType] = [] if exported else [StageType.TORCH_EXPORT]
        if self._input_model_type == "nn.Module":
            stages = [*_BEFORE_EXPORT, *stages]
        stages.append(StageType.TO_EDGE_TRANSFORM_AND_LOWER)
        lowering = self._recipe.lowering_recipe
        if lowering is not None and lowering.edge_manager_transform_passes:
            stages.append(StageType.EDGE_PROGRAM_MANAGER_TRANSFORM)
        return [*stages, StageType.TO_EXECUTORCH]

    def register_stage(self, stage_type: StageType, stage: Stage) -> None:
        """Replace or add a stage."""
        self._stage_registry[stage_type] = stage

    def get_registered_stage(self, stage_type: StageType) -> Stage | None:
        """Return a stage, None if it is not registered."""
        return self._stage_registry.get(stage_type)

    def get_all_registered_stages(self) -> dict[StageType, Stage]:
        """Return all stages."""
        return self._stage_registry

    def get_stage_artifacts(self) -> dict[StageType, PipelineArtifact]:
        """Return the artifact of each stage."""
        return self._stage_to_artifacts

    def export(self) -> None:
        """Run all stages in order.

        Raises: ValueError if the stages cannot follow each other; errors of the stages
        """
        self._validate_pipeline_sequence(self._pipeline_stages)
        self._stage_to_artifacts.clear()
        artifact = PipelineArtifact(self._model, dict(self._run_context))
        for kind in self._pipeline_stages:
            stage = self._stage_registry[kind]
            start = time.perf_counter()
            stage.run(artifact)
            artifact = stage.get_artifacts()
            artifact.add_context("duration_ms", int((time.perf_counter() - start) * 1000))
            self._stage_to_artifacts[kind] = artifact

    def _validate_pipeline_sequence(self, stages: Sequence[StageType]) -> None:
        if not stages:
            raise ValueError("Pipeline stages cannot be empty")
        self._check_start(stages)
        missing = [kind for kind in stages if kind not in self._stage_registry]
        if missing:
            raise ValueError(
                f"Stage {missing[0]} not found: register it with session.register_stage()"
            )
        if not self._stage_registry[stages[0]].can_start_pipeline:
            raise ValueError(f"Stage {stages[0]} cannot start a pipeline.")
        for before, kind in pairwise(stages):
            allowed = self._stage_registry[kind].valid_predecessor_stages
            if allowed and before not in allowed:
                names = ", ".join(allowed)
                raise ValueError(
                    f"Invalid transition from {before.value} to {kind.value}; it may follow {names}"
                )

    def _check_start(self, stages: Sequence[StageType]) -> None:
        exported = self._input_model_type == "ExportedProgram"
        wrong = [*_BEFORE_EXPORT, StageType.TORCH_EXPORT] if exported else []
        wrong = [*_BEFORE_EXPORT] if self._input_model_type == "GraphModule" else wrong
        found = [kind.name for kind in stages if kind in wrong]
        if found:
            what = "an ExportedProgram" if exported else "a GraphModule"
            raise ValueError(f"Cannot run {', '.join(found)} stage(s) with {what}")

    def get_exported_program(self, method_name: str = FORWARD) -> ExportedProgram:
        """Return the exported program of a method.

        Raises:
            RuntimeError: the export stage has not run
            KeyError: the method does not exist
        """
        programs = self._left(StageType.TORCH_EXPORT, "Exported program is not available")
        if method_name not in programs:
            there = ", ".join(programs)
            raise KeyError(f"Method name '{method_name}' not found; available: {there}")
        return programs[method_name]

    def get_edge_program_manager(self) -> EdgeProgramManager:
        """Return the edge programs of the last stage that produced them.

        Raises: RuntimeError if no such stage has run
        """
        for kind in _EDGE:
            if kind in self._stage_to_artifacts:
                return self._stage_to_artifacts[kind].data
        raise RuntimeError("Edge program manager is not available: no edge stage has run")

    def get_executorch_program_manager(self) -> ExecutorchProgramManager:
        """Return the program file.

        Raises: RuntimeError if it was not emitted
        """
        return self._left(StageType.TO_EXECUTORCH, "Executorch program manager is not initialized")

    def get_executorch_program(self) -> Any:  # noqa: ANN401 - a Program of schema
        """Return the tables of the program file."""
        return self.get_executorch_program_manager().executorch_program

    def get_pte_buffer(self) -> bytes:
        """Return the bytes of the program file."""
        return self.get_executorch_program_manager().buffer

    def get_etrecord(self) -> ETRecord:
        """Return the ETRecord.

        Raises: RuntimeError if none was requested
        """
        return self.get_executorch_program_manager().get_etrecord()

    def save_to_pte(self, output_name: str) -> None:
        """Write the program file; ``.pte`` is added to a name without it.

        Raises: AssertionError for an empty name, as documented; OSError
        """
        if not output_name:
            raise AssertionError("Need a valid output name")
        path = output_name if output_name.endswith(".pte") else f"{output_name}.pte"
        self.get_executorch_program_manager().save(path)

    def get_example_input(self, method_name: str = FORWARD) -> tuple[Any, ...]:
        """Return the first example input of a method.

        Raises:
            KeyError: the method does not exist
            ValueError: it has no example inputs
        """
        if method_name not in self._example_inputs:
            raise KeyError(f"Method name '{method_name}' not found in example inputs")
        examples: Sequence[Any] = self._example_inputs[method_name]
        if not examples:
            raise ValueError(f"Example inputs list for method {method_name} is empty")
        return examples[0]

    def print_delegation_info(self) -> None:
        """Print, by method, how many nodes of each operator were delegated."""
        manager = self.get_edge_program_manager()
        for method in sorted(manager.methods):
            print(delegation_table(method, manager.exported_program(method)))  # noqa: T201 - documented

    def _left(self, kind: StageType, what: str) -> Any:  # noqa: ANN401
        if kind not in self._stage_to_artifacts:
            raise RuntimeError(f"{what}: the stage {kind.value} has not run")
        return self._stage_to_artifacts[kind].data


def _by_method(given: Any) -> dict[str, Any]:  # noqa: ANN401
    return dict(given) if isinstance(given, Mapping) else {FORWARD: given}  # pyright: ignore[reportUnknownArgumentType]


def _shapes_by_method(given: Any, methods: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    """Return dynamic shapes by method; one that names no method is about one method."""
    if given is None:
        return {}
    if isinstance(given, Mapping) and given.keys() & methods.keys():
        return {**given}
    return {FORWARD: given}


def _kind_of(models: Mapping[str, Any]) -> str:
    """Return the kind of the models, which is that of the first."""
    for model in models.values():
        if not isinstance(model, (torch.nn.Module, ExportedProgram)):
            raise TypeError(f"Unsupported model type: {type(model)}")
    first = next(iter(models.values()), None)
    if isinstance(first, ExportedProgram):
        return "ExportedProgram"
    return "GraphModule" if isinstance(first, torch.fx.GraphModule) else "nn.Module"
