"""Names and patterns of names, as rules of recipes have them."""

from __future__ import annotations

import fnmatch


def name_fits(name: str, pattern: str) -> bool:
    """Return whether a name equals a pattern or matches it, as in ``aten.conv*``."""
    return name == pattern or fnmatch.fnmatchcase(name, pattern)


def operator_pattern(name: str) -> str:
    """Return the pattern of an operator; a name without an overload means all of its overloads."""
    name = name.removeprefix("torch.ops.").replace("::", ".")
    return f"{name}.*" if name.count(".") == 1 and not name.endswith("*") else name
