"""Graphs of attention for one token: bits of single calls, prompts between, wrong positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from compiler.llm.config import config_of
from compiler.llm.export import export_llm
from runtime import EventTracer, ExecutionError, Method, Runtime
from runtime.execution import ways
from runtime.execution.fused.stretches import Stretch, SymbolicStretch

pytestmark = pytest.mark.slow
_CONTEXT = 16
_OF_PROMPT = 13  # runs before graphs are made: the next one is that of the second prompt
_SIZES = {
    "dim": 32,
    "n_layers": 2,
    "n_heads": 4,
    "n_kv_heads": 2,
    "vocab_size": 64,
    "hidden_dim": 48,
}


@pytest.fixture(scope="module", params=["portable", "xnnpack", "8da4w", "int8 cache"])
def program(request: pytest.FixtureRequest) -> bytes:
    config: dict[str, Any] = {
        "base": {"model_class": "llama3", "params": _SIZES, "seed": 0},
        "model": {
            "use_kv_cache": True,
            "use_sdpa_with_kv_cache": True,
            "quantize_kv_cache": request.param == "int8 cache",
        },
        "export": {"max_seq_length": 8, "max_context_length": _CONTEXT},
        "backend": {"xnnpack": {"enabled": request.param != "portable"}},
    }
    if request.param == "8da4w":
        config["quantization"] = {"qmode": "8da4w", "group_size": 16}
    return bytes(export_llm(config_of(config)).buffer)


def _method(program: bytes) -> Method:
    return Runtime().load_program(program).load_method("forward")


def _call(method: Method, start: int, tokens: Sequence[int]) -> torch.Tensor:
    return method.execute([torch.tensor([tokens]), torch.tensor([start])])[0].clone()


def _logits(method: Method) -> list[torch.Tensor]:
    """Return the logits of three generations: a prompt, then tokens one by one."""
    found: list[torch.Tensor] = []
    for first in range(3):
        found.append(_call(method, 0, [first, 5, 9]))
        found += [_call(method, place, [place * 3 + first]) for place in range(3, _CONTEXT)]
    return found


def _graphs(method: Method) -> list[SymbolicStretch]:
    fused = method._runner.plan.fused
    calls = [] if fused is None else fused.calls
    graphs = [one for one in calls if isinstance(one, SymbolicStretch)]
    return [one for one in graphs if one.position.starts]


def _single(program: bytes) -> list[torch.Tensor]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "RUNS_BEFORE_SCRIPTS", 1 << 30)
        return _logits(_method(program))


def _graphed(method: Method) -> list[tuple[int, ...]]:
    """Return the instructions of each graph."""
    fused = method._runner.plan.fused
    calls = [] if fused is None else fused.calls
    return [tuple(one.places) for one in calls if isinstance(one, Stretch)]


def _first_of_a_token(program: bytes) -> Method:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "RUNS_BEFORE_SCRIPTS", 3)
        method = _method(program)
        for place in range(8):
            _call(method, place, [7])
    return method


@pytest.mark.parametrize("recorded", [3, _OF_PROMPT])
def test_tokens_have_the_bits_of_single_calls(
    program: bytes, recorded: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Graphs are made of a token; where the first ones are made of a prompt, by the next token."""
    wanted = _single(program)
    monkeypatch.setattr(ways, "RUNS_BEFORE_SCRIPTS", recorded)
    method = _method(program)
    found = _logits(method)
    assert all(torch.equal(one, two) for one, two in zip(found, wanted, strict=True))
    assert _graphs(method)
    assert _graphed(method) == _graphed(_first_of_a_token(program))
    assert not any(one.failures for one in _graphs(method))


def test_prompts_alone_end_the_search_for_a_token(
    program: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways, "RUNS_BEFORE_SCRIPTS", 0)
    method = _method(program)
    for first in range(8):  # a token before each prompt looks like a generation
        _call(method, 0, [first])
        _call(method, 1, [first, 5, 9])
        _call(method, 0, [5, 9])
    fused = method._runner.plan.fused
    assert fused is not None
    assert fused.recordings <= 4
    wanted = _method(program)
    assert torch.equal(_call(method, 0, [3, 4]), _call(wanted, 0, [3, 4]))


def test_positions_outside_of_the_cache_leave_it_as_it_is(program: bytes) -> None:
    method = _method(program)
    wanted = _logits(method)
    assert _graphs(method)
    for start in (-1, _CONTEXT):
        with pytest.raises(ExecutionError):
            _call(method, start, [7])
    assert torch.equal(_call(method, _CONTEXT - 1, [(_CONTEXT - 1) * 3 + 2]), wanted[-1])
    steps = _method(program)
    steps.tracer = EventTracer()
    for one, other in zip(_logits(method), _logits(steps), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
