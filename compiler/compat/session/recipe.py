"""Export recipes: quantization, lowering, and the options of each stage."""

from __future__ import annotations

import importlib
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, EnumMeta
from typing import Any

from compiler.edge.config import EdgeCompileConfig
from compiler.emit.config import ExecutorchBackendConfig

GraphEdit = Callable[[Any], Any]


class StageType(str, Enum):
    """The stages of a session."""

    SOURCE_TRANSFORM = "source_transform"
    QUANTIZE = "quantize"
    TORCH_EXPORT = "torch_export"
    TO_EDGE_TRANSFORM_AND_LOWER = "to_edge_transform_and_lower"
    TO_EDGE = "to_edge"
    EDGE_PROGRAM_MANAGER_TRANSFORM = "edge_program_manager_transform"
    TO_BACKEND = "to_backend"
    TO_EXECUTORCH = "to_executorch"


class Mode(str, Enum):
    """The build mode of a program."""

    DEBUG = "debug"
    RELEASE = "release"


class _RecipeTypes(EnumMeta, ABCMeta):
    """Metaclass of enumerations with abstract methods."""


class RecipeType(Enum, metaclass=_RecipeTypes):
    """Base of the recipes a backend offers by name."""

    @classmethod
    @abstractmethod
    def get_backend_name(cls) -> str:
        """Return the name of the backend."""


@dataclass
class AOQuantizationConfig:
    """Quantization of modules before export.

    Attributes:
        ao_base_config: a configuration of torchao
        filter_fn: decides for a module and its path whether it is quantized
    """

    ao_base_config: Any
    filter_fn: Callable[[Any, str], bool] | None = None


@dataclass
class QuantizationRecipe:
    """Quantization of exported graphs, post-training or quantization-aware.

    Attributes:
        quantizers: of torchao; several are composed
        ao_quantization_configs: quantize the modules before they are exported
        is_qat: train with quantization instead of calibrating
        dynamic_batch_size: let the first dimension of calibration inputs vary
        calibration_inputs_fn: returns the inputs to calibrate with; None for the example inputs
        train_fn: trains the prepared graph
        pre_prepare_passes: run before observers are inserted
        post_prepare_passes: run after observers are inserted
        pre_convert_passes: run before observers are converted to quantization
        post_convert_passes: run after conversion
    """

    quantizers: list[Any] | None = None
    ao_quantization_configs: list[AOQuantizationConfig] | None = None
    is_qat: bool = False
    dynamic_batch_size: bool = False
    calibration_inputs_fn: Callable[[], Iterable[tuple[Any, ...]]] | None = None
    train_fn: Callable[[Any], None] | None = None
    pre_prepare_passes: list[GraphEdit] | None = None
    post_prepare_passes: list[GraphEdit] | None = None
    pre_convert_passes: list[GraphEdit] | None = None
    post_convert_passes: list[GraphEdit] | None = None

    def get_quantizers(self) -> list[Any] | None:
        """Return the quantizers, None if none are set."""
        return self.quantizers


@dataclass
class LoweringRecipe:
    """Lowering and delegation.

    Attributes:
        partitioners: in their order, for all methods or by method
        edge_transform_passes: each returns passes for a method's name and exported program
        edge_manager_transform_passes: each returns passes for an EdgeProgramManager
        edge_compile_config: how programs become edge programs
    """

    partitioners: list[Any] | Mapping[str, list[Any]] | None = None
    edge_transform_passes: list[Callable[[str, Any], Any]] | None = None
    edge_manager_transform_passes: list[Callable[[Any], Any]] | None = None
    edge_compile_config: EdgeCompileConfig | None = None


@dataclass
class ExportRecipe:
    """Configuration of an export session.

    Attributes:
        name: of the recipe
        quantization_recipe: None for no quantization
        aten_transform_passes: each returns a program for a method's name and exported program
        lowering_recipe: None for no delegation
        executorch_backend_config: planning and emission
        pipeline_stages: which stages run, in order; None selects those the model needs
        mode: intended use of the program
        strict: export by bytecode analysis
        source_transform_in_place: change the given modules instead of copies
    """

    name: str | None = None
    quantization_recipe: QuantizationRecipe | None = None
    aten_transform_passes: list[Callable[[str, Any], Any]] | None = None
    lowering_recipe: LoweringRecipe | None = None
    executorch_backend_config: ExecutorchBackendConfig | None = None
    pipeline_stages: list[StageType] | None = None
    mode: Mode = Mode.RELEASE
    strict: bool = True
    source_transform_in_place: bool = False

    @classmethod
    def get_recipe(cls, recipe: RecipeType, **kwargs: object) -> ExportRecipe:
        """Return the recipe of a type, found through ``recipe_registry``.

        Args:
            recipe: the type; it names its backend
            **kwargs: options of that type

        Raises: ValueError if it is not a recipe type, or not offered
        """
        registry: Any = importlib.import_module("compiler.compat.session.registry")
        return registry.recipe_of(recipe, **kwargs)

    @classmethod
    def combine(
        cls, recipes: Sequence[ExportRecipe], recipe_name: str | None = None
    ) -> ExportRecipe:
        """Return a recipe with the passes, quantizers and partitioners of all, in order.

        Raises: ValueError naming a setting on which two recipes disagree
        """
        if not recipes:
            raise ValueError("Recipes cannot be empty")
        if len(recipes) == 1:
            return recipes[0]
        home: Any = importlib.import_module("compiler.compat.session.combine")
        return home.combined(recipes, recipe_name)
