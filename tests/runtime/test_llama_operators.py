"""Operators of the wheel's own library for language models, by the documented call."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.tools.forked import run_stock

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SCRIPT = """
import sys
import torch
from runtime import ErrorCode, ExecutionError, Runtime
from tests.runtime.one_op import Builder, encoded
from schema.program import model as m

torch.ops.load_library(sys.argv[1])
torch.manual_seed(2)
query, key, value = (torch.randn(1, 5, 2, 8) for _ in range(3))
build = Builder()
args = [build.input(query), build.input(key), build.input(value), build.value(0)]
args += [build.value(None), build.value(0.0), build.value(True), build.value(None)]
out = build.tensor(torch.float32, (1, 5, 2, 8))
plan = build.plan([m.KernelCall(0, (*args, out, out))], [out], ["llama::custom_sdpa.out"])
program = Runtime().load_program(encoded(plan))
try:
    program.load_method("forward")
except ExecutionError as error:
    assert error.code is ErrorCode.OperatorMissing
    assert "adopt_torch(['llama::custom_sdpa'])" in error.remedy, error.remedy
runtime = Runtime()
found = runtime.operator_registry.adopt_torch(["llama::custom_sdpa", "llama::update_cache"])
assert found == ("llama::custom_sdpa.out", "llama::update_cache.out"), found
method = runtime.load_program(encoded(plan)).load_method("forward")
(ours,) = method.execute([query, key, value])
wanted = torch.nn.functional.scaled_dot_product_attention(
    *(one.transpose(1, 2) for one in (query, key, value)), is_causal=True
).transpose(1, 2)
torch.testing.assert_close(ours, wanted)
print("equal")
"""


def test_attention_of_the_llama_library_runs_after_it_is_adopted() -> None:
    wheel = importlib.util.find_spec("executorch")
    assert wheel is not None
    assert wheel.submodule_search_locations is not None
    folder = Path(wheel.submodule_search_locations[0]) / "extension/llm/custom_ops"
    library = folder / "libcustom_ops_aot_lib.so"
    if not library.is_file():
        pytest.skip("this wheel has no such library")
    done = run_stock(["-c", SCRIPT, library], check=False)
    assert done.stdout.strip() == "equal", done.stderr
