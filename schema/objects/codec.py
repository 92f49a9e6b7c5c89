"""JSON content to and from dataclasses; errors name place, expected and found content."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
from typing_extensions import override

from schema.errors import FormatError
from schema.objects.choices import choices_at

_T = TypeVar("_T")
_PLACE = re.compile(
    r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`(?:key in )?\$(?P<path>.*)`)?", re.DOTALL
)
_EXPECTED = re.compile(r"Expected `(?P<expected>[^`]*)`(?P<limit>.*?), got `(?P<found>[^`]*)`")
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]*)`")
_UNKNOWN = re.compile(r"Invalid enum value (?P<value>.*)")
_STEP = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<index>\d+)\]")
_WORDS = {
    "array": "a list",
    "object": "an object",
    "str": "a string",
    "bool": "true or false",
    "int": "an integer",
    "float": "a number",
}
_TYPES: dict[type, str] = {list: "array", dict: "object", type(None): "null"}
_SHOWN = 60  # characters of the found value


class ContentError(FormatError):
    """Invalid JSON content: one sentence with place, expected and found."""

    @override
    def __str__(self) -> str:
        where = f": {self.field}" if self.field else ""
        if not self.expected:
            return f"{self.file}{where}: {self.found}"
        return f"{self.file}{where}: expected {self.expected}, found {self.found}"


def read_json(path: Path, what: str, most: int) -> Any:  # noqa: ANN401 - JSON
    """Return the content of a JSON file.

    Args:
        path: of the file
        what: expected content, for the error
        most: size limit in bytes

    Raises: FormatError, OSError
    """
    size = path.stat().st_size
    if size > most:
        raise FormatError(what, f"{size:,} bytes, more than {most:,}", file=str(path))
    try:
        with path.open("rb") as stream:
            data = stream.read(most + 1)
        if len(data) > most:  # of a device, whose size is unknown
            raise FormatError(what, f"more than {most:,} bytes", file=str(path))
        text = data.decode("utf-8")
        content: Any = json.loads(text)
        if "\\u" in text:  # half of a surrogate pair is no character: no stream takes it
            json.dumps(content, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{what} as JSON", str(error), file=str(path)) from error
    return content


def read_object(path: Path, what: str, most: int) -> dict[str, object]:
    """Return the object in a JSON file; see ``read_json``."""
    content: object = read_json(path, what, most)
    if not isinstance(content, dict):
        raise FormatError(f"{what} as a JSON object", shown(content), file=str(path))
    return cast("dict[str, object]", content)


def read_versioned(
    path: Path, kind: type[_T], what: str, version: tuple[str, int], most: int
) -> _T:
    """Return the value in a JSON file with a version member.

    Args:
        path: of the file
        kind: as in ``from_json``
        what: expected content, for the error
        version: name of the version member, and the expected version
        most: size limit in bytes

    Raises: FormatError, OSError
    """
    content: object = read_json(path, what, most)
    name, expected = version
    known = isinstance(content, dict)
    found = cast("dict[str, object]", content).get(name) if known else None
    if type(found) is not int or found != expected:
        raise FormatError(f"{what} of version {expected}", shown(found), field=name, file=str(path))
    return from_json(content, kind, str(path))


def to_json(value: object) -> Any:  # noqa: ANN401 - JSON
    """Return a value of dataclasses, enums and containers as objects for ``json.dumps``."""
    return msgspec.to_builtins(value)


def from_json(
    content: object, kind: type[_T], place: str, *, closed: bool = False, strict: bool = True
) -> _T:
    """Return the value in JSON content.

    Args:
        content: as ``json.loads`` returns it
        kind: a dataclass or Struct, or any annotation of them
        place: name of the file, for the error
        closed: whether unknown members are errors
        strict: whether strings that spell numbers are errors

    Raises: ContentError
    """
    try:
        found = msgspec.convert(content, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise _error(str(error), content, place, kind) from error
    except RecursionError as error:
        raise ContentError("fewer levels", "too many", file=place) from error
    if closed:
        _check_known(content, to_json(found), place, "")
    return found


def shown(value: object) -> str:
    """Return the beginning of a value in JSON notation."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return f"{value!r:.{_SHOWN}}"


def _error(text: str, content: object, place: str, kind: object) -> ContentError:
    """Return an error of the library with the path, what was expected and what was found."""
    match = _PLACE.fullmatch(text)
    assert match is not None
    path, what = match["path"] or "", match["what"]
    expected = _EXPECTED.fullmatch(what)
    if path.endswith("[...]") and expected is not None:
        path = f"{path[:-5]}{_key(content, path[:-5], expected['found'])}"
    path = path.lstrip(".")
    if match["key"]:
        _, holder = _at(content, path)
        keys = cast("dict[object, object]", holder) if isinstance(holder, dict) else {}
        key = next((one for one in keys if not isinstance(one, str)), what)
        return ContentError("a string as key", shown(key), field=path, file=place)
    missing = _MISSING.fullmatch(what)
    if missing is not None:
        return ContentError("", f"{missing['name']} is missing", field=path, file=place)
    unknown = _UNKNOWN.fullmatch(what)
    choices = choices_at(kind, _steps(path)) if unknown is not None else []
    if unknown is not None and choices:
        words = f"unknown {unknown['value']}; available: {', '.join(choices)}"
        return ContentError("", words, field=path, file=place)
    if expected is None:
        return ContentError("", f"{what[:1].lower()}{what[1:]}", field=path, file=place)
    kinds = [_WORDS.get(one, one) for one in expected["expected"].split(" | ")]
    known, value = _at(content, path)
    found = shown(value) if known else expected["found"]
    return ContentError(" or ".join(kinds) + expected["limit"], found, field=path, file=place)


def _at(content: object, path: str) -> tuple[bool, object]:
    """Return whether a path leads to a value, and that value."""
    if "[...]" in path:
        return False, None
    for key in _steps(path):
        try:
            content = cast("Any", content)[key]
        except (LookupError, TypeError):
            return False, None
    return True, content


def _steps(path: str) -> list[str | int]:
    """Return the names and indices of a path."""
    found = _STEP.finditer(path if path.startswith("[") else f".{path}" if path else "")
    return [one["name"] if one["name"] is not None else int(one["index"]) for one in found]


def _key(content: object, path: str, found: str) -> str:
    """Return the step to the first value of a type in a mapping: the library omits its key."""
    _, mapping = _at(content, path.lstrip("."))
    if isinstance(mapping, dict):
        for key, value in cast("dict[str, object]", mapping).items():
            if _TYPES.get(type(value), type(value).__name__) == found:
                return f".{key}"
    return "[...]"


def _check_known(content: object, found: object, place: str, path: str) -> None:
    """Raise ContentError for a member of the content that was not read."""
    if isinstance(content, Mapping) and isinstance(found, Mapping):
        known = cast("Mapping[str, object]", found)
        for name, value in cast("Mapping[str, object]", content).items():
            if name not in known:
                words = f"unknown {name}; available: {', '.join(known)}"
                raise ContentError("", words, field=path, file=place)
            _check_known(value, known[name], place, f"{path}.{name}" if path else name)
    elif isinstance(content, list | tuple) and isinstance(found, list | tuple):
        pairs = zip(cast("list[object]", content), cast("list[object]", found), strict=False)
        for at, (value, read) in enumerate(pairs):
            _check_known(value, read, place, f"{path}[{at}]")
