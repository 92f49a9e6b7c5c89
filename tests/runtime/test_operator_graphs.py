"""Operators whose results have to be in planned memory run as graphs, with the bits of kernels."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from runtime import EventTracer, Runtime
from runtime.execution import ways
from runtime.execution.fused import Stretch
from schema.program import decode
from tests.runtime.one_op import encoded
from tests.runtime.operators.sweep import Trial, trials

pytestmark = pytest.mark.slow

_LISTS = ("split_copy.Tensor_out", "split_with_sizes_copy.out", "unbind_copy.int_out")
_COPIES = (
    "cat.out",
    "expand_copy.out",
    "index_put.out",
    "permute_copy.out",
    "repeat.out",
    "select_copy.int_out",
    "slice_copy.Tensor_out",
    "stack.out",
    "where.self_out",
)
_QUANTIZED = (
    "add.out",
    "choose_qparams.Tensor_out",
    "choose_qparams_per_token_asymmetric.out",
    "dequantize_per_channel.out",
    "dequantize_per_tensor.Tensor_out",
    "dequantize_per_tensor.out",
    "dequantize_per_token.out",
    "embedding_byte.out",
    "mixed_linear.out",
    "quantize_per_channel.out",
    "quantize_per_tensor.Tensor_out",
    "quantize_per_tensor.out",
    "quantize_per_token.out",
)
NAMES = (
    *(f"aten::{name}" for name in (*_LISTS, *_COPIES)),
    *(f"quantized_decomposed::{name}" for name in _QUANTIZED),
)


@pytest.fixture(scope="module")
def made() -> dict[str, list[Trial]]:
    """Return the calls that each operator is tried with."""
    found: dict[str, list[Trial]] = {name: [] for name in NAMES}
    for trial in trials():
        if trial.operator in found and trial.dtype in (torch.float32, torch.int8):
            found[trial.operator].append(trial)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_that_writes_its_slot_again_and_again_is_in_a_graph(
    name: str, made: dict[str, list[Trial]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways, "RUNS_BEFORE_SCRIPTS", 0)
    assert made[name]
    for trial in made[name]:
        plan = decode(trial.program).plans[0]
        chain = plan.chains[0]
        buffer = encoded(
            replace(plan, chains=(replace(chain, instructions=chain.instructions * 3),))
        )
        method, single = (Runtime.get().load_program(buffer).load_method("forward") for _ in "ab")
        single.tracer = EventTracer()
        for _ in range(4):
            pairs = zip(method.execute(trial.given), single.execute(trial.given), strict=True)
            assert all(_same_bits(one, other) for one, other in pairs)
        fused = method._runner.plan.fused
        assert fused is not None
        assert [len(one.plain) for one in fused.calls if isinstance(one, Stretch)] == [3]


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.dtype is not other.dtype or one.shape != other.shape:
        return False
    left, right = (tensor.reshape(-1).view(torch.uint8) for tensor in (one, other))
    return torch.equal(left, right)
