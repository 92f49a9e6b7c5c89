"""All kernels: the tables of the families, merged."""

from __future__ import annotations

from functools import cache

from runtime.kernels import (
    attention,
    checked,
    elementwise,
    factories,
    indexing,
    matmul,
    nn,
    prims,
    quantized,
    reductions,
    shapes,
    upcast,
)
from runtime.kernels.rule import Kernel, Rule, kernel_of
from runtime.kernels.vendors import cadence, cortex_m

FAMILIES = (
    attention,
    elementwise,
    factories,
    checked,
    indexing,
    nn,
    prims,
    matmul,
    quantized,
    reductions,
    shapes,
    upcast,
)
VENDORS = (cadence, cortex_m)
OF_VENDORS = frozenset(name for vendor in VENDORS for name in vendor.TABLE)
# Operators that the kernel libraries of ExecuTorch 1.5.1 (portable, optimized, quantized) do not
# have: core ones, and those that the flows of vendors keep whole.
BEYOND_STOCK = frozenset(
    {
        "aten::_adaptive_avg_pool2d_backward.out",
        "aten::_adaptive_avg_pool3d.out",
        "aten::_embedding_bag.out",
        "aten::angle.out",
        "aten::avg_pool2d_backward.grad_input",
        "aten::avg_pool3d.out",
        "aten::embedding_dense_backward.out",
        "aten::empty_strided.out",
        "aten::hardsigmoid.out",
        "aten::hardswish.out",
        "aten::linalg_vector_norm.out",
        "aten::max_pool3d_with_indices.out",
        "aten::native_group_norm_backward.out",
        "aten::native_layer_norm_backward.out",
        "aten::randperm.out",
        "aten::resize.out",
        "aten::scatter_reduce.two_out",
        "aten::silu.out",
        "aten::sort.values",
        "aten::sort.values_stable",
    }
)
# Operators of its library for language models.
OF_LLM_LIBRARY = frozenset(attention.TABLE)
TABLE: dict[str, Rule] = {
    name: rule for family in (*FAMILIES, *VENDORS) for name, rule in family.TABLE.items()
}


@cache
def built_in(name: str) -> Kernel | None:
    """Return the kernel of an operator, None if it is unknown."""
    rule = TABLE.get(name)
    return None if rule is None else kernel_of(name, rule)
