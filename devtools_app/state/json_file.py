"""Small JSON files of our own, read without trusting their content."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import cast

from schema.objects.atomic_file import write_atomically

MAX_BYTES = 4 << 20  # notes included; anything larger is not one of our files
_MAX_TEXT = 1 << 20


class DamagedFileError(ValueError):
    """A damaged file; the message is one sentence."""


def read_json(path: Path) -> dict[str, object]:
    """Return the object in a JSON file.

    Raises: DamagedFileError, OSError
    """
    with path.open("rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise DamagedFileError(f"{path} is larger than any file of its kind")
    try:
        found: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise DamagedFileError(f"{path} does not hold a JSON object")
    return cast("dict[str, object]", found)


def write_json(path: Path, content: object) -> None:
    """Write a JSON file in one step: it is either the old one or the new one.

    Raises: OSError
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    write_atomically(path, lambda stream: stream.write(text.encode("utf-8")))


def get_text(source: dict[str, object], key: str, default: str = "") -> str:
    """Return a string, the default if it is missing, not a string or far too long."""
    found = source.get(key)
    return found if isinstance(found, str) and len(found) <= _MAX_TEXT else default


def get_choice(source: dict[str, object], key: str, allowed: Iterable[str], default: str) -> str:
    """Return one of the allowed strings, else the default."""
    found = get_text(source, key, default)
    return found if found in allowed else default


def get_int(source: dict[str, object], key: str, default: int) -> int:
    """Return an integer, the default when it is missing or something else."""
    found = source.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) else default


def get_optional_int(source: dict[str, object], key: str) -> int | None:
    """Return an integer, None when it is missing or something else."""
    found = source.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def get_bool(source: dict[str, object], key: str, default: bool) -> bool:
    """Return true or false, the default when it is missing or something else."""
    found = source.get(key)
    return found if isinstance(found, bool) else default


def get_list(source: dict[str, object], key: str, most: int = 1000) -> list[object]:
    """Return a list, cut to a length; an empty one when it is missing or something else."""
    found = source.get(key)
    return cast("list[object]", found)[:most] if isinstance(found, list) else []


def get_strings(source: dict[str, object], key: str, most: int = 1000) -> tuple[str, ...]:
    """Return the strings in a list."""
    return tuple(item for item in get_list(source, key, most) if isinstance(item, str))


def get_object(source: dict[str, object], key: str) -> dict[str, object]:
    """Return an object, an empty one when it is missing or something else."""
    return as_object(source.get(key))


def as_object(found: object) -> dict[str, object]:
    """Return a value that should be an object as one, an empty one when it is not."""
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}
