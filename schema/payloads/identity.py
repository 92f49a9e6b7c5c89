"""Names of payload nodes in our traces and debug maps, derived from their index.

The stock Inspector matches a key of a map to every event whose name contains it. Its kernels are
called ``Convolution (NHWC, F32) IGEMM #1``: a bare ``1`` would match that event, and most others.
"""

from __future__ import annotations

import re

_NAMED = re.compile(r"node (\d{1,9})")


def node_identity(index: int) -> str:
    """Return the identity of the node at a place of a payload."""
    return f"node {index}"


def named_node(identity: int | str) -> int | None:
    """Return the index of the node with this name, None for any other name.

    Older traces had the bare index.
    """
    if isinstance(identity, int):
        return identity if identity >= 0 else None
    if identity.isascii() and identity.isdecimal():
        return int(identity[:9])
    found = _NAMED.fullmatch(identity)
    return int(found[1]) if found else None


def has_program_order(identity: int | str) -> bool:
    """Return whether tensors of a node with this name have the dimensions of the program.

    Tensors of other nodes may have the layout of the delegate.
    """
    return isinstance(identity, str) and _NAMED.fullmatch(identity) is not None
