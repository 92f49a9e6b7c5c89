"""The base classes of stages, their artifacts, and the functions that they call."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from typing import Any

from typing_extensions import override

from compiler.compat.session.recipe import StageType

_PT2E = "torchao.quantization.pt2e"
_HOMES = {
    "to_edge": "compiler.pipeline.edge_manager",
    "to_edge_transform_and_lower": "compiler.pipeline.edge_manager",
    "quantize_": "torchao.quantization",
    "unwrap_tensor_subclass": "torchao.utils",
    "allow_exported_model_train_eval": _PT2E,
    "move_exported_model_to_eval": _PT2E,
    "move_exported_model_to_train": _PT2E,
    "convert_pt2e": f"{_PT2E}.quantize_pt2e",
    "prepare_pt2e": f"{_PT2E}.quantize_pt2e",
    "prepare_qat_pt2e": f"{_PT2E}.quantize_pt2e",
    "ComposableQuantizer": f"{_PT2E}.quantizer",
}


class Functions:
    """The functions that stages call, each imported at its first use: not all need torchao."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name not in _HOMES:
            raise AttributeError(name)
        return getattr(importlib.import_module(_HOMES[name]), name)


class PipelineArtifact:
    """The artifact of a stage.

    Attributes:
        data: modules or programs by method, or a manager
        context: values that all stages may read
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
        """Return another artifact with a copy of the context."""
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


class KnownStage(Stage):
    """A stage whose type and place in a pipeline are class attributes."""

    kind: StageType
    after: tuple[StageType, ...] = ()
    first = True
    functions: Any = Functions()

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
