"""Operators that the runtime has kernels for are not asked a library for."""

from __future__ import annotations

from inspector.graph.operator_libraries import needs_library
from runtime.kernels.registry import KernelRegistry


def test_operators_with_a_kernel_here_need_no_library() -> None:
    named = KernelRegistry().operator_names
    assert {"llama::custom_sdpa.out", "llama::update_cache.out"} <= named
    assert not [name for name in named if needs_library(name)]
    assert needs_library("llama::quantized_moe_ffn.out")  # of a namespace that is here in part
    assert needs_library("mine::gelu.out")
