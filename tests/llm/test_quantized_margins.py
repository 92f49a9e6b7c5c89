"""What an 8da4w model on XNNPACK loses beside its quantized module: the rounding of scales.

XNNPACK stores the scales of groups as bfloat16. A module with scales rounded likewise has the same
logits; other tokens than those of the plain one are chosen only where the two likeliest are closer
than that error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from compiler.llm.export import export_llm, exported_llm, quantized_programs
from runtime import Runtime
from tests.llm.configs import CUSTOM, PROMPT, config, generated

pytestmark = pytest.mark.slow
COUNT = 16
Step = Callable[..., torch.Tensor]


def _logits(step: Step, tokens: list[int]) -> torch.Tensor:
    """Return the logits behind a prompt and each of some tokens, one a call."""
    found = [step(torch.tensor([PROMPT]), torch.tensor([0])).reshape(-1).clone()]
    for at, token in enumerate(tokens):
        given = torch.tensor([[token]]), torch.tensor([len(PROMPT) + at])
        found.append(step(*given).reshape(-1).clone())
    return torch.stack(found)


@pytest.mark.parametrize("left", ["", "model.layers.1.mlp.down_proj"])
def test_tokens_differ_only_by_rounded_scales(left: str) -> None:
    plain = config("llama3", CUSTOM)
    modules = {left: "none"} if left else {}
    chosen = replace(
        plain,
        quantization=replace(plain.quantization, qmode="8da4w", group_size=32, modules=modules),
        backend=replace(plain.backend, xnnpack=replace(plain.backend.xnnpack, enabled=True)),
    )
    program = quantized_programs(chosen, exported_llm(chosen).programs)["forward"]
    with torch.no_grad():
        eager = program.module()
        tokens = generated(eager, PROMPT, COUNT, cache=True)
        wanted = _logits(program.module(), tokens[:-1])
        for weight in program.state_dict.values():
            scale: Any = getattr(weight, "scale", None)  # of a quantized one
            if scale is not None:
                scale.copy_(scale.bfloat16().float())
        rounded = _logits(program.module(), tokens[:-1])
    loaded = Runtime.get().load_program(export_llm(chosen).buffer).load_method("forward")
    found = _logits(lambda *given: loaded.execute(list(given))[0], tokens[:-1])
    # Behind a value that rounds to another quantum, later calls differ through the cache.
    torch.testing.assert_close(found[0], rounded[0], rtol=0, atol=1e-5)
    assert (found - wanted).abs().max() < 0.05 * wanted.abs().max()
    best = wanted.argmax(1)
    for row, own in enumerate(found.argmax(1)):
        margin = wanted[row, best[row]] - wanted[row, own]
        assert margin <= 2 * (found[row] - wanted[row]).abs().max()
