"""Chats by each kind of tokenizer: templates, special tokens, what ends a text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from compiler.llm.config import read_config
from compiler.llm.export import exported_llm
from compiler.llm.model import build_model
from compiler.llm.safetensors import write_safetensors
from runtime.llm.chat import chat_prompt
from runtime.llm.stops import StopStrings
from runtime.llm.tokenizers import load_tokenizer
from tests.inspector.cli_runs import run
from tests.llm.configs import CACHE, LENGTHS, NANO, generated
from tests.llm.tokenizer_files import KINDS, json_files, ranks_file

pytestmark = pytest.mark.slow
BEGINS = {
    "json": "<s>",
    "byte fallback": "<s>",
    "sentencepiece": "<s>",
    "tiktoken": "<|begin_of_text|>",
    "llama2.c": "<s>",
}
TEMPLATE = (
    "{%- if tools is not none %}{{ raise_exception('tools') }}{% endif -%}"
    "{{ bos_token }}{% for m in messages %}{% if loop.index > 2 %}{% break %}{% endif %}"
    "{{ m.role }}: {{ m.content }}{% endfor %}"
)


def _folder(folder: Path, kind: str) -> Path:
    folder.mkdir()
    made = KINDS[kind](folder)
    config = {"chat_template": TEMPLATE, "bos_token": BEGINS[kind], "eos_token": "</s>"}
    path = folder / "tokenizer_config.json"
    said = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**said, **config}))
    return folder if made == folder else made


def _data(*words: object) -> dict[str, Any]:
    found = run("llm", *map(str, words), "--format", "json")
    assert found.code == 0, found.err
    return json.loads(found.out)["data"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_chat_runs_with_each_kind_of_tokenizer(tmp_path: Path, kind: str) -> None:
    tokenizer = _folder(tmp_path / "tokens", kind)
    own = load_tokenizer(tokenizer)
    params = {**NANO, "vocab_size": own.size}
    content = {
        "base": {"params": params, "tokenizer_path": str(tokenizer)},
        "model": CACHE,
        "export": LENGTHS,
    }
    path = tmp_path / "model.yaml"
    path.write_text(yaml.safe_dump(content))
    _data("export", path, "-o", tmp_path / "out")
    asked = (tmp_path / "out", "--prompt", "met mice", "--max-new-tokens", 6, "--ignore-eos")
    report = _data("run", *asked, "--chat")
    assert report["prompt"] == f"{BEGINS[kind]}user: met mice"
    tokens = [own.bos, *own.encode("user: met mice")]
    assert report["prompt_tokens"] == len(tokens)
    with torch.no_grad():
        module = build_model(read_config(path)).module
        assert report["tokens"] == generated(module, tokens, 6, cache=True)
    plain = _data("run", *asked)
    assert plain["prompt_tokens"] == len(own.encode("met mice"))
    assert plain["text"] == own.decode(plain["tokens"])


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_are_named_only_where_they_are_meant(tmp_path: Path, kind: str) -> None:
    own, name = load_tokenizer(_folder(tmp_path / "tokens", kind)), BEGINS[kind]
    assert own.token(name) == own.bos
    assert own.encode(f"{name}met", special=True) == [own.bos, *own.encode("met")]
    assert own.token("no such token") is None
    if kind not in ("json", "byte fallback"):  # whose file says itself which texts are tokens
        assert own.bos not in own.encode(f"{name}met")
        assert own.bos not in own.encode("met", special=True)


def test_generation_ends_at_a_token_or_a_text(tmp_path: Path) -> None:
    content = {
        "base": {"params": {**NANO, "vocab_size": 256}},
        "model": CACHE,
        "export": LENGTHS,
    }
    path = tmp_path / "model.yaml"
    path.write_text(yaml.safe_dump(content))
    _data("export", path, "-o", tmp_path / "out")
    asked = ("run", tmp_path / "out", "--prompt", "Hello", "--max-new-tokens", 12, "--tokenizer")
    found = load_tokenizer("bytes")
    whole = _data(*asked, "bytes")
    assert whole["ended"] == "length"
    # A tokenizer whose tokens are letters, so that each generated token is a text of its own.
    letters = {chr(0x4E00 + at) if at < 32 or at > 126 else chr(at): at for at in range(256)}
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=letters, merges=[]))
    made.decoder = tokenizers.decoders.Fuse()
    made.save(str(tmp_path / "tokenizer.json"))
    del found
    names = {at: letter for letter, at in letters.items()}
    file = tmp_path / "tokenizer.json"
    text = _data(*asked, file)
    pieces = [names[one] for one in text["tokens"]]
    assert text["text"] == "".join(pieces)
    stop = "".join(pieces[4:6])
    ended = _data(*asked, file, "--stop", stop, "--stop", "nothing of this")
    assert ended["ended"] == "stop text"
    assert ended["text"] == text["text"][: text["text"].index(stop)]
    by_token = _data(*asked, file, "--stop", pieces[2])
    assert by_token["ended"] == "end of text"
    assert by_token["tokens"][-1] == letters[pieces[2]]
    assert len(by_token["tokens"]) == pieces.index(pieces[2]) + 1


def test_what_may_begin_a_stop_text_is_held_back() -> None:
    stops = StopStrings(("User:", "\n\n"))
    assert [stops.add(one) for one in ("a U", "se", "d", " User", "", ":")] == [
        "a ", "", "Used", " ", "", "",
    ]  # fmt: skip
    assert stops.found
    assert stops.add("more") == ""
    open_end = StopStrings(("\n\n",))
    assert open_end.add("x\n") == "x"
    assert open_end.rest() == "\n"
    assert not open_end.found


def test_ends_of_a_chat_come_from_the_generation_config(tmp_path: Path) -> None:
    content = {
        "model_type": "llama",
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "vocab_size": 300,
        "intermediate_size": 32,
        "eos_token_id": 1,
    }
    json_files(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(content))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [1, 7]}))
    (tmp_path / "model.yaml").write_text(yaml.safe_dump({"base": {"model_class": "llama3"}}))
    base = {"base": {"model_class": "llama3", "params": content}}
    (tmp_path / "random.yaml").write_text(yaml.safe_dump(base))
    weights = build_model(read_config(tmp_path / "random.yaml")).module.state_dict()
    write_safetensors(weights, tmp_path / "model.safetensors")
    chosen = read_config(tmp_path / "model.yaml", ("base.checkpoint=.",))
    assert exported_llm(chosen).constants["get_eos_ids"] == [1, 7]
    assert load_tokenizer(tmp_path).eos == (1, 7)


def test_ranks_have_the_special_tokens_of_a_chat(tmp_path: Path) -> None:
    own = load_tokenizer(ranks_file(tmp_path))
    count = own.size - 256
    tokens = own.encode("<|start_header_id|>met<|eot_id|>", special=True)
    assert tokens[0] == count + 6
    assert tokens[-1] == count + 9
    assert tokens[-1] in own.eos
    assert own.decode(tokens) == "met"


def test_a_template_may_use_json_and_the_date() -> None:
    template = "{{ messages[0] | tojson }} {{ strftime_now('%Y') | length }}"
    messages = [{"role": "user", "content": "<é>"}]
    assert chat_prompt(template, {}, messages) == '{"role": "user", "content": "<é>"} 4'
