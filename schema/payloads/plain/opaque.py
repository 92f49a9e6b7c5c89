"""Facts about bytes that have no decoder: hash, entropy, strings.

They are computed on demand, not on opening a file.
"""

from __future__ import annotations

import hashlib
import re

import numpy as np

from schema.payloads.model import Payload, PayloadSource
from schema.payloads.parts import whole

_CHUNK = 1 << 20  # digests of large payloads do not copy them at once
_OVERLAP = 256  # longest string that is still found across two chunks


def decode_payload(source: PayloadSource) -> Payload:
    """Return a payload without a graph: id and size are all that is known."""
    return Payload(
        source.backend_id,
        "unknown",
        len(source.data),
        parts=whole(len(source.data), f"{source.backend_id or 'unnamed'} payload", "undecoded"),
    )


def sha256(data: memoryview) -> str:
    """Return the SHA-256 of the bytes in hexadecimal digits."""
    digest = hashlib.sha256()
    for start in range(0, len(data), _CHUNK):
        digest.update(data[start : start + _CHUNK])
    return digest.hexdigest()


def entropy(data: memoryview) -> float:
    """Return the Shannon entropy of the bytes.

    Units: bits a byte; near 8 for compressed or encrypted bytes, 0 for an empty payload
    """
    if not len(data):
        return 0.0
    counts = np.zeros(256, dtype=np.int64)
    for start in range(0, len(data), _CHUNK):
        piece = np.frombuffer(data[start : start + _CHUNK], dtype=np.uint8)
        counts += np.bincount(piece, minlength=256)
    shares = counts[counts > 0] / len(data)
    return float(-(shares * np.log2(shares)).sum())


def embedded_texts(
    data: memoryview, *, shortest: int = 6, most: int = 1000
) -> tuple[tuple[int, str], ...]:
    """Return position and content of printable ASCII runs, in order.

    Args:
        data: the bytes
        shortest: length below which a run is considered chance
        most: number of strings after which the search ends
    """
    pattern = re.compile(rb"[\x20-\x7e]{%d,}" % max(1, shortest))
    found: list[tuple[int, str]] = []
    behind = 0
    for start in range(0, len(data), _CHUNK):
        piece = bytes(data[start : start + _CHUNK + _OVERLAP])
        for match in pattern.finditer(piece):
            at = start + match.start()
            if at < behind or match.start() >= _CHUNK:
                continue
            behind = start + match.end()
            found.append((at, match[0].decode("ascii")))
            if len(found) >= most:
                return tuple(found)
    return tuple(found)
