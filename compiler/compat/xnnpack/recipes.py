"""The recipes for XNNPACK: floats, int8 by a quantizer, and 4 bit weights by torchao."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from typing_extensions import override

from compiler.backends.xnnpack import XnnpackPartitioner
from compiler.backends.xnnpack.quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
from compiler.compat.session.provider import BackendRecipeProvider
from compiler.compat.session.recipe import (
    AOQuantizationConfig,
    ExportRecipe,
    LoweringRecipe,
    QuantizationRecipe,
    RecipeType,
)
from compiler.edge.config import EdgeCompileConfig
from compiler.emit.config import ExecutorchBackendConfig

_torch: Any = torch
_INT4 = _torch.int4  # torch names it, its types do not
GROUP_SIZE = 32  # weights that share a scale, unless the option says otherwise


class XNNPackRecipeType(RecipeType):
    """Recipes for CPUs with XNNPACK.

    PT2E: a quantizer on the exported graph; static ones calibrate with the example inputs.
    TORCHAO: linear layers of the module get 4 bit weights, one scale per output channel, or one
    per `group_size` inputs ("per tensor" in the documented name).
    """

    FP32 = "xnnpack_fp32"
    PT2E_INT8_DYNAMIC_PER_CHANNEL = "xnnpack_pt2e_int8_dynamic_per_channel"
    PT2E_INT8_STATIC_PER_CHANNEL = "xnnpack_pt2e_int8_static_per_channel"
    PT2E_INT8_STATIC_PER_TENSOR = "xnnpack_pt2e_int8_static_per_tensor"
    TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_CHANNEL = "xnnpack_torchao_int8da_int4w_per_channel"
    TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_TENSOR = "xnnpack_torchao_int8da_int4w_per_tensor"

    @classmethod
    @override
    def get_backend_name(cls) -> str:
        return "xnnpack"


def _pt2e(*, is_dynamic: bool, is_per_channel: bool) -> QuantizationRecipe:
    config = get_symmetric_quantization_config(is_per_channel=is_per_channel, is_dynamic=is_dynamic)
    return QuantizationRecipe(quantizers=[XNNPACKQuantizer().set_global(config)])


def _torchao(group_size: int | None) -> QuantizationRecipe:
    """Return int8 activations and 4 bit weights with a scale a channel, or a group of inputs."""
    granularity: Any = importlib.import_module("torchao.quantization.granularity")
    api: Any = importlib.import_module("torchao.quantization.quant_api")
    sharing = (
        granularity.PerAxis(axis=0) if group_size is None else granularity.PerGroup(group_size)
    )
    config = api.Int8DynamicActivationIntxWeightConfig(
        weight_dtype=_INT4, weight_granularity=sharing
    )
    return QuantizationRecipe(ao_quantization_configs=[AOQuantizationConfig(config)])


_TYPES = XNNPackRecipeType
_QUANTIZED: dict[RecipeType, Callable[[], QuantizationRecipe]] = {
    _TYPES.PT2E_INT8_DYNAMIC_PER_CHANNEL: partial(_pt2e, is_dynamic=True, is_per_channel=True),
    _TYPES.PT2E_INT8_STATIC_PER_CHANNEL: partial(_pt2e, is_dynamic=False, is_per_channel=True),
    _TYPES.PT2E_INT8_STATIC_PER_TENSOR: partial(_pt2e, is_dynamic=False, is_per_channel=False),
    _TYPES.TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_CHANNEL: partial(_torchao, None),
}


class XNNPACKRecipeProvider(BackendRecipeProvider):
    """Offers the recipes of `XNNPackRecipeType`."""

    @property
    @override
    def backend_name(self) -> str:
        return XNNPackRecipeType.get_backend_name()

    @override
    def get_supported_recipes(self) -> Sequence[RecipeType]:
        return [*XNNPackRecipeType]

    @override
    def create_recipe(self, recipe_type: RecipeType, **kwargs: Any) -> ExportRecipe | None:
        """Return a recipe, None for another backend's type.

        Args:
            recipe_type: one of `XNNPackRecipeType`
            **kwargs: `group_size` of the type with groups; a warning names others

        Raises: ValueError if the group size is not an int
        """
        if recipe_type not in self.get_supported_recipes():
            return None
        grouped = recipe_type is _TYPES.TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_TENSOR
        group_size: Any = kwargs.pop("group_size", GROUP_SIZE) if grouped else None
        _check(recipe_type, group_size, kwargs)
        make = partial(_torchao, group_size) if grouped else _QUANTIZED.get(recipe_type)
        return ExportRecipe(
            name=recipe_type.value,
            quantization_recipe=None if make is None else make(),
            lowering_recipe=LoweringRecipe(
                partitioners=[XnnpackPartitioner()],
                edge_compile_config=EdgeCompileConfig(_check_ir_validity=False),
            ),
            executorch_backend_config=ExecutorchBackendConfig(),
        )


def _check(recipe_type: RecipeType, group_size: object, unknown: dict[str, Any]) -> None:
    if group_size is not None and not isinstance(group_size, int):
        found = type(group_size).__name__
        raise ValueError(f"Parameter 'group_size' must be an integer, got {found}: {group_size}")
    if unknown:
        has = "'group_size'" if group_size is not None else "no parameters"
        warnings.warn(
            f"XNNPACK recipe '{recipe_type.value}' ignores {', '.join(unknown)}: supported: {has}",
            stacklevel=4,
        )
