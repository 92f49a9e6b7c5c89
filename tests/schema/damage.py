"""Ways to damage a file, and what a decoder may do with the result."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

from schema.errors import FormatError

SECONDS = 5.0  # for a file under 10 MB


def truncations(data: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Prefixes of every short length, and of random longer ones."""
    for length in range(min(len(data), 128)):
        yield data[:length]
    draw = random.Random(seed)
    for _ in range(count):
        yield data[: draw.randrange(len(data))]


def bit_flips(data: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Copies with one to eight bits flipped, half of them near the head."""
    draw = random.Random(seed)
    for number in range(count):
        broken = bytearray(data)
        reach = len(data) if number % 2 else min(len(data), 256)
        for _ in range(draw.randint(1, 8)):
            broken[draw.randrange(reach)] ^= 1 << draw.randrange(8)
        yield bytes(broken)


def wild_words(data: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Copies with one aligned 32-bit word replaced: offsets, counts, sizes."""
    draw = random.Random(seed)
    words = (0, 1, 4, 7, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFC, len(data), len(data) - 4)
    for _ in range(count):
        broken = bytearray(data)
        at = draw.randrange(len(data) // 4) * 4
        word = draw.choice((*words, draw.getrandbits(32), draw.randrange(len(data))))
        broken[at : at + 4] = word.to_bytes(4, "little")
        yield bytes(broken)


def all_kinds(data: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Damaged copies of every kind, `count` of each."""
    for kind in (truncations, bit_flips, wild_words):
        yield from kind(data, seed, count)


def survives(decode: Callable[..., Any], data: bytes) -> Any:
    """Return what a decoder makes of damaged bytes, None if it refused them as it should."""
    began = time.process_time()
    made, sentence = None, "broken: none"
    try:
        made = decode(data, file="broken")
    except FormatError as error:
        sentence = str(error)
    assert time.process_time() - began < SECONDS
    assert sentence.startswith("broken: ")
    assert "\n" not in sentence
    return made
