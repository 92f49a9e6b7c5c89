"""The digest by which the content of a file is recognised."""

from __future__ import annotations

import hashlib
import os

_CHUNK = 1 << 20


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file in hexadecimal digits.

    Raises: OSError
    """
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
