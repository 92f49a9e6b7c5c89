"""What a recipe for XNNPACK holds."""

from __future__ import annotations

from compiler.backends.xnnpack import XnnpackPartitioner
from compiler.session.recipe import ExportRecipe, LoweringRecipe


def xnnpack_recipe(**options: object) -> ExportRecipe:
    """Return a recipe that gives all the partitioner takes to XNNPACK.

    Raises: ValueError naming options, as there are none
    """
    if options:
        raise ValueError(f"the recipe xnnpack_fp32 has no options, not {', '.join(options)}")
    lowering = LoweringRecipe(partitioners=[XnnpackPartitioner()])
    return ExportRecipe(name="xnnpack_fp32", lowering_recipe=lowering)
