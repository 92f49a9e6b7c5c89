"""The standard passes by name: a pass is one file and one line here."""

from __future__ import annotations

import importlib
from typing import Any

from compiler.config import ExecutorchBackendConfig

# name: module and class; the module is imported when the pass is asked for
STANDARD_PASSES: dict[str, tuple[str, str]] = {
    "constant_folding": ("constant_prop", "ConstantPropPass"),
    "dead_code": ("dead_code", "DeadCodePass"),
    "unused_weights": ("dead_code", "RemoveUnusedParametersPass"),
    "duplicates": ("duplicates", "CSEPass"),
    "views": ("views", "RemoveViewsPass"),
    "quant_fusion": ("quant_fusion", "QuantFusionPass"),
    "quant_chains": ("quant_chains", "DuplicateDynamicQuantChainPass"),
    "reinplace": ("reinplace", "ReinplacePass"),
    "specs": ("spec_prop", "SpecPropPass"),
    "out_variants": ("out_variants", "ToOutVarPass"),
}


def standard_pass(name: str, **options: Any) -> Any:  # noqa: ANN401
    """Return a standard pass, made with its options.

    Raises: KeyError naming the passes there are
    """
    if name not in STANDARD_PASSES:
        raise KeyError(f"no pass {name!r}; there are {', '.join(sorted(STANDARD_PASSES))}")
    module, made = STANDARD_PASSES[name]
    return getattr(importlib.import_module(f"compiler.passes.standard.{module}"), made)(**options)


def passes_before_planning(config: ExecutorchBackendConfig) -> list[Any]:
    """Return what is to run over edge programs before memory is planned, in groups, in order."""
    groups: list[Any] = []
    if config.do_quant_fusion_and_const_prop:
        groups.append([standard_pass("quant_fusion"), standard_pass("constant_folding")])
    if config.passes:
        groups.append(config.passes)
    if config.run_reinplace_pass:
        groups.append([standard_pass("reinplace", more=config.reinplace_extra_ops or ())])
    return groups
