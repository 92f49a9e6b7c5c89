"""Tokenizer files of each kind, made here."""

from __future__ import annotations

import base64
import io
import json
import struct
from pathlib import Path

import pytest

TEXT = "Once upon a time, 12 mice met: naïve 🦊!"


def json_files(folder: Path) -> Path:
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


def sentencepiece_file(
    folder: Path, *, model_type: str = "unigram", byte_fallback: bool = True
) -> Path:
    library = pytest.importorskip("sentencepiece")
    model = io.BytesIO()
    library.SentencePieceTrainer.train(
        sentence_iterator=iter([TEXT, "a b c d e f g", "met mice"]),
        model_writer=model,
        vocab_size=300,
        model_type=model_type,
        byte_fallback=byte_fallback,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    path = folder / "any.name"
    path.write_bytes(model.getvalue())
    return path


def ranks_file(folder: Path, **config: object) -> Path:
    pytest.importorskip("tiktoken")
    words = [bytes([one]) for one in range(256)] + [b"me", b"on", b" t", b"ice"]
    lines = [f"{base64.b64encode(word).decode()} {at}" for at, word in enumerate(words)]
    path = folder / "tokenizer.model"
    path.write_text("\n".join(lines))
    said = json.dumps(config or {"pat_str": "llama3"})
    (folder / "tokenizer_config.json").write_text(said)
    return path


def llama2c_file(folder: Path) -> Path:
    words = [b"<unk>", b"<s>", b"</s>", *(f"<0x{one:02X}>".encode() for one in range(256))]
    words += [letter.encode() for letter in dict.fromkeys(" " + TEXT)] + [b"me", b"on", b" t"]
    data = struct.pack("<i", max(map(len, words)))
    for at, word in enumerate(words):
        data += struct.pack("<fi", float(at), len(word)) + word
    path = folder / "tokenizer.bin"
    path.write_bytes(data)
    return path


def fallback_files(folder: Path) -> Path:
    """Write pairs with bytes for other characters, whose decoder strips one space at the begin."""
    tokenizers = pytest.importorskip("tokenizers")
    words = {"<unk>": 0, "<s>": 1, "</s>": 2}
    for one in (*(f"<0x{at:02X}>" for at in range(256)), *dict.fromkeys("▁" + TEXT)):
        words.setdefault("▁" if one == " " else one, len(words))
    merges = [("t", "i"), ("m", "e"), ("▁", "m"), ("▁", "t"), ("▁", "▁")]
    for pair in merges:
        words.setdefault("".join(pair), len(words))
    del words["🦊"]
    words = {word: at for at, word in enumerate(words)}
    own = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab=words, merges=merges, byte_fallback=True, unk_token="<unk>")
    )
    normal, back = tokenizers.normalizers, tokenizers.decoders
    own.normalizer = normal.Sequence([normal.Prepend("▁"), normal.Replace(" ", "▁")])
    spaces = back.Replace("▁", " ")
    own.decoder = back.Sequence([spaces, back.ByteFallback(), back.Fuse(), back.Strip(" ", 1, 0)])
    own.add_special_tokens(["<s>", "</s>"])
    own.save(str(folder / "tokenizer.json"))
    return folder


def pieces_files(folder: Path) -> Path:
    """Write pieces of words in small letters, and tokens that go around a text."""
    library = pytest.importorskip("tokenizers")
    own = library.Tokenizer(library.models.WordPiece(unk_token="[UNK]"))
    own.normalizer = library.normalizers.BertNormalizer(lowercase=True)
    own.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
    own.decoder = library.decoders.WordPiece(prefix="##", cleanup=True)
    special = ["[UNK]", "[CLS]", "[SEP]"]
    own.train_from_iterator(
        [TEXT],
        library.trainers.WordPieceTrainer(
            vocab_size=120, special_tokens=special, show_progress=False
        ),
    )
    own.post_processor = library.processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    own.save(str(folder / "tokenizer.json"))
    return folder


def likeliest_files(folder: Path) -> Path:
    """Write the likeliest pieces, no token that begins a text, and tokens that were added."""
    library = pytest.importorskip("tokenizers")
    own = library.Tokenizer(library.models.Unigram())
    own.pre_tokenizer = library.pre_tokenizers.Metaspace()
    own.decoder = library.decoders.Metaspace()
    special = ["<unk>", "</s>"]
    own.train_from_iterator(
        [TEXT],
        library.trainers.UnigramTrainer(
            vocab_size=90, special_tokens=special, unk_token="<unk>", show_progress=False
        ),
    )
    own.add_tokens(["<tool>", library.AddedToken("日本", lstrip=True, rstrip=True)])
    own.add_special_tokens(["<|im_end|>"])
    own.save(str(folder / "tokenizer.json"))
    return folder


KINDS = {
    "json": json_files,
    "byte fallback": fallback_files,
    "sentencepiece": sentencepiece_file,
    "tiktoken": ranks_file,
    "llama2.c": llama2c_file,
}
WORDS = {"likeliest": likeliest_files, "pieces": pieces_files}  # without a token that begins a text
