"""Files that vendors' tools left when they compiled a payload, each a member of the record.

A member is named by the payload, so that it is found whatever the delegate's position.
"""

from __future__ import annotations

import hashlib

PREFIX = "etscope/kept/"
SUFFIX = "_constants"  # that of a side file, so that the stock tool ignores it
_DIGITS = 24


def folder_of(payload: bytes | bytearray | memoryview) -> str:
    """Return the prefix of the names of a payload's members."""
    return f"{PREFIX}{hashlib.sha256(payload).hexdigest()[:_DIGITS]}/"


def member_of(payload: bytes | bytearray | memoryview, name: str) -> str:
    """Return the name of the member with one file of a payload."""
    return f"{folder_of(payload)}{name}{SUFFIX}"
