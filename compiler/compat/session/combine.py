"""Combines several recipes into one, for `ExportRecipe.combine`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from compiler.compat.session.recipe import ExportRecipe, LoweringRecipe, QuantizationRecipe
from compiler.edge.config import EdgeCompileConfig

Calibration = Callable[[], Iterable[tuple[Any, ...]]]

_LISTS = (
    "quantizers",
    "ao_quantization_configs",
    "pre_prepare_passes",
    "post_prepare_passes",
    "pre_convert_passes",
    "post_convert_passes",
)
_AGREED = ("strict", "mode", "pipeline_stages", "source_transform_in_place")
_UNORDERED = ("preserve_ops", "_core_aten_ops_exception_list")


def combined(recipes: Sequence[ExportRecipe], name: str | None) -> ExportRecipe:
    """Return a recipe with the passes, quantizers and partitioners of all, in order.

    The emission configuration is the first one set.

    Raises: ValueError naming a setting on which two recipes disagree
    """
    for setting in _AGREED:
        _agreed(setting, [getattr(recipe, setting) for recipe in recipes])
    configs = [recipe.executorch_backend_config for recipe in recipes]
    return replace(
        recipes[0],
        name=name or "_".join(recipe.name for recipe in recipes if recipe.name is not None),
        quantization_recipe=_quantization(_given(recipe.quantization_recipe for recipe in recipes)),
        aten_transform_passes=_joined(recipe.aten_transform_passes for recipe in recipes),
        lowering_recipe=_lowering(recipes),
        executorch_backend_config=copy.deepcopy(next(iter(_given(configs)), None)),
    )


def _quantization(recipes: list[QuantizationRecipe]) -> QuantizationRecipe | None:
    lists = {name: _joined(getattr(recipe, name) for recipe in recipes) for name in _LISTS}
    _agreed("is_qat", [recipe.is_qat for recipe in recipes])
    trained = _given(recipe.train_fn for recipe in recipes)
    if len(trained) > 1:
        raise ValueError("Cannot combine recipes: more than one recipe provides a train_fn.")
    if not any(lists.values()):
        return None
    return QuantizationRecipe(
        **lists,
        is_qat=recipes[0].is_qat,
        dynamic_batch_size=any(recipe.dynamic_batch_size for recipe in recipes),
        calibration_inputs_fn=_chained(_given(one.calibration_inputs_fn for one in recipes)),
        train_fn=next(iter(trained), None),
    )


def _chained(calibrations: list[Calibration]) -> Calibration | None:
    if len(calibrations) < 2:
        return next(iter(calibrations), None)

    def chain() -> Iterator[tuple[Any, ...]]:
        for inputs in calibrations:
            yield from inputs()

    return chain


def _lowering(recipes: Sequence[ExportRecipe]) -> LoweringRecipe | None:
    given = _given(recipe.lowering_recipe for recipe in recipes)
    partitioners = _partitioners(_given(one.partitioners for one in given))
    passes = _joined(one.edge_transform_passes for one in given)
    manager_passes = _joined(one.edge_manager_transform_passes for one in given)
    config = _edge_config(recipes)
    if not (partitioners or passes or manager_passes or config):
        return None
    return LoweringRecipe(partitioners, passes, manager_passes, config or EdgeCompileConfig())


def _partitioners(given: list[Any]) -> Any:  # noqa: ANN401 - a list, or lists by method
    if len({isinstance(value, Mapping) for value in given if value}) > 1:
        raise ValueError(
            "Cannot combine recipes that mix list-valued and dict-valued partitioners: "
            "write the list by method"
        )
    if not any(isinstance(value, Mapping) for value in given):
        return _joined(given)
    methods = dict.fromkeys(method for value in given for method in value)
    return {name: _joined(value.get(name) for value in given) or [] for name in methods}


def _edge_config(recipes: Sequence[ExportRecipe]) -> EdgeCompileConfig | None:
    """Return a copy of the single configuration: operator lists cannot be merged."""
    named = [
        (recipe.name or f"recipes[{place}]", recipe.lowering_recipe.edge_compile_config)
        for place, recipe in enumerate(recipes)
        if recipe.lowering_recipe is not None
    ]
    configs = [(name, config) for name, config in named if config is not None]
    conflicts: list[str] = []
    for entry in fields(EdgeCompileConfig):
        shown = [(name, str(_shown(config, entry.name))) for name, config in configs]
        if len({value for _, value in shown}) > 1:
            conflicts.append(f"{entry.name} ({', '.join(f'{n}={value}' for n, value in shown)})")
    if conflicts:
        raise ValueError(
            f"Cannot combine recipes whose edge_compile_configs disagree on {'; '.join(conflicts)}"
        )
    return copy.deepcopy(configs[0][1]) if configs else None


def _shown(config: EdgeCompileConfig, name: str) -> Any:  # noqa: ANN401
    value = getattr(config, name)
    return sorted(map(str, value or ())) if name in _UNORDERED else value


def _agreed(name: str, given: Sequence[Any]) -> None:
    if any(value != given[0] for value in given):
        shown = ", ".join(map(str, given))
        raise ValueError(f"Cannot combine recipes with conflicting '{name}' values: {shown}")


def _given(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _joined(lists: Iterable[Sequence[Any] | None]) -> list[Any] | None:
    return [item for one in lists for item in one or ()] or None
