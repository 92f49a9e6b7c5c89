"""Damage chosen by format: fields of flatbuffers, members of archives."""

from __future__ import annotations

import random

from tests.fuzz.fields import CHANGES
from tests.fuzz.mutate import mutant
from tests.fuzz.zips import damage_archive


def aware_mutant(original: bytes, seed: int) -> tuple[str, bytes]:
    """Return the names of the changes and bytes damaged where their format says something."""
    rng = random.Random(seed)
    if original[:4] == b"PK\x03\x04":
        return damage_archive(original, rng)
    if not _is_flatbuffer(original):
        return mutant(original, seed)
    data = bytearray(original)
    chosen = rng.sample(CHANGES, rng.choice((1, 1, 2)))
    for change in chosen:
        change(data, rng)
    return "+".join(change.__name__ for change in chosen), bytes(data)


def _is_flatbuffer(data: bytes) -> bool:
    """Return whether there is an identifier behind the root offset, or behind a length."""
    marks = (b"ET", b"FT", b"BP", b"ED")
    return data[4:6] in marks or data[8:10] in marks
