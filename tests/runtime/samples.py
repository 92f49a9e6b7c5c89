"""Portable sessions among the test data, with inputs of their methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from runtime import MethodMeta, Program, Runtime
from runtime.memory.slots import dtype_of

DATA = Path(__file__).resolve().parents[1] / "data"
PORTABLE = (
    "corpus/v1.0.1/convnet_portable",
    "corpus/v1.0.1/mm_portable",
    "corpus/v1.0.1/tinygpt_portable",
    "corpus/v1.5.1/convnet_portable",
    "corpus/v1.5.1/mm_portable",
    "corpus/v1.5.1/tinygpt_portable",
    "corpus/special/control_flow",
    "corpus/special/dynamic",
    "extra/bool_and_int",
    "extra/bundled_two_suites",
    "extra/counter_state",
    "extra/deep_mlp",
    "extra/dynamic_rows",
    "extra/emit_stacktrace",
    "extra/external_weights",
    "extra/gru_portable",
    "extra/half_precision",
    "extra/identity",
    "extra/kv_cache",
    "extra/lstm_portable",
    "extra/many_outputs",
    "extra/map_rows",
    "extra/nested_branches",
    "extra/no_constants",
    "extra/scan_rows",
    "extra/shared_state",
    "extra/two_methods",
    "extra/wide_alignment",
)
# Their traces the stock Inspector refuses, or the stock runtime cannot write.
UNTRACED = {"corpus/special/dynamic", "extra/half_precision"}


def folder(name: str) -> Path:
    return DATA / name


def load(name: str, **options: Any) -> Program:
    files = sorted(folder(name).glob("*.ptd"))
    return Runtime.get().load_program(folder(name) / "model.pte", data_path=files, **options)


def inputs_of(meta: MethodMeta, seed: int = 0) -> list[Any]:
    generator = torch.Generator().manual_seed(seed)
    return [_input(meta, index, generator) for index in range(meta.num_inputs())]


def _input(meta: MethodMeta, index: int, generator: torch.Generator) -> Any:
    info = meta.input_tensor_meta(index)
    dtype = dtype_of(info.dtype())
    if dtype.is_floating_point:
        return torch.randn(info.sizes(), generator=generator).to(dtype)
    return torch.ones(info.sizes(), dtype=dtype)


def calls_of(program: Program, rounds: int = 2) -> list[tuple[str, list[Any]]]:
    """Return calls of all methods, several rounds, so that state shows."""
    return [
        (name, inputs_of(program.metadata(name), seed))
        for seed in range(rounds)
        for name in sorted(program.method_names)
    ]


def assert_close(ours: list[Any], stock: list[Any], tolerance: float = 1e-4) -> None:
    assert len(ours) == len(stock)
    for a, b in zip(ours, stock, strict=True):
        if not isinstance(b, torch.Tensor):
            assert a == b
            continue
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if not b.dtype.is_floating_point:
            assert torch.equal(a, b)
            continue
        scale = b.double().nan_to_num(0).abs().max().clamp(min=1e-30) if b.numel() else 1.0
        gap = (a.double() - b.double()).abs()
        assert torch.equal(torch.isnan(a), torch.isnan(b))
        assert bool((gap.nan_to_num(0) <= tolerance * scale).all())
