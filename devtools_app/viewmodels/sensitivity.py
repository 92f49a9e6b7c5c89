"""Which modules cost quality: whether that can be measured, and the edit that leaves one out."""

from __future__ import annotations

import os
from dataclasses import dataclass

from devtools_app.state.variants import Variant
from inspector.experiments.sweeps.grid import GridError
from inspector.experiments.sweeps.results import PointResult, Results
from inspector.experiments.sweeps.sensitivity import sensitivity_grid
from inspector.recipes.compile_job import NOT_QUANTIZED, CompileJob
from inspector.recipes.edits import EditTarget, TargetKind, edit_named
from inspector.recipes.recipe import RecipeError
from inspector.recipes.recipe_file import read_recipe
from inspector.tables.sensitivity import module_of
from schema.errors import FormatError

LEAVE_IN_FLOAT = "Leave in float"
LEAVE_IN_FLOAT_HELP = (
    "Change the recipe so that the chosen module is not quantized; Ctrl+R recompiles"
)
_NO_MODE = "The recipe quantizes nothing by a mode: choose one in the recipe"
_NO_RECORD = "The modules are read from an ETRecord: open the program with its own"


@dataclass(frozen=True, slots=True)
class FloatOffer:
    """An edit that leaves a module in float.

    Attributes:
        job: the recipe with the edit
        described: the edit in words
    """

    job: CompileJob
    described: str


def record_of(one: Variant) -> str:
    """Return the ETRecord among the files of a variant, empty without one."""
    found = next((path for path in one.files if path.endswith(".etrecord")), "")
    return os.path.abspath(found) if found else ""


def no_sensitivity(one: Variant) -> str:
    """Return why the modules of a variant cannot be quantized one at a time, empty if they can."""
    try:
        job = one.draft.present
        sensitivity_grid(job, {"module": job.quantising.mode})
    except GridError:
        return f"{_NO_MODE}."
    return "" if record_of(one) else f"{_NO_RECORD}."


def source_of(results: Results) -> str:
    """Return the source of the program that a sweep compiles, empty if its recipe is gone."""
    try:
        return os.path.abspath(read_recipe(results.recipe).recipe.job.source.path)
    except (RecipeError, FormatError, OSError):
        return ""


def float_offer(point: PointResult | None, one: Variant | None, source: str) -> FloatOffer | None:
    """Return the edit that leaves the module of a point in float, None where it changes nothing.

    Args:
        point: of a sweep that quantizes one module at a time
        one: variant whose recipe is edited
        source: of the program that the sweep compiles
    """
    if point is None or one is None or os.path.abspath(one.draft.present.source.path) != source:
        return None
    return float_edit(module_of(point), one)


def float_edit(module: str, one: Variant | None) -> FloatOffer | None:
    """Return the edit that leaves a module in float, None where it changes nothing.

    Args:
        module: dotted path, empty for none
        one: variant whose recipe is edited
    """
    if not module or one is None:
        return None
    job, target = one.draft.present, EditTarget(TargetKind.MODULE, module)
    edit = edit_named(f"quantize-{NOT_QUANTIZED}")
    if not edit.applies(job, target):
        return None
    return FloatOffer(edit.apply(job, target), f"{module} stays in float")
