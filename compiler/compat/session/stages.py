"""The stages of a session: each consumes the artifact of its predecessor.

They call the functions that every compile of this project uses: ``export``, ``quantize_graph``,
``to_edge_transform_and_lower`` and ``to_executorch``. `inspector.compat.stages` has the same
classes with the calls of the stock package, for programs that replace functions of its module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from torch.fx.passes.infra.pass_manager import PassManager as FxPassManager
from typing_extensions import Self, override

from compiler.compat.session.model_stages import (
    ProgramPasses,
    QuantizeStage,
    SourceTransformStage,
    TorchExportStage,
)
from compiler.compat.session.recipe import ExportRecipe, LoweringRecipe, StageType
from compiler.compat.session.stage import KnownStage, PipelineArtifact, Stage
from compiler.edge.config import EdgeCompileConfig
from compiler.emit.config import ExecutorchBackendConfig
from compiler.passes.manager import PassManager
from compiler.pipeline.edge_manager import EdgeProgramManager

Partitioners = Sequence[Any] | Mapping[str, Sequence[Any]]
_S = StageType


class LoweringStage(KnownStage):
    """A stage of the lowering: created from a recipe by the names of its arguments."""

    fields: ClassVar[dict[str, str]] = {}

    @classmethod
    def from_recipe(cls, lowering_recipe: LoweringRecipe | None) -> Self:
        """Return the stage that a recipe describes; without options if None."""
        if lowering_recipe is None:
            return cls()
        return cls(**{own: getattr(lowering_recipe, name) for own, name in cls.fields.items()})

    def _leave(self, artifact: PipelineArtifact, manager: EdgeProgramManager) -> None:
        self._artifact = artifact.copy_with_new_data(manager)


class EdgeTransformAndLowerStage(LoweringStage):
    """Lowers exported programs and delegates their partitions to backends."""

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
        """Store the arguments of `to_edge_transform_and_lower`; passes as functions."""
        super().__init__()
        self._partitioners = partitioners
        self._transform_passes = transform_passes
        self._compile_config = compile_config

    @override
    def run(self, artifact: PipelineArtifact) -> None:
        """Lower all programs.

        Raises: ValueError for a pass that is not callable; errors of lowering
        """
        manager = self.functions.to_edge_transform_and_lower(
            artifact.data,
            partitioner=self._partitioners,
            transform_passes=_passes_of(self._transform_passes, artifact.data),
            constant_methods=artifact.get_context("constant_methods"),
            compile_config=self._compile_config,
            generate_etrecord=artifact.get_context("generate_etrecord", False),
        )
        self._leave(artifact, manager)


def _passes_of(given: Sequence[ProgramPasses] | None, programs: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return a pass manager, the passes by method, or None."""
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


class ToEdgeStage(LoweringStage):
    """Lowers exported programs."""

    kind = _S.TO_EDGE
    after = (_S.TORCH_EXPORT,)
    fields: ClassVar = {"edge_compile_config": "edge_compile_config"}

    def __init__(self, edge_compile_config: EdgeCompileConfig | None = None) -> None:
        """Store the configuration of `to_edge`."""
        super().__init__()
        self._edge_compile_config = edge_compile_config

    @override
    def run(self, artifact: PipelineArtifact) -> None:
        """Lower all programs."""
        manager = self.functions.to_edge(
            artifact.data,
            constant_methods=artifact.get_context("constant_methods"),
            compile_config=self._edge_compile_config,
            generate_etrecord=artifact.get_context("generate_etrecord", False),
        )
        self._artifact = artifact.copy_with_new_data(manager)


class EdgeProgramManagerTransformStage(LoweringStage):
    """Changes lowered programs by passes, which may be created from the manager."""

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
        """Store functions that return passes for a program, or for the manager."""
        super().__init__()
        self._edge_transform_passes = edge_transform_passes
        self._edge_manager_transform_passes = edge_manager_transform_passes

    @override
    def run(self, artifact: PipelineArtifact) -> None:
        """Run the passes of the programs, then those of the manager, one function after another.

        Raises: TypeError if the artifact is not a manager
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


class ToBackendStage(LoweringStage):
    """Delegates partitions of lowered programs to backends."""

    kind = _S.TO_BACKEND
    after = (_S.TO_EDGE, _S.EDGE_PROGRAM_MANAGER_TRANSFORM)
    first = False
    fields: ClassVar = {"partitioners": "partitioners"}

    def __init__(self, partitioners: Partitioners | None = None) -> None:
        """Store partitioners in order, for all methods or by method."""
        super().__init__()
        self._partitioners = partitioners

    @override
    def run(self, artifact: PipelineArtifact) -> None:
        """Delegate the partitions of the partitioners.

        Raises: RuntimeError without a manager
        """
        if artifact.data is None:
            raise RuntimeError("Edge program manager is not set.")
        self._leave(artifact, self._delegated(artifact.data, self._partitioners or ()))

    def _delegated(self, manager: Any, partitioners: Partitioners) -> Any:  # noqa: ANN401
        return manager.to_backend(partitioners) if partitioners else manager


class ExecutorchStage(KnownStage):
    """Plans memory and emits the program."""

    kind = _S.TO_EXECUTORCH
    after = (
        _S.TO_EDGE_TRANSFORM_AND_LOWER,
        _S.TO_BACKEND,
        _S.EDGE_PROGRAM_MANAGER_TRANSFORM,
        _S.TO_EDGE,
    )
    first = False

    def __init__(self, backend_config: ExecutorchBackendConfig | None) -> None:
        """Store the configuration of `to_executorch`."""
        super().__init__()
        self._backend_config = backend_config

    @override
    def run(self, artifact: PipelineArtifact) -> None:
        """Emit the program.

        Raises: RuntimeError without a manager
        """
        if artifact.data is None:
            raise RuntimeError("Edge program manager is not set.")
        program = artifact.data.to_executorch(self._backend_config)
        self._artifact = artifact.copy_with_new_data(program)


def stage_of(kind: StageType, recipe: ExportRecipe) -> Stage:
    """Return the stage of a recipe."""
    quantization, lowering = recipe.quantization_recipe, recipe.lowering_recipe
    manager_passes = None if lowering is None else lowering.edge_manager_transform_passes
    stages: dict[StageType, Callable[[], Stage]] = {
        _S.SOURCE_TRANSFORM: lambda: SourceTransformStage(
            quantization, recipe.source_transform_in_place
        ),
        _S.QUANTIZE: lambda: QuantizeStage(quantization),
        _S.TORCH_EXPORT: lambda: TorchExportStage(recipe.aten_transform_passes, recipe.strict),
        _S.TO_EDGE_TRANSFORM_AND_LOWER: lambda: EdgeTransformAndLowerStage.from_recipe(lowering),
        _S.TO_EDGE: lambda: ToEdgeStage.from_recipe(lowering),
        # passes of programs have run while they were lowered
        _S.EDGE_PROGRAM_MANAGER_TRANSFORM: lambda: EdgeProgramManagerTransformStage(
            None, manager_passes
        ),
        _S.TO_BACKEND: lambda: ToBackendStage.from_recipe(lowering),
        _S.TO_EXECUTORCH: lambda: ExecutorchStage(recipe.executorch_backend_config),
    }
    return stages[kind]()
