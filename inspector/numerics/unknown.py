"""Values on both sides of a run; what is unknown is marked."""

from __future__ import annotations

from typing import Any


class Unknown:
    """Stands for a value that cannot be known; so is everything that is computed of it."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = Unknown()
Pair = tuple[Any, Any]  # value of the reference, value of the run
