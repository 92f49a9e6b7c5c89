"""Several prompts to one runner: what the model has seen, where it goes on, what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from compiler.llm.config import MethodConfig
from compiler.llm.export import export_llm
from runtime import ExecutionError
from runtime.llm.generation import GenerationConfig, Sampler
from runtime.llm.text_runner import TextRunner
from runtime.llm.tokenizers import ByteTokenizer
from tests.llm.configs import CACHE, config

FOUR = GenerationConfig(max_new_tokens=4)


@pytest.fixture(scope="module", params=["cache", "whole"])
def runner(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TextRunner:
    path = tmp_path_factory.mktemp("nano") / "model.pte"
    model = CACHE if request.param == "cache" else None
    path.write_bytes(export_llm(config(model=model, vocab_size=256)).buffer)
    return TextRunner(path, "bytes")


@pytest.mark.slow
def test_the_next_prompt_comes_behind_the_whole_answer(runner: TextRunner) -> None:
    runner.reset()
    first = runner.generate("ab", FOUR).tokens
    second = runner.generate("cd", FOUR)
    runner.reset()
    whole = runner.generate_tokens([*b"ab", *first, *b"cd"], FOUR)
    assert second.tokens == whole.tokens
    assert second.prompt_tokens == 2
    assert sum(one.tokens for one in second.calls) == 1 + 2 + 3


def test_a_text_goes_on_behind_any_of_its_positions(runner: TextRunner) -> None:
    runner.reset()
    wanted = runner.generate("abcd", FOUR).tokens
    assert runner.generate_from_pos("cd", 2, FOUR).tokens == wanted
    for position in (-1, 40):
        with pytest.raises(ExecutionError, match="the conversation has"):
            runner.generate_from_pos("x", position, FOUR)


@pytest.mark.parametrize(
    "changes", [{"temperature": float("nan")}, {"top_p": float("nan")}, {"seed": 1 << 70}]
)
def test_a_choice_of_no_token_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ExecutionError):
        Sampler(replace(FOUR, **changes))


def test_no_token_is_drawn_from_logits_that_are_not_finite() -> None:
    sampler = Sampler(GenerationConfig(temperature=1.0))
    assert sampler.choose(torch.tensor([float("-inf"), 1.0, float("-inf")])) == 1
    with pytest.raises(ExecutionError, match="not finite"):
        sampler.choose(torch.tensor([0.0, float("nan")]))
    with pytest.raises(ExecutionError, match="not finite"):
        Sampler(GenerationConfig(temperature=0)).choose(torch.tensor([0.0, float("nan"), 1.0]))


class _Other(ByteTokenizer):
    def encode(self, text: str, *, special: bool = False) -> list[int]:
        return [one + 900 for one in super().encode(text, special=special)]

    def decode(self, tokens: Sequence[int]) -> str:
        return super().decode([one - 900 for one in tokens])


def test_the_tokenizer_of_another_model_is_named(runner: TextRunner) -> None:
    other = TextRunner(runner.program, _Other())
    with pytest.raises(ExecutionError, match="token 997, the program has 256 tokens"):
        other.generate("a", FOUR)


@pytest.mark.parametrize("prompt", ["abc", "abcd", "abcdefghijk"])
@pytest.mark.slow
def test_a_prefill_of_one_length_leaves_the_rest_to_decode(tmp_path: Path, prompt: str) -> None:
    chosen = config("llama3", CACHE, vocab_size=256)
    methods = (MethodConfig("prefill", export_seq_len=4), MethodConfig("decode", export_seq_len=1))
    paths = tmp_path / "two.pte", tmp_path / "one.pte"
    several = replace(chosen, multimethod=replace(chosen.multimethod, methods=methods))
    for path, one in zip(paths, (several, chosen), strict=True):
        path.write_bytes(export_llm(one).buffer)
    two, one = (TextRunner(path, "bytes").generate(prompt, FOUR) for path in paths)
    assert two.tokens == one.tokens
    fed = [call.tokens for call in two.calls][: -len(two.tokens) + 1]
    assert fed == [4] * (len(prompt) // 4) + [1] * (len(prompt) % 4)
