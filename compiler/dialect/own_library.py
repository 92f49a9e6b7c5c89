"""Libraries of our own operators, of which a process has one each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class OwnLibrary:
    """The operators of a namespace of ours.

    A vendor's interpreter reads our dialects before the user's source, which may import our
    compiler as modules of its own. The operators are then there, and stay as they are.
    """

    def __init__(self, namespace: str, *schemas: str) -> None:
        """Define operators, unless the process has them."""
        known = getattr(torch.ops, namespace)
        self._library: Any = None
        if not hasattr(known, schemas[0].partition("(")[0].partition(".")[0]):
            self._library = torch.library.Library(namespace, "DEF")
            for schema in schemas:
                self._library.define(schema)

    def impl(self, name: str, function: Callable[..., Any], key: str) -> None:
        """Register the function of an operator that this object has defined."""
        if self._library is not None:
            self._library.impl(name, function, key)
