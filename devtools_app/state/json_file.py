"""Small JSON files of the window, read without trusting their content."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from schema.objects.atomic_file import write_atomically
from schema.objects.codec import ContentError, from_json, shown

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")
_NONE: Mapping[str, Any] = {}


def write_json(path: Path, content: object) -> None:
    """Write a JSON file in one step: it is either the old one or the new one.

    Raises: OSError
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    write_atomically(path, lambda stream: stream.write(text.encode("utf-8")))


def read_parts(
    content: object,
    kind: type[_T],
    place: str,
    *,
    choices: Mapping[str, Collection[str]] = _NONE,
    limits: Mapping[str, tuple[int, int]] = _NONE,
) -> _T:
    """Return a dataclass from JSON content; a missing or invalid member has its default.

    Invalid content is logged, with place, expected and found value. Invalid items
    of lists and objects are skipped individually.

    Args:
        content: expected to be an object
        kind: the dataclass; fields without a default are required
        place: name of the file, for the log
        choices: the values of a string, by the name of its member
        limits: the least and the largest value of a number; other values are clamped

    Raises: ContentError if a member without a default is missing or invalid
    """
    if not isinstance(content, Mapping):
        _LOG.warning("%s: expected an object, found %s", place, shown(content))
        content = {}
    known = cast("Mapping[str, object]", content)
    found: dict[str, Any] = {}
    for name, hint in _hints(kind).items():
        if name not in known:
            continue
        try:
            value = _part(known[name], hint, f"{place}: {name}")
            if name in choices:
                _check_choice(value, choices[name], f"{place}: {name}")
        except ContentError as error:
            _LOG.warning("%s", error)
            continue
        if name in limits:
            low, high = limits[name]
            value = min(high, max(low, value))
        found[name] = value
    for one in fields(cast("Any", kind)):
        if one.name not in found and one.default is one.default_factory is MISSING:
            raise ContentError("", f"{one.name} is missing or invalid", file=place)
    return kind(**found)


def _part(value: object, hint: Any, place: str) -> Any:  # noqa: ANN401 - of the type of the hint
    inner = get_args(hint)
    if isinstance(hint, type) and is_dataclass(hint) and isinstance(value, dict):
        return read_parts(cast("object", value), hint, place)
    if isinstance(value, list) and get_origin(hint) is tuple and inner[-1] is Ellipsis:
        items = ((f"{place}[{at}]", one) for at, one in enumerate(cast("list[object]", value)))
        return tuple(one for _, one in _valid(items, inner[0]))
    if isinstance(value, dict) and get_origin(hint) is Mapping and inner[-1] is not object:
        named = cast("dict[str, object]", value).items()
        return {name: one for name, one in _valid(named, inner[1], place) if isinstance(name, str)}
    return from_json(value, cast("Any", hint), place)


def _valid(
    items: Iterable[tuple[str, object]], hint: object, place: str = ""
) -> Iterator[tuple[str, Any]]:
    """Return the items that are of a type; the others are logged."""
    for name, value in items:
        try:
            yield name, _part(value, hint, f"{place}.{name}" if place else name)
        except ContentError as error:
            _LOG.warning("%s", error)


def _check_choice(value: object, choices: Collection[str], place: str) -> None:
    if value not in choices:
        raise ContentError(", ".join(filter(None, choices)), shown(value), file=place)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
