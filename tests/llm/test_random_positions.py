"""Random inputs of language models with a cache: tokens and positions that fit into it."""

from __future__ import annotations

import pytest

from compiler.llm.export import export_llm
from inspector.worker.inputs import generated_inputs
from runtime import Runtime
from tests.llm.configs import CASES

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["nano_cache", "nano_custom", "llama", "gemma3", "sink"])
def test_random_tokens_and_positions_run_for_every_seed(name: str) -> None:
    program = Runtime().load_program(export_llm(CASES[name]).buffer)
    method = program.load_method("forward")
    plan = program.file.plan("forward")
    seen: set[int] = set()
    for seed in range(6):
        tokens, place = generated_inputs(plan, "random", seed)
        method.execute([tokens, place])
        seen.update(tokens.flatten().tolist())
    assert max(seen) > 1
