"""Constant methods that a configuration adds to a program; free of torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

_KINDS = bool | int | float | str
_ENDS = "get_eos_ids"  # which may be a list
_NUMBERS = frozenset(
    {
        _ENDS,
        "get_bos_id",
        "get_max_context_len",
        "get_max_seq_len",
        "get_n_layers",
        "get_vocab_size",
    }
)  # that a runner reads as integers; the wheel's ends its process at another value


class MetadataError(ValueError):
    """Values that no program can hold.

    Attributes:
        path: in the metadata, with a dot before it; empty for all
    """

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


def metadata_values(given: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the values of constant methods by name.

    Args:
        given: a mapping, or JSON with one, which may be quoted twice as Hydra needs it

    Raises: MetadataError
    """
    content: Any = given
    for _ in range(2):
        if isinstance(content, str):
            try:
                content = json.loads(content)
            except (ValueError, RecursionError) as error:
                raise MetadataError(f"not JSON: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise MetadataError("expected values by the name of a method")
    for name, value in cast("dict[Any, Any]", content).items():
        if not isinstance(name, str) or not name.isidentifier():
            raise MetadataError(f"expected the name of a method, found {name!r:.60}")
        listed = cast("list[Any]", value) if isinstance(value, list) else [value]
        if not all(isinstance(one, _KINDS) and _is_held(one) for one in listed):
            words = f"expected a number of 64 bits, a text or a list of them, found {value!r:.60}"
            raise MetadataError(words, f".{name}")
        of_runner: list[Any] = listed if name == _ENDS else [value]
        if name in _NUMBERS and any(type(one) is not int for one in of_runner):
            raise MetadataError(f"expected an integer, found {value!r:.60}", f".{name}")
    return cast("dict[str, Any]", content)


def _is_held(value: float | str) -> bool:
    """Return whether a program holds a value as it is: most readers end a string at a zero."""
    if isinstance(value, int):
        return -(1 << 63) <= value < 1 << 63
    return not isinstance(value, str) or not any(
        one == "\0" or "\ud800" <= one <= "\udfff" for one in value
    )
