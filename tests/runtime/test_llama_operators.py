"""Our kernels of attention beside those of the wheel's library for language models."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.tools.forked import run_stock

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SCRIPT = """
import sys
import torch
from runtime.kernels.attention import TABLE

torch.ops.load_library(sys.argv[1])
stock = torch.ops.llama
torch.manual_seed(2)
for length, heads, groups, size, context, start in (
    (1, 4, 2, 16, 32, 5), (7, 4, 4, 32, 64, 0), (40, 8, 1, 64, 128, 17), (1, 32, 8, 64, 700, 600)
):
    query = torch.randn(1, length, heads, size)
    new = [torch.randn(1, length, groups, size) for _ in range(2)]
    caches = [torch.randn(1, context, groups, size) for _ in range(2)]
    hidden = torch.rand(length, context) < 0.3
    mask = torch.zeros(length, context).masked_fill(hidden, float("-inf"))
    blind = mask.clone()  # a position that attends to nothing
    blind[-1] = float("-inf")

    def int8(x):
        scale = (x.amax(-1, keepdim=True) - x.amin(-1, keepdim=True)) / 255
        zero = (-128 - x.amin(-1, keepdim=True) / scale).round().clamp(-128, 127)
        values = (x / scale + zero).round().clamp(-128, 127).to(torch.int8)
        return values, zero.to(torch.int8), scale

    (q, *q_more), (k, *k_more), (v, *v_more) = (int8(x) for x in (query, *caches))
    parameters = (*q_more, *k_more, *v_more)
    turned = [x.transpose(1, 2).contiguous() for x in parameters]
    calls = [
        ("custom_sdpa", (query, *caches, start, None, 0.0, True)),
        ("custom_sdpa", (query, *caches, start, None, 0.0, False)),
        ("custom_sdpa", (query, *caches, start, mask, 0.0, False, 0.3)),
        ("custom_sdpa", (query, *caches, start, blind, 0.0, False)),
        ("custom_quantized_sdpa", (q, k, v, start, None, 0.0, True, None, *parameters, False)),
        ("custom_quantized_sdpa", (q, k, v, start, blind, 0.0, False, None, *parameters, False)),
        (
            "custom_quantized_sdpa",
            (*(x.transpose(1, 2).contiguous() for x in (q, k, v)), start, None, 0.0, True, None,
             *turned, True),
        ),
        ("update_cache", (new[0], caches[0], start)),
        ("update_cache", (k[:, :length].contiguous(), k.clone(), start)),
        ("sdpa_with_kv_cache", (query, *new, *caches, start, length, None, 0.0, True)),
        ("sdpa_with_kv_cache", (query, *new, *caches, start, length, None, 0.0, False)),
    ]
    for name, args in calls:
        copies = [[x.clone() if isinstance(x, torch.Tensor) else x for x in args] for _ in range(2)]
        wanted = getattr(stock, name)(*copies[0])
        found = TABLE[f"llama::{name}.out"].run(*copies[1])
        for a, b in zip(*copies, strict=True):
            if isinstance(a, torch.Tensor):
                assert torch.equal(a, b), name
        if name != "update_cache":
            torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6, equal_nan=True)
print("equal")
"""


def test_attention_equals_that_of_the_llama_library() -> None:
    wheel = importlib.util.find_spec("executorch")
    assert wheel is not None
    assert wheel.submodule_search_locations is not None
    folder = Path(wheel.submodule_search_locations[0]) / "extension/llm/custom_ops"
    library = folder / "libcustom_ops_aot_lib.so"
    if not library.is_file():
        pytest.skip("this wheel has no such library")
    done = run_stock(["-c", SCRIPT, library], check=False)
    assert done.stdout.strip() == "equal", done.stderr
