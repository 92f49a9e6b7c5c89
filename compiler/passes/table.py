"""The standard passes by name: a pass is one file and one line here."""

from __future__ import annotations

import importlib
from typing import Any

from compiler.named import UnknownNameError, create_named, object_in_file, parse_named

# name: module and class; the module is imported when the pass is asked for
STANDARD_PASSES: dict[str, tuple[str, str]] = {
    "constant_folding": ("constant_prop", "ConstantPropPass"),
    "dead_code": ("dead_code", "DeadCodePass"),
    "unused_weights": ("dead_code", "RemoveUnusedParametersPass"),
    "duplicates": ("common_subexpressions", "CSEPass"),
    "views": ("views", "RemoveViewsPass"),
    "quant_fusion": ("quant_fusion", "QuantFusionPass"),
    "quant_chains": ("quant_chains", "DuplicateDynamicQuantChainPass"),
    "reinplace": ("reinplace", "ReinplacePass"),
    "specs": ("spec_prop", "SpecPropPass"),
    "out_variants": ("out_variants", "ToOutVarPass"),
}


def standard_pass(name: str, **options: Any) -> Any:  # noqa: ANN401
    """Return a new standard pass.

    Raises: KeyError naming the passes there are
    """
    if name not in STANDARD_PASSES:
        raise KeyError(f"unknown pass {name!r}; available: {', '.join(sorted(STANDARD_PASSES))}")
    module, made = STANDARD_PASSES[name]
    return getattr(importlib.import_module(f"compiler.passes.standard.{module}"), made)(**options)


def named_pass(text: str) -> Any:  # noqa: ANN401
    """Return the pass that a user names: a standard one, or ``file.py:NAME[:option=value…]``.

    A class is instantiated with the options; a function takes a graph module and may return a
    ``PassResult``.

    Raises: UnknownNameError if it cannot be found or is not callable; whatever its file raises
    """
    asked = parse_named(text)
    if not asked.in_file:
        if asked.name not in STANDARD_PASSES:
            known = ", ".join(sorted(STANDARD_PASSES))
            raise UnknownNameError(f"unknown pass {asked.name!r}; available: {known}, file.py:NAME")
        return standard_pass(asked.name, **asked.options)
    made = create_named(asked, object_in_file(asked.name))
    if not callable(made):
        raise UnknownNameError(f"{asked.name} is not a pass: expected a class or a function")
    return made
