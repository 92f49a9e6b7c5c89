"""Options in words of classes without a vendor: unknown ones and bad values are refused.

Classes that take any name, as the documented partitioners do, would ignore a misspelt one.
"""

from __future__ import annotations

import enum
import inspect
import sys
import typing
from collections.abc import Mapping
from typing import Any

_BY_WORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class NamedOptionError(ValueError):
    """An option that a class does not have, or a value that it does not take."""


def options_in_words(name: str, cls: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the members of enumerations that their words name.

    Args:
        name: of the class, as the user wrote it
        cls: the class
        options: values by name

    Raises: NamedOptionError naming the option, its value and what is allowed
    """
    parameters = _parameters(cls)
    found: dict[str, Any] = {}
    for key, value in options.items():
        parameter = parameters.get(key)
        if parameter is None:
            there = ", ".join(parameters) or "none"
            raise NamedOptionError(f"{name} has no option {key!r}; available: {there}")
        if isinstance(parameter.default, bool) and not isinstance(value, bool):
            raise NamedOptionError(f"{name}: {key} cannot be {value!r}; available: true, false")
        found[key] = _member(name, key, value, cls) if isinstance(value, str) else value
    return found


def _parameters(cls: type) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a class, those of its base where it takes any and names none."""
    for one in cls.__mro__:
        if "__init__" not in vars(one):
            continue
        given = list(inspect.signature(vars(one)["__init__"]).parameters.values())[1:]
        named = {each.name: each for each in given if each.kind in _BY_WORD}
        if named or not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in given):
            return named
    return {}


def _annotation(cls: type, key: str) -> str:
    """Return the type of a parameter in words, with what an alias stands for."""
    for one in cls.__mro__:
        initial: Any = vars(one).get("__init__")
        if initial is None:
            continue
        try:
            hints = typing.get_type_hints(initial)
        except (NameError, TypeError):  # of names that only a type checker imports
            hints = {}
        if key in hints:
            return repr(hints[key])
    return str(_parameters(cls)[key].annotation)


def _member(name: str, key: str, word: str, cls: type) -> Any:  # noqa: ANN401
    """Return the member of an enumeration beside a class, else the word if there is none."""
    beside = vars(sys.modules[cls.__module__]).values()
    asked = _annotation(cls, key)
    kinds = [one for one in beside if isinstance(one, type) and issubclass(one, enum.Enum)]
    kinds = [one for one in kinds if one.__name__ in asked]
    for kind in kinds:
        found = next((one for one in kind if one.name.lower() == word.lower()), None)
        if found is not None:
            return found
    if kinds and not isinstance(_parameters(cls)[key].default, str):
        there = ", ".join(one.name for kind in kinds for one in kind)
        raise NamedOptionError(f"{name}: {key} cannot be {word!r}; available: {there}")
    return word
