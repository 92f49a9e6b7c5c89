"""Tokenizers by their libraries; the kind of a file follows from its content."""

from __future__ import annotations

import base64
import binascii
import heapq
import importlib
import re
import struct
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, cast

from runtime.llm.rank_families import family_of, special_tokens
from schema.errors import FormatError
from schema.objects.codec import read_object
from schema.recipe.tokenizers import BYTE_TOKENIZER

_HEAD = 4096
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "tokenizer.bin", "tiktoken.model")
RANK_FILES = "*.tiktoken"
_LARGEST_BESIDE = 32 << 20  # bytes of a file beside a tokenizer
_LARGEST_ID = 1 << 32  # of a token, as the library counts


class TokenizerError(ValueError):
    """A file that is not a tokenizer, or a missing library."""


class Tokenizer(Protocol):
    """Text to tokens and back.

    Attributes:
        bos: token that begins a text, None if unknown
        eos: tokens that end one
        size: number of tokens
    """

    bos: int | None
    eos: tuple[int, ...]
    size: int

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Return the tokens of a text, without the one that begins it.

        Args:
            text: any
            special: whether names of special tokens in it, as of a chat template, are those tokens
        """
        ...

    def token(self, text: str) -> int | None:
        """Return the token with a name, None without one."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens; invalid bytes become U+FFFD, unknown tokens have no text."""
        ...


def load_tokenizer(path: str | Path) -> Tokenizer:
    """Return the tokenizer of a file, of a folder with one, or ``bytes``.

    Raises: TokenizerError, OSError
    """
    if str(path) == BYTE_TOKENIZER:
        return ByteTokenizer()
    place = Path(path)
    if place.is_dir():
        found = file_in(place)
        if found is None:
            known = ", ".join((*TOKENIZER_FILES, RANK_FILES))
            raise TokenizerError(f"{place}: no tokenizer; expected one of {known}")
        place = found
    if place.exists() and not place.is_file():
        raise TokenizerError(f"{place}: not a regular file")
    data = place.read_bytes()
    head = data[:_HEAD]
    if head.lstrip()[:1] == b"{":
        return JsonTokenizer(place)
    if _is_ranks(head):
        return RanksTokenizer(place, data)
    if _is_llama2c(data):
        return Llama2cTokenizer(place, data)
    if head[:1] == b"\n":  # the first field of the protocol buffer
        return SentencePieceTokenizer(place, data)
    raise TokenizerError(
        f"{place}: expected a tokenizer of Hugging Face, SentencePiece, tiktoken or llama2.c"
    )


def file_in(folder: Path) -> Path | None:
    """Return the file of a folder that is a tokenizer by its name, None without one."""
    named = (folder / name for name in TOKENIZER_FILES)
    return next((one for one in (*named, *sorted(folder.glob(RANK_FILES))) if one.is_file()), None)


def _library(name: str, file: Path) -> Any:  # noqa: ANN401 - a module
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise TokenizerError(f"{file} needs the package {name}: pip install {name}") from error


@contextmanager
def _sentences(file: Path) -> Generator[None]:
    """Turn each error of a library into one sentence with the file.

    Raises: TokenizerError
    """
    try:
        yield
    except BaseException as error:
        # What libraries in Rust raise where they give up inherits from BaseException alone: a
        # pattern that backtracks too often, a rule that nobody expected.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        words = f"{file}: {error}"
        raise TokenizerError(words) from error


class ByteTokenizer:
    """One token for each byte."""

    def __init__(self) -> None:
        self.bos: int | None = None
        self.eos: tuple[int, ...] = ()
        self.size = 256

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Return the bytes."""
        del special  # there is none
        return list(text.encode("utf-8"))

    def token(self, text: str) -> int | None:
        """Return the byte that a text is, None for several."""
        data = text.encode("utf-8")
        return data[0] if len(data) == 1 else None

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of the bytes."""
        return bytes(one for one in tokens if 0 <= one < self.size).decode("utf-8", "replace")


class JsonTokenizer:
    """A ``tokenizer.json``, with the special tokens of the files beside it."""

    def __init__(self, path: Path) -> None:
        library = _library("tokenizers", path)
        self._path = path
        with _sentences(path):
            self._own: Any = library.Tokenizer.from_file(str(path))
        # Files may have what batches in training were cut and filled to; a text is whole.
        self._own.no_truncation()
        self._own.no_padding()
        named = json_beside(path.parent / "special_tokens_map.json")
        named |= json_beside(path.parent / "tokenizer_config.json")
        self.bos = self._id(named.get("bos_token"))
        self.size = int(self._own.get_vocab_size())
        self.eos = _ends(path, _LARGEST_ID, self._id(named.get("eos_token")))  # ids may have gaps

    def _id(self, token: Any) -> int | None:  # noqa: ANN401 - JSON
        text = _content(token)
        return self._own.token_to_id(text) if isinstance(text, str) else None

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Return the tokens of a text; special ones in it are always read.

        Raises: TokenizerError for a text that the vocabulary has no token for
        """
        del special
        with _sentences(self._path):
            return list(self._own.encode(text, add_special_tokens=False).ids)

    def token(self, text: str) -> int | None:
        """Return the token with a name, None without one."""
        return self._own.token_to_id(text)

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens."""
        known = [one for one in tokens if 0 <= one < _LARGEST_ID]
        with _sentences(self._path):
            return str(self._own.decode(known, skip_special_tokens=True))


class SentencePieceTokenizer:
    """A model of SentencePiece."""

    def __init__(self, path: Path, data: bytes) -> None:
        library = _library("sentencepiece", path)
        self._own: Any = library.SentencePieceProcessor()
        try:
            self._own.LoadFromSerializedProto(data)
            count = int(self._own.vocab_size())
            self._special: dict[str, int] = {
                self._own.IdToPiece(at): at for at in range(count) if self._own.IsControl(at)
            }
        except (RuntimeError, UnicodeDecodeError) as error:
            raise TokenizerError(f"{path}: not a model of SentencePiece: {error}") from error
        begin, end = int(self._own.bos_id()), int(self._own.eos_id())
        self.bos = begin if begin >= 0 else None
        self.size = count
        self.eos = _ends(path, count, end)

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Return the tokens of a text."""
        return _with_special(text, self._special if special else {}, self._own.EncodeAsIds)

    def token(self, text: str) -> int | None:
        """Return the token with a name, None without one."""
        found = int(self._own.PieceToId(text))
        return found if self._own.IdToPiece(found) == text else None

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens."""
        known = [one for one in tokens if 0 <= one < self.size]  # programs may have padded tables
        return str(self._own.DecodeIds(known))


class RanksTokenizer:
    """A list of byte strings with their ranks, as tiktoken reads it."""

    def __init__(self, path: Path, data: bytes) -> None:
        library = _library("tiktoken", path)
        ranks: dict[bytes, int] = {}
        for number, line in enumerate(data.splitlines()):
            word, _, rank = line.partition(b" ")
            try:
                ranks[base64.b64decode(word, validate=True)] = int(rank)
            except ValueError as error:
                words = f"expected a token in base64 and its rank, found {line!r:.60}"
                raise TokenizerError(f"{path}: line {number + 1}: {words}") from error
        _check_ranks(path, ranks)
        self._ranks = len(ranks)
        self._path = path
        beside = json_beside(path.parent / "tokenizer_config.json")
        with _sentences(path):
            family = family_of(self._ranks, beside)
            self._special, self._shown = special_tokens(self._ranks, family, beside)
            self._own: Any = library.Encoding(
                path.stem,
                pat_str=family.pattern,
                mergeable_ranks=ranks,
                special_tokens=self._special,
            )
        self._texts = {name for name, one in self._special.items() if one in self._shown}
        self.bos = self._named(beside.get("bos_token"), family.bos)
        self.size = int(self._own.n_vocab)
        ends = [self._special.get(name) for name in family.eos]
        self.eos = _ends(path, self.size, *ends, self._named(beside.get("eos_token"), None))

    def _named(self, token: Any, other: str | None) -> int | None:  # noqa: ANN401 - JSON
        found = self._special.get(str(_content(token)))
        return self._special.get(other) if found is None and other is not None else found

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Return the tokens of a text; added ones that are not special are always read."""
        allowed = "all" if special else self._texts
        with _sentences(self._path):
            return list(self._own.encode(text, allowed_special=allowed, disallowed_special=()))

    def token(self, text: str) -> int | None:
        """Return the token with a name, None without one."""
        return self._special.get(text)

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens."""
        shown = (one for one in tokens if 0 <= one < self._ranks or one in self._shown)
        return str(self._own.decode(list(shown)))


def _check_ranks(path: Path, ranks: Mapping[bytes, int]) -> None:
    """Check that each rank occurs once and each byte has one, else the library ends the process.

    Raises: TokenizerError
    """
    if sorted(ranks.values()) != list(range(len(ranks))):
        words = f"expected the ranks 0 to {len(ranks) - 1:,} once each"
        raise TokenizerError(f"{path}: {words}; the file is damaged or cut short")
    missing = next((one for one in range(256) if bytes([one]) not in ranks), None)
    if missing is not None:
        words = f"no rank for the byte 0x{missing:02x}"
        raise TokenizerError(f"{path}: {words}; the file is damaged or cut short")


class Llama2cTokenizer:
    """The file of llama2.c: a score and a byte string for each token; pairs merge by score."""

    def __init__(self, path: Path, data: bytes) -> None:
        words = _llama2c_words(data)
        if words is None:
            raise TokenizerError(f"{path}: not a tokenizer of llama2.c")
        self._path, self._words = path, words
        self._ids = {word: at for at, (word, _) in enumerate(self._words)}
        self.bos: int | None = 1
        self.eos: tuple[int, ...] = (2,)
        self.size = len(self._words)

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Return the tokens of a text: characters, or bytes, of which the best pairs merge."""
        return _with_special(text, _LLAMA2C_SPECIAL if special else {}, self._merged)

    def token(self, text: str) -> int | None:
        """Return the token with a name, None without one."""
        return _LLAMA2C_SPECIAL.get(text, self._ids.get(text.encode()))

    def _merged(self, text: str) -> list[int]:
        found: list[int] = []
        for letter in f" {text}" if text else "":
            known = self._ids.get(letter.encode())
            found += [known] if known is not None else [one + 3 for one in letter.encode()]
            if found[-1] >= self.size:
                words = f"no token for {letter!r}, and none for its bytes"
                raise TokenizerError(f"{self._path}: {words}")
        before, behind = list(range(-1, len(found) - 1)), list(range(1, len(found) + 1))
        pairs: list[tuple[float, int, int, tuple[int, int]]] = []  # the best, then leftmost first

        def add(at: int) -> None:
            if at >= 0 and behind[at] < len(found):
                both = found[at], found[behind[at]]
                joined = self._ids.get(self._words[both[0]][0] + self._words[both[1]][0])
                if joined is not None:
                    heapq.heappush(pairs, (-self._words[joined][1], at, joined, both))

        for at in range(len(found)):
            add(at)
        while pairs:
            _, at, joined, both = heapq.heappop(pairs)
            other = behind[at]
            if other >= len(found) or (found[at], found[other]) != both:
                continue  # one of them is part of another token by now
            found[at], found[other], behind[at] = joined, _TAKEN, behind[other]
            if behind[at] < len(found):
                before[behind[at]] = at
            add(before[at])
            add(at)
        return [one for one in found if one != _TAKEN]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without the space that begins it."""
        parts = [_llama2c_piece(self._words[one][0]) for one in tokens if 2 < one < self.size]
        return b"".join(parts).decode("utf-8", "replace").removeprefix(" ")


_LLAMA2C_SPECIAL = {"<s>": 1, "</s>": 2}
_LLAMA2C_BYTE = re.compile(rb"<0x([0-9A-Fa-f]{2})>")
_TAKEN = -1


def _with_special(
    text: str, special: Mapping[str, int], encode: Callable[[str], Sequence[int]]
) -> list[int]:
    """Return the tokens of a text between special ones that it names."""
    if not special:
        return list(encode(text))
    longest = sorted(special, key=len, reverse=True)
    parts = re.split(f"({'|'.join(map(re.escape, longest))})", text)
    return [
        token
        for part in parts
        if part
        for token in ([special[part]] if part in special else encode(part))
    ]


def _ends(path: Path, size: int, *own: int | None) -> tuple[int, ...]:
    """Return the tokens that end a text: those given, and of ``generation_config.json``."""
    found: Any = json_beside(path.parent / "generation_config.json").get("eos_token_id")
    listed = cast("list[Any]", found) if isinstance(found, list) else [found]
    numbers = (one for one in (*own, *listed) if type(one) is int and 0 <= one < size)
    return tuple(dict.fromkeys(numbers))


def _llama2c_piece(word: bytes) -> bytes:
    """Return the bytes of a token; ``<0x41>`` stands for one byte."""
    byte = _LLAMA2C_BYTE.fullmatch(word)
    return bytes([int(byte[1], 16)]) if byte else word


def _is_ranks(head: bytes) -> bool:
    word, _, rank = head.partition(b"\n")[0].partition(b" ")
    try:
        base64.b64decode(word, validate=True)
    except (binascii.Error, ValueError):
        return False
    return bool(word) and rank.strip().isdigit()


def _is_llama2c(data: bytes) -> bool:
    if len(data) < 12:
        return False
    longest, _, first = struct.unpack_from("<ifi", data)
    return 0 < longest < 10_000 and 0 <= first <= longest and _llama2c_words(data) is not None


def _llama2c_words(data: bytes) -> list[tuple[bytes, float]] | None:
    found: list[tuple[bytes, float]] = []
    at = 4
    while at < len(data):
        if at + 8 > len(data):
            return None
        score, length = struct.unpack_from("<fi", data, at)
        if length < 0 or at + 8 + length > len(data):
            return None
        found.append((data[at + 8 : at + 8 + length], score))
        at += 8 + length
    return found or None


def _content(token: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the name in a special token of ``tokenizer_config.json``."""
    return cast("dict[str, Any]", token).get("content") if isinstance(token, dict) else token


def json_beside(place: Path) -> dict[str, Any]:
    """Return the content of a file beside a tokenizer, nothing where it is missing.

    Raises: TokenizerError
    """
    if not place.is_file():
        return {}
    try:
        return read_object(place, "what belongs to a tokenizer", _LARGEST_BESIDE)
    except (FormatError, OSError) as error:
        raise TokenizerError(str(error)) from error
