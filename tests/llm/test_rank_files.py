"""Files of ranks: how text is split and which tokens are special is that of their family."""

from __future__ import annotations

import base64
import random
from pathlib import Path

import pytest

from runtime.llm.rank_families import FAMILIES, family_of, special_tokens
from runtime.llm.tokenizers import TokenizerError, load_tokenizer
from tests.llm.tokenizer_files import TEXT, ranks_file

_PARTS = (
    "I'm",
    " HeLLO",
    "12345",
    "\n\n",
    "  ",
    "naïve",
    "日本",
    "?!\n",
    "\t",
    "'S",
    "a/",
    " ",
    "é",
)


@pytest.mark.parametrize("name", ["r50k_base", "cl100k_base", "o200k_base"])
def test_texts_are_split_as_by_the_encodings_of_the_library(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    library = pytest.importorskip("tiktoken")
    public = pytest.importorskip("tiktoken_ext.openai_public")
    words = {bytes([one]): one for one in range(256)}
    draw = random.Random(3)
    texts = ["".join(draw.choices(_PARTS, k=9)) for _ in range(200)]
    for text in texts:  # whatever splitting leaves together becomes one token
        data = text.encode()
        for size in range(2, 7):
            for at in range(len(data) - size + 1):
                words.setdefault(data[at : at + size], len(words))
    monkeypatch.setattr(public, "load_tiktoken_bpe", lambda *_args, **_named: words)
    made = getattr(public, name)()
    special = made["special_tokens"]
    made = {**made, "special_tokens": {}}
    made.pop("explicit_n_vocab", None)
    theirs = library.Encoding(**made)
    family = FAMILIES[name]
    ours = library.Encoding(
        "ours", pat_str=family.pattern, mergeable_ranks=words, special_tokens={}
    )
    for text in texts:
        assert ours.encode(text) == theirs.encode(text)
    assert special_tokens(family.ranks, family, {})[0] == special


def test_the_number_of_ranks_or_a_name_tells_the_family() -> None:
    assert family_of(151_643, {}) is FAMILIES["qwen"]
    assert special_tokens(151_643, FAMILIES["qwen"], {})[0]["<|im_end|>"] == 151_645
    assert special_tokens(128_000, FAMILIES["llama3"], {})[0]["<|eot_id|>"] == 128_009
    assert len(FAMILIES["llama3"].special) == 256
    assert family_of(300, {"pat_str": "qwen"}) is FAMILIES["qwen"]


def test_a_file_of_no_known_family_is_refused_with_what_to_write(tmp_path: Path) -> None:
    path = ranks_file(tmp_path, bos_token="<s>")
    with pytest.raises(TokenizerError) as found:
        load_tokenizer(path)
    assert str(found.value).startswith(
        f"{path}: 260 ranks are those of no known family (llama3 128,"
    )
    assert 'set "pat_str" in tokenizer_config.json' in str(found.value)


def test_the_folder_says_pattern_special_tokens_and_ends(tmp_path: Path) -> None:
    added = {
        "270": {"content": "<|start|>", "special": True},
        "271": {"content": "<|stop|>", "special": True},
        "273": {"content": "<think>", "special": False},
    }
    config = {"pat_str": r"\p{N}|[^\p{N}]+", "added_tokens_decoder": added}
    path = ranks_file(tmp_path, **config, bos_token="<|start|>", eos_token={"content": "<|stop|>"})
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [271, 5]}')
    own = load_tokenizer(path.rename(tmp_path / "own.tiktoken").parent)
    assert (own.bos, own.eos, own.size) == (270, (271, 5), 274)
    assert own.encode("me<think>") == [256, 273]
    assert own.encode("<|start|>me", special=True) == [270, 256]
    assert 270 not in own.encode("<|start|>me")
    assert own.decode([270, *own.encode(f"<think>{TEXT}"), 272, 271]) == f"<think>{TEXT}"


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"pat_str": "("}, r"tokenizer\.model: "),
        ({"pat_str": "x", "added_tokens_decoder": {"3": {"content": "a"}}}, "decoder.3: expected"),
        ({"pat_str": "x", "added_tokens_decoder": {"300": "a"}}, "added_tokens_decoder.300: exp"),
    ],
)
def test_what_the_folder_says_wrongly_is_one_sentence(
    tmp_path: Path, config: dict[str, object], sentence: str
) -> None:
    with pytest.raises(TokenizerError, match=sentence):
        load_tokenizer(ranks_file(tmp_path, **config))


def test_ranks_that_two_special_tokens_share_are_refused(tmp_path: Path) -> None:
    added = {"300": {"content": "a"}, "301": {"content": "a"}}
    path = ranks_file(tmp_path, pat_str="qwen", added_tokens_decoder=added)
    assert base64.b64decode(path.read_bytes().split()[0]) == b"\x00"
    with pytest.raises(TokenizerError, match=r"added_tokens_decoder\.301"):
        load_tokenizer(path)
