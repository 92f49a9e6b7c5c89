"""Settings of users with an equals sign, all in one grammar: ``NAME=VALUE`` and forms of it.

The sentence of every error is the same: the text, the expected form, what was found, and what is
available.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

_WITH_OPTIONS = re.compile(r"[^=:]*(:\w+=[^=:]*)+")  # a value as 8da4w:group=32


class AssignmentError(ValueError):
    """A string of another form; one sentence with what was expected, found and is available."""


def assignment_error(
    text: str, form: str, found: str, available: Iterable[str] = ()
) -> AssignmentError:
    """Return the error about a string.

    Args:
        text: the string
        form: what it should be, as ``NAME=MODE``
        found: what is wrong, in words
        available: names or values that could be in its place
    """
    names = ", ".join(available)
    return AssignmentError(
        f"{text!r}: expected {form}, found {found}{f'; available: {names}' if names else ''}"
    )


def split_pair(text: str, *, last: bool = False) -> tuple[str, str]:
    """Return name and value of ``NAME[=VALUE]``; the value is empty where there is none.

    Args:
        text: to split
        last: split at the last equals sign that is not one of the value's options, as that of
            ``8da4w:group=32``; otherwise at the first
    """
    at = _last_sign(text) if last else text.find("=")
    return (text, "") if at < 0 else (text[:at], text[at + 1 :])


def _last_sign(text: str) -> int:
    """Return the sign before the value of a text whose name may contain some, -1 for none."""
    signs = [at for at, letter in enumerate(text) if letter == "="]
    found = [at for at in signs if _WITH_OPTIONS.fullmatch(text, at + 1)]
    return next(iter(found), signs[-1] if signs else -1)


def parse_setting(text: str, form: str, names: Collection[str] = ()) -> tuple[str, str]:
    """Return name and value of a setting; the value may contain equals signs, the name not.

    Args:
        text: the setting
        form: its form for errors, as ``NAME=VALUE of the backend config``
        names: known names; empty for any

    Raises: AssignmentError
    """
    name, value = split_pair(text)
    _check_name(text, form, name, names)
    if names and name not in names:
        raise assignment_error(text, form, repr(name), names)
    return name, value


def parse_assignment(text: str, what: str, values: Collection[str] = ()) -> tuple[str, str]:
    """Return name and value of a string ``NAME=VALUE`` whose name may contain equals signs.

    Args:
        text: the value contains an equals sign only if it is one of those that are allowed
        what: placeholder of the value, as ``MODE``
        values: allowed values; empty for any

    Raises: AssignmentError
    """
    known = [one for one in values if text.endswith(f"={one}")]
    if known:
        value = max(known, key=len)
        name = text[: -len(value) - 1]
    else:
        name, value = split_pair(text, last=True)
    form = f"NAME={what}"
    _check_name(text, form, name, values)
    if values and value not in values:
        raise assignment_error(text, form, repr(value), values)
    return name, value


def parse_path(text: str, form: str, separator: str) -> tuple[list[str], str]:
    """Return the parts of a name and the value of ``GROUP.NAME=VALUE`` or ``NAME:OPTION=VALUE``.

    Args:
        text: the setting
        form: its form for errors
        separator: between the parts, of two or more

    Raises: AssignmentError
    """
    name, value = parse_setting(text, form)
    parts = name.split(separator)
    if len(parts) < 2 or not all(parts):
        raise assignment_error(text, form, repr(name))
    return parts, value


def _check_name(text: str, form: str, name: str, available: Collection[str]) -> None:
    if "=" not in text:
        raise assignment_error(text, form, "no '='", available)
    if not name:
        raise assignment_error(text, form, f"no {form.partition('=')[0]}", available)
