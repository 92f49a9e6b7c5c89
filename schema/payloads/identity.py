"""How our traces and debug maps name a payload node: by its index.

The stock Inspector takes a key of a map for the name of an event when it is anywhere inside of
that name. Its own kernels are called ``Convolution (NHWC, F32) IGEMM #1``: a bare ``1`` would be
the node of that event, and of most others.
"""

from __future__ import annotations

import re

_NAMED = re.compile(r"node (\d{1,9})")


def node_identity(index: int) -> str:
    """Return the identity of the node at a place of a payload."""
    return f"node {index}"


def named_node(identity: int | str) -> int | None:
    """Return the place of the node that is called so, None for a name of something else.

    Older traces had the bare index.
    """
    if isinstance(identity, int):
        return identity if identity >= 0 else None
    if identity.isascii() and identity.isdecimal():
        return int(identity[:9])
    found = _NAMED.fullmatch(identity)
    return int(found[1]) if found else None


def tells_order(identity: int | str) -> bool:
    """Return whether the tensors of a node called so have the dimensions of the program.

    Those of nodes with other names may lie as the delegate keeps them.
    """
    return isinstance(identity, str) and _NAMED.fullmatch(identity) is not None
