"""The standard passes by name; `schema.recipe.passes` has the table."""

from __future__ import annotations

from typing import Any

from compiler.named import UnknownNameError, create_named, object_in_file, parse_named
from schema.backends import resolve
from schema.recipe.passes import PASSES

STANDARD_PASSES = PASSES


def standard_pass(name: str, **options: Any) -> Any:  # noqa: ANN401
    """Return a new standard pass.

    Raises: KeyError listing the available passes
    """
    if name not in STANDARD_PASSES:
        raise KeyError(f"unknown pass {name!r}; available: {', '.join(sorted(STANDARD_PASSES))}")
    return resolve(STANDARD_PASSES[name].place)(**options)


def named_pass(text: str) -> Any:  # noqa: ANN401
    """Return the pass that a user names: a standard one, or ``file.py:NAME[:option=value…]``.

    A class is instantiated with the options; a function is called with a graph module and may
    return a
    ``PassResult``.

    Raises: UnknownNameError if it cannot be found or is not callable; errors of its file
    """
    asked = parse_named(text)
    if not asked.in_file:
        if asked.name not in STANDARD_PASSES:
            known = ", ".join(sorted(STANDARD_PASSES))
            raise UnknownNameError(f"unknown pass {asked.name!r}; available: {known}, file.py:NAME")
        return standard_pass(asked.name, **asked.options)
    built = create_named(asked, object_in_file(asked.name))
    if not callable(built):
        raise UnknownNameError(f"{asked.name} is not a pass: expected a class or a function")
    return built
