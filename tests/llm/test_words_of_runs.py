"""llm run with tokenizers of words: its text, what is streamed, and the token that ends it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from runtime.llm.generation import GenerationConfig
from runtime.llm.text_runner import TextRunner
from runtime.llm.tokenizers import load_tokenizer
from tests.inspector.cli_runs import run
from tests.llm.configs import CACHE, LENGTHS, NANO
from tests.llm.tokenizer_files import WORDS

pytestmark = pytest.mark.slow
PROMPT = "mice met"


def _run(*words: str) -> dict[str, Any]:
    found = run("llm", "run", *words, "--prompt", PROMPT, "--format", "json")
    assert found.code == 0, found.err
    return json.loads(found.out)["data"]


@pytest.mark.parametrize("kind", WORDS)
def test_text_and_ends_are_those_of_the_tokens(kind: str, tmp_path: Path) -> None:
    own = load_tokenizer(WORDS[kind](tmp_path))
    config, out = tmp_path / "model.yaml", tmp_path / "out"
    params = {**NANO, "vocab_size": own.size}
    base = {"params": params, "tokenizer_path": "tokenizer.json"}
    config.write_text(yaml.safe_dump({"base": base, "model": CACHE, "export": LENGTHS}))
    found = run("llm", "export", str(config), "-o", str(out))
    assert found.code == 0, found.err
    whole = _run(str(out), "--temperature", "1.5", "--seed", "3", "--max-new-tokens", "24")
    tokens = whole["tokens"]
    before = own.encode(PROMPT)
    assert whole["prompt_tokens"] == len(before)
    assert len(tokens) == 24
    assert whole["text"] == own.decode(tokens)
    pieces: list[str] = []
    chosen = GenerationConfig(max_new_tokens=24, temperature=1.5, seed=3)
    runner = TextRunner(out / "model.pte", own)
    assert runner.generate(PROMPT, chosen, pieces.append).tokens == tokens
    assert "".join(pieces) == whole["text"]
    last = next(at for at in range(4, 24) if tokens[at] not in tokens[:at])
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [tokens[last]]}))
    ended = _run(str(out), "--temperature", "1.5", "--seed", "3", "--max-new-tokens", "24")
    assert ended["ended"] != whole["ended"]
    assert ended["tokens"][:last] == tokens[:last]
    assert len(ended["tokens"]) <= last + 1
    assert ended["text"] == own.decode(tokens[:last])
