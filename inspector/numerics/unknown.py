"""Values on both sides of a run; what cannot be known is said to be so."""

from __future__ import annotations

from typing import Any


class Unknown:
    """Stands for a value that cannot be known; so is everything that is computed of it."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = Unknown()
Pair = tuple[Any, Any]  # value of the reference, value of the run
