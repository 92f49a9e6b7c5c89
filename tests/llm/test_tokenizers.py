"""Tokenizers by the content of their file."""

from __future__ import annotations

import base64
import io
import json
import struct
from pathlib import Path

import pytest

from runtime.llm.chat import ChatError, chat_prompt, chat_template
from runtime.llm.tokenizers import TextStream, Tokenizer, TokenizerError, load_tokenizer

TEXT = "Once upon a time, 12 mice met: naïve 🦊!"


def _json(folder: Path) -> Path:
    tokenizers = pytest.importorskip("tokenizers")
    own = tokenizers.Tokenizer(tokenizers.models.BPE())
    own.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    own.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    own.train_from_iterator([TEXT], trainer)
    own.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"bos_token": "<s>", "eos_token": {"content": "</s>"}})
    )
    return folder


def _sentencepiece(folder: Path) -> Path:
    library = pytest.importorskip("sentencepiece")
    model = io.BytesIO()
    library.SentencePieceTrainer.train(
        sentence_iterator=iter([TEXT, "a b c d e f g", "met mice"]),
        model_writer=model,
        vocab_size=300,
        byte_fallback=True,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    path = folder / "any.name"
    path.write_bytes(model.getvalue())
    return path


def _ranks(folder: Path) -> Path:
    pytest.importorskip("tiktoken")
    words = [bytes([one]) for one in range(256)] + [b"me", b"on", b" t", b"ice"]
    lines = [f"{base64.b64encode(word).decode()} {at}" for at, word in enumerate(words)]
    path = folder / "tokenizer.model"
    path.write_text("\n".join(lines))
    return path


def _llama2c(folder: Path) -> Path:
    words = [b"<unk>", b"<s>", b"</s>", *(f"<0x{one:02X}>".encode() for one in range(256))]
    words += [letter.encode() for letter in dict.fromkeys(" " + TEXT)] + [b"me", b"on", b" t"]
    data = struct.pack("<i", max(map(len, words)))
    for at, word in enumerate(words):
        data += struct.pack("<fi", float(at), len(word)) + word
    path = folder / "tokenizer.bin"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("make", [_json, _sentencepiece, _ranks, _llama2c, None])
def test_a_text_comes_back_whole_and_piece_by_piece(tmp_path: Path, make: object) -> None:
    own: Tokenizer = load_tokenizer("bytes" if make is None else make(tmp_path))  # type: ignore
    tokens = own.encode(TEXT)
    assert max(tokens) < own.size
    assert own.decode(tokens) == TEXT
    stream = TextStream(own)
    pieces = [stream.add(one) for one in tokens]
    assert "".join(pieces) == TEXT
    assert "�" not in "".join(pieces)


def test_special_tokens_are_read(tmp_path: Path) -> None:
    own = load_tokenizer(_json(tmp_path))
    assert (own.bos, own.eos) == (0, (1,))


@pytest.mark.parametrize("data", [b"", b"hello", b"\x00" * 40, b"{", b"\n\x01"])
def test_a_file_that_is_no_tokenizer_is_one_sentence(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "tokenizer.model"
    path.write_bytes(data)
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
