"""Tables of embeddings stay quantized in the file where XNNPACK takes the rest of a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from compiler.llm.config import LlmConfig
from compiler.llm.export import export_llm
from compiler.llm.quantization import QuantizationConfig
from runtime import Runtime
from tests.llm.configs import CACHE, PROMPT, config

FAMILIES: dict[str, LlmConfig] = {
    "nano": config("nano_gpt", CACHE),
    "llama": config("llama3", CACHE),
    "tied": config("qwen3_0_6b", CACHE, tie_word_embeddings=True, head_dim=16),
    "scaled": config("gemma", CACHE, head_dim=16),
}
UNTIED = ("nano", "llama")
OPERATORS = {"4,32": "embedding_4bit", "8,0": "embedding_byte", "2,0": "embedding_2bit"}


def _program(chosen: LlmConfig, backend: str) -> tuple[bytes, set[str]]:
    on = replace(getattr(chosen.backend, "xnnpack"), enabled=backend == "xnnpack")  # noqa: B009
    found = export_llm(replace(chosen, backend=replace(chosen.backend, xnnpack=on)))
    plan: Any = found.executorch_program.execution_plan[0]
    names = {one.name.partition("::")[2] for one in plan.operators}
    return found.buffer, names | {one.id for one in plan.delegates}


def _logits(program: bytes) -> torch.Tensor:
    method = Runtime.get().load_program(program).load_method("forward")
    (found,) = method.execute([torch.tensor([PROMPT[:3]]), torch.tensor([0])])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("word", "layers"), [*((word, None) for word in OPERATORS), ("4,32", "8da4w")]
)
def test_rows_are_looked_up_quantized_beside_xnnpack(
    family: str, word: str, layers: str | None
) -> None:
    plain = FAMILIES[family]
    how = QuantizationConfig(embedding_quantize=word, qmode=layers, group_size=32)
    chosen = replace(plain, quantization=how)
    program, names = _program(chosen, "xnnpack")
    assert "XnnpackBackend" in names
    assert OPERATORS[word] in names
    assert "embedding" not in names
    portable, _ = _program(chosen, "portable")
    error = 1e-5 if layers is None else 0.05  # layers of both quantize what they are given
    assert torch.allclose(_logits(program), _logits(portable), atol=error, rtol=error)
    if layers is None and family in UNTIED:  # a tied layer keeps the table in floating point
        assert len(program) < len(_program(plain, "xnnpack")[0])
