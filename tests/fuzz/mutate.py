"""Ways to damage a file; every one is a function of a seeded random generator."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

Mutation = Callable[[bytearray, random.Random], None]
_NUMBERS = (0, 1, 4, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC, 0xFFFFFFFF)


def truncate(data: bytearray, rng: random.Random) -> None:
    """Cut the file anywhere."""
    del data[rng.randrange(len(data)) :]


def flip_bits(data: bytearray, rng: random.Random) -> None:
    """Flip one to sixteen bits anywhere."""
    for _ in range(rng.randint(1, 16)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def flip_head(data: bytearray, rng: random.Random) -> None:
    """Flip bits where headers and tables are."""
    for _ in range(rng.randint(1, 8)):
        data[rng.randrange(min(len(data), 1024))] ^= 1 << rng.randrange(8)


def overwrite_word(data: bytearray, rng: random.Random) -> None:
    """Write extreme numbers over aligned words."""
    for _ in range(rng.randint(1, 4)):
        if len(data) >= 4:
            at = rng.randrange(len(data) // 4) * 4
            struct.pack_into("<I", data, at, rng.choice(_NUMBERS))


def damage_offset(data: bytearray, rng: random.Random) -> None:
    """Change words that look like forward offsets so that they point elsewhere."""
    looks = [
        at
        for at in range(0, min(len(data) - 3, 1 << 16), 4)
        if 4 <= struct.unpack_from("<I", data, at)[0] <= len(data) - at
    ]
    for at in rng.sample(looks, min(len(looks), rng.randint(1, 6))):
        old = struct.unpack_from("<I", data, at)[0]
        new = rng.choice((old + 4, old - 4, old * 2, rng.randrange(len(data)), *_NUMBERS))
        struct.pack_into("<I", data, at, new & 0xFFFFFFFF)


def repeat_slice(data: bytearray, rng: random.Random) -> None:
    """Copy a run of bytes over another place."""
    size = rng.randint(1, max(1, min(256, len(data) // 2)))
    source, target = rng.randrange(len(data)), rng.randrange(len(data))
    chunk = bytes(data[source : source + size])
    data[target : target + len(chunk)] = chunk


def insert_bytes(data: bytearray, rng: random.Random) -> None:
    """Insert random bytes, which shifts everything behind them."""
    at = rng.randrange(len(data))
    data[at:at] = rng.randbytes(rng.randint(1, 64))


def zero_run(data: bytearray, rng: random.Random) -> None:
    """Zero a run of bytes."""
    at = rng.randrange(len(data))
    size = min(rng.randint(1, 512), len(data) - at)
    data[at : at + size] = bytes(size)


MUTATIONS: tuple[Mutation, ...] = (
    truncate,
    flip_bits,
    flip_head,
    overwrite_word,
    damage_offset,
    repeat_slice,
    insert_bytes,
    zero_run,
)


def mutant(original: bytes, seed: int) -> tuple[str, bytes]:
    """Return the names of the mutations applied and the damaged bytes."""
    rng = random.Random(seed)
    data = bytearray(original)
    chosen = rng.sample(MUTATIONS, rng.choice((1, 1, 1, 2, 3)))
    for change in chosen:
        if data:
            change(data, rng)
    return "+".join(change.__name__ for change in chosen), bytes(data)
