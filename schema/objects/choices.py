"""The values that an annotation of a nested member allows."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Literal, get_args, get_origin, get_type_hints


def choices_at(kind: Any, steps: Sequence[str | int]) -> list[str]:  # noqa: ANN401 - an annotation
    """Return the values that a member may have, empty if they are not a closed list.

    Args:
        kind: annotation of the whole
        steps: names of members and indices of items, down to the member
    """
    alternatives = [kind]
    for step in steps:
        alternatives = [low for one in alternatives for low in _below(one, step)]
    return [text for one in alternatives for text in _values(one)]


def _below(kind: Any, step: str | int) -> list[Any]:  # noqa: ANN401
    """Return the annotations of what a step leads to."""
    parts = get_args(kind)
    if get_origin(kind) in (list, tuple):
        return [one for one in parts if one is not ...]
    if get_origin(kind) is dict:
        return [parts[1]]
    if parts:  # one of several
        return [low for one in parts for low in _below(one, step)]
    hints = get_type_hints(kind) if isinstance(kind, type) else {}
    return [hints[step]] if step in hints else []


def _values(kind: Any) -> list[str]:  # noqa: ANN401
    if get_origin(kind) is Literal:
        return [str(one) for one in get_args(kind)]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(one.value) for one in kind]
    return [text for one in get_args(kind) for text in _values(one)]
