"""The memory planners of the compiler, by the names that users write."""

from __future__ import annotations

from collections.abc import Mapping

PLANNERS: Mapping[str, str] = {
    "naive": "one value behind the other; no memory is shared",
    "greedy": "the largest values first, each as low as is free during its lifetime",
    "interval": "by bytes times lifetime, each as low as is free during its lifetime",
}
"""Names of the planners, each with what it does."""
