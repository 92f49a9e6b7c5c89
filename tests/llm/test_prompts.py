"""Prompts at the edge, by each kind of tokenizer: a result, or one sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from compiler.llm.config import MethodConfig
from compiler.llm.export import export_llm
from runtime import ExecutionError
from runtime.llm.generation import GenerationConfig
from runtime.llm.text_runner import TextRunner
from tests.inspector.cli_runs import run
from tests.llm.configs import CACHE, config
from tests.llm.tokenizer_files import KINDS

pytestmark = pytest.mark.slow
TWO = GenerationConfig(max_new_tokens=2)
WITHOUT_BEGIN = ("byte fallback",)  # its files name no token that begins a text


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nano") / "model.pte"
    path.write_bytes(export_llm(config(model=CACHE, vocab_size=520)).buffer)
    return path


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def runner(program: Path, kind: str, tmp_path: Path) -> TextRunner:
    return TextRunner(program, KINDS[kind](tmp_path))


def _refused(runner: TextRunner, prompt: str, config: GenerationConfig) -> str:
    with pytest.raises(ExecutionError) as found:
        runner.generate(prompt, config)
    return found.value.reason


def test_an_empty_prompt_is_refused_unless_a_token_begins_it(runner: TextRunner, kind: str) -> None:
    assert _refused(runner, "", TWO).startswith("the prompt has no tokens: expected a text, or")
    begun = GenerationConfig(max_new_tokens=2, num_bos=1)
    if kind in WITHOUT_BEGIN:
        for prompt in ("", "mice"):  # and none is left out unseen
            told = _refused(runner, prompt, begun)
            assert told.startswith("num_bos 1: which token begins a text? neither the program")
        return
    stats = runner.generate("", begun)
    assert (stats.prompt_tokens, len(stats.tokens)) == (1, 2)


def test_a_prompt_fills_the_context_and_one_token_more_is_refused(runner: TextRunner) -> None:
    runner.load()
    letters = next(  # so many that they are tokens for the whole context
        text
        for count in range(1, 2 * runner.context)
        if len(runner.tokenizer.encode(text := "mx" * count)) >= runner.context
    )
    tokens = runner.tokenizer.encode(letters)[: runner.context]
    stats = runner.generate_tokens(tokens, GenerationConfig())
    assert len(stats.tokens) == 1  # it needs no place of its own
    runner.reset()
    told = _refused(runner, letters * 2, TWO)
    assert told.endswith(f"tokens at 0, the context {runner.context} positions")
    assert len(runner.generate("mice", TWO).tokens) == 2  # and it runs as before


def test_a_stop_text_that_never_comes_ends_nothing(runner: TextRunner) -> None:
    plain = runner.generate("mice", TWO)
    runner.reset()
    stopped = GenerationConfig(max_new_tokens=2, stop=("<|nowhere|>", "never"))
    assert runner.generate("mice", stopped).tokens == plain.tokens
    empty = GenerationConfig(max_new_tokens=2, stop=("",))
    assert _refused(runner, "mice", empty) == (
        "stop: expected a token's name or a text, found an empty one"
    )


def test_tokens_behind_those_of_the_tokenizer_have_no_text(runner: TextRunner) -> None:
    own = runner.tokenizer
    known = own.encode("mice")
    more = [own.size, own.size + 7, 10**6]  # of a program whose table is padded
    assert own.decode([*known, *more]) == own.decode(known)
    assert own.decode(more) == ""


def test_a_chat_without_a_template_is_one_sentence(
    program: Path, kind: str, tmp_path: Path
) -> None:
    files = KINDS[kind](tmp_path)
    words = ("--prompt", "mice", "--chat")
    found = run("llm", "run", str(program), "--tokenizer", str(files), *words)
    assert found.code
    assert "neither chat_template.jinja nor one in tokenizer_config.json" in found.err
    assert len(found.err.strip().splitlines()) == 1


def _of_fixed_length(folder: Path, **options: bool) -> TextRunner:
    """Return the runner of a program that takes 16 tokens in each call."""
    folder.mkdir()
    chosen = config(vocab_size=256, model={"enable_dynamic_shape": False})
    lengths = replace(chosen.export, max_seq_length=16)
    chosen = replace(chosen, export=lengths, debug=replace(chosen.debug, **options))
    (folder / "model.pte").write_bytes(export_llm(chosen).buffer)
    return TextRunner(folder / "model.pte", "bytes")


def test_a_program_of_one_length_generates_from_any_prompt(tmp_path: Path) -> None:
    """Tokens behind the text are not read; without logits of all positions it says what to do."""
    changing = tmp_path / "changing.pte"
    changing.write_bytes(export_llm(config(vocab_size=256)).buffer)
    other = TextRunner(changing, "bytes")
    whole = _of_fixed_length(tmp_path / "whole", generate_full_logits=True)
    last = _of_fixed_length(tmp_path / "last")
    for prompt in ("a", "mice", "sixteen letters."):
        count = GenerationConfig(max_new_tokens=17 - len(prompt))
        wanted = other.generate(prompt, count).tokens
        assert whole.generate(prompt, GenerationConfig()).tokens == wanted
        whole.reset()
        other.reset()
    told = _refused(last, "mice", TWO)
    assert told.startswith("forward takes exactly 16 tokens in each call")
    assert "found 4: export it with debug.generate_full_logits=true" in told
    last.reset()
    assert len(last.generate("sixteen letters.", GenerationConfig(max_new_tokens=1)).tokens) == 1


def test_fewer_tokens_than_a_call_takes_are_refused_with_a_cache(tmp_path: Path) -> None:
    methods = (MethodConfig("forward", export_seq_len=4),)
    chosen = config("llama3", CACHE, vocab_size=256)
    chosen = replace(chosen, multimethod=replace(chosen.multimethod, methods=methods))
    (tmp_path / "model.pte").write_bytes(export_llm(chosen).buffer)
    runner = TextRunner(tmp_path / "model.pte", "bytes")
    assert "export_seq_len=1" in _refused(runner, "abc", TWO)
    runner.reset()
    assert "found 1" in _refused(runner, "abcd", TWO)  # behind the first token
