"""Tokenizers by the content of their file."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from runtime.llm.chat import ChatError, chat_prompt, chat_template
from runtime.llm.text_stream import TextStream
from runtime.llm.tokenizers import Tokenizer, TokenizerError, load_tokenizer
from tests.llm.tokenizer_files import (
    KINDS,
    TEXT,
    WORDS,
    fallback_files,
    json_files,
    likeliest_files,
    ranks_file,
    sentencepiece_file,
)


@pytest.mark.parametrize("make", [*KINDS.values(), likeliest_files, None])
def test_a_text_comes_back_whole_and_piece_by_piece(tmp_path: Path, make: object) -> None:
    own: Tokenizer = load_tokenizer("bytes" if make is None else make(tmp_path))  # type: ignore
    tokens = own.encode(TEXT)
    assert max(tokens) < own.size
    assert own.decode(tokens) == TEXT
    stream = TextStream(own)
    pieces = [stream.add(one) for one in tokens]
    assert "".join(pieces) == TEXT
    assert "�" not in "".join(pieces)


_PARTS = (
    " ti",
    "me",
    "  ",
    "\n",
    "naïve",
    "🦊",
    "日本",
    "Ａ",
    "\ufffd",
    "<s>",
    "</s>",
    " <s> a",
    "<tool>",
    "<|im_end|>",
    "▁",
)


@pytest.mark.parametrize("make", [*KINDS.values(), *WORDS.values(), None])
def test_pieces_of_any_text_are_those_of_the_whole(tmp_path: Path, make: object) -> None:
    own: Tokenizer = load_tokenizer("bytes" if make is None else make(tmp_path))  # type: ignore
    draw = random.Random(5)
    for count in range(120):
        tokens = own.encode("".join(draw.choices(_PARTS, k=count % 12)))
        if count % 2 and make is not fallback_files:  # its decoder takes back what was valid
            tokens = [draw.randrange(own.size) for _ in range(count)]
        stream = TextStream(own)
        pieces = [stream.add(one) for one in tokens]
        assert "".join(pieces) + stream.rest() == own.decode(tokens)


def test_a_character_that_was_read_stays_behind_invalid_bytes(tmp_path: Path) -> None:
    own = load_tokenizer(fallback_files(tmp_path))
    letter = own.token("m")
    assert letter is not None
    tokens = [*(3 + byte for byte in (*"é".encode(), 0xFF)), letter]
    stream = TextStream(own)
    assert "".join(map(stream.add, tokens)) + stream.rest() == "é\ufffdm"


def test_special_tokens_are_read(tmp_path: Path) -> None:
    own = load_tokenizer(json_files(tmp_path))
    assert (own.bos, own.eos) == (0, (1,))


@pytest.mark.parametrize("data", [b"", b"hello", b"\x00" * 40, b"{", b"\n\x01"])
def test_a_file_that_is_no_tokenizer_is_one_sentence(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "tokenizer.model"
    path.write_bytes(data)
    with pytest.raises(TokenizerError, match=r"tokenizer\.model"):
        load_tokenizer(path)


@pytest.mark.parametrize("kept", [0.3, 0.9, 0.995])
def test_ranks_that_are_cut_short_are_one_sentence(tmp_path: Path, kept: float) -> None:
    path = ranks_file(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(TokenizerError, match=r"tokenizer\.model"):
        load_tokenizer(path)


def test_messages_go_through_the_template(tmp_path: Path) -> None:
    template = "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}>"
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"chat_template": template, "bos_token": "<s>"})
    )
    found, tokens = chat_template(tmp_path)
    messages = [{"role": "user", "content": "Hi"}]
    assert chat_prompt(found, tokens, messages) == "<s>[user]Hi>"
    with pytest.raises(ChatError, match="fails"):
        chat_prompt("{{ ''.__class__.__mro__ }}{{ x.y.z }}", tokens, messages)
    with pytest.raises(ChatError, match="neither"):
        chat_template(tmp_path / "none")


def test_a_pipe_is_not_read_for_a_tokenizer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tokenizer.json")
    with pytest.raises(TokenizerError, match=r"tokenizer\.json: not a regular file"):
        load_tokenizer(tmp_path / "tokenizer.json")


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char"])
@pytest.mark.parametrize("fallback", [False, True])
def test_spaces_in_a_row_keep_their_number_piece_by_piece(
    tmp_path: Path, kind: str, fallback: bool
) -> None:
    own = load_tokenizer(
        sentencepiece_file(tmp_path, model_type=kind, byte_fallback=fallback and kind != "char")
    )
    space, draw = own.token("▁"), random.Random(7)
    assert space is not None
    for count in range(1, 150):
        tokens = [draw.choice((space, draw.randrange(own.size))) for _ in range(count)]
        stream = TextStream(own)
        assert "".join(map(stream.add, tokens)) + stream.rest() == own.decode(tokens)


def test_names_of_pieces_that_are_no_text_are_one_sentence(tmp_path: Path) -> None:
    path = sentencepiece_file(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"<s>", b"\x86s>"))
    with pytest.raises(TokenizerError, match=r"any\.name: not a model of SentencePiece"):
        load_tokenizer(path)


@pytest.mark.parametrize("kind", ["WordLevel", "WordPiece"])
def test_a_text_that_a_tokenizer_has_no_token_for_is_one_sentence(
    tmp_path: Path, kind: str
) -> None:
    library = pytest.importorskip("tokenizers")
    model = getattr(library.models, kind)({"a": 0, "b": 1}, unk_token="[UNK]")
    path = tmp_path / "tokenizer.json"
    library.Tokenizer(model).save(str(path))
    own = load_tokenizer(path)
    assert own.encode("a") == [0]
    with pytest.raises(TokenizerError, match=r"tokenizer\.json: .*UNK"):
        own.encode("c")


def test_added_tokens_are_read_whole_and_special_ones_have_no_text(tmp_path: Path) -> None:
    own = load_tokenizer(likeliest_files(tmp_path))
    assert (own.bos, own.eos) == (None, ())
    tool, end = own.token("<tool>"), own.token("<|im_end|>")
    tokens = own.encode("mice<tool> met<|im_end|>")
    assert tool in tokens
    assert tokens[-1] == end
    assert own.decode(tokens).replace(" ", "") == "mice<tool>met"
