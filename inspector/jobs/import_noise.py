"""Lines that packages print while they are imported: they tell nothing about the user's model."""

from __future__ import annotations

import re

_NOISE = (
    r"Failed to load \S+\.so: Could not load this library",  # kernels of other releases
    r"Failed to load _ML\w+: No module",  # what exists on macOS only
    r"<enum '\w+'> is an Enum subclass",
    r"(scikit-learn|Torch) version \S+ (is not supported|has not been tested)",
    r"I tokenizers:regex\.cpp",
)
_PATTERN = re.compile("|".join(_NOISE))


def is_import_noise(line: str) -> bool:
    """Return whether a printed line is about the import of a package alone."""
    return _PATTERN.match(line) is not None
