"""The standard passes of the compiler: a pass is one file and one line here."""

from __future__ import annotations

from typing import NamedTuple


class StandardPass(NamedTuple):
    """A pass that users name.

    Attributes:
        place: ``module:class``, which the compiler imports when the pass is requested
        in_recipes: it may run before partitioners; the others depend on emission
    """

    place: str
    in_recipes: bool = False


_HOME = "compiler.passes.standard."
PASSES: dict[str, StandardPass] = {
    "constant_folding": StandardPass(f"{_HOME}constant_prop:ConstantPropPass", True),
    "dead_code": StandardPass(f"{_HOME}dead_code:DeadCodePass", True),
    "unused_weights": StandardPass(f"{_HOME}dead_code:RemoveUnusedParametersPass", True),
    "duplicates": StandardPass(f"{_HOME}common_subexpressions:CSEPass", True),
    "views": StandardPass(f"{_HOME}views:RemoveViewsPass", True),
    "shared_weights": StandardPass(f"{_HOME}shared_weights:SharedWeightsPass"),
    "quant_fusion": StandardPass(f"{_HOME}quant_fusion:QuantFusionPass"),
    "quant_chains": StandardPass(f"{_HOME}quant_chains:DuplicateDynamicQuantChainPass"),
    "reinplace": StandardPass(f"{_HOME}reinplace:ReinplacePass"),
    "specs": StandardPass(f"{_HOME}spec_prop:SpecPropPass"),
    "out_variants": StandardPass(f"{_HOME}out_variants:ToOutVarPass"),
}


def recipe_passes() -> tuple[str, ...]:
    """Return the names of the passes that recipes may list."""
    return tuple(name for name, one in PASSES.items() if one.in_recipes)
