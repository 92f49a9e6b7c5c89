"""What a field of a recipe means, as data: command line, dialog, panel and worker are made from it.

Metadata and no docstrings, so that ``python -OO`` keeps the help.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import Field, dataclass, field
from typing import Any

_KEY = "option"
_FILES = ("FILE", "PATH")  # the metavars of paths


@dataclass(frozen=True, slots=True)
class Option:
    """A field of a recipe as it is shown to a user.

    Attributes:
        help: what it means
        flag: on the command line, without dashes; empty for none of its own
        metavar: what its value is called there
        choices: (value, label) of each value it can have; any without
        label: what it is called in the window; empty for the name of the field
        pair: what follows the equals sign where each word is ``NAME=…``, as ``MODE``
        empty: what an empty value means, in a few words; shown in the empty field of a form
    """

    help: str
    flag: str = ""
    metavar: str = "NAME"
    choices: tuple[tuple[str, str], ...] = ()
    label: str = ""
    pair: str = ""
    empty: str = ""

    @property
    def is_file(self) -> bool:
        """Return whether its values are paths of files."""
        return self.metavar in _FILES


def option(  # noqa: PLR0913 - as many as an Option has
    default: object,
    help: str,
    *,
    flag: str = "",
    metavar: str = "NAME",
    choices: tuple[tuple[str, str], ...] = (),
    label: str = "",
    pair: str = "",
    empty: str = "",
) -> Any:  # noqa: ANN401 - stands for a value of the field's type
    """Return a field of a dataclass with an ``Option``; ``...`` as the default for none."""
    found = Option(help, flag, f"NAME={pair}" if pair else metavar, choices, label, pair, empty)
    metadata = {_KEY: found}
    return field(metadata=metadata) if default is ... else field(default=default, metadata=metadata)


def option_of(one: Field[Any]) -> Option | None:
    """Return what is known of a field, None for one that is a part with fields of its own."""
    return one.metadata.get(_KEY)


class AssignmentError(ValueError):
    """A word that is not ``NAME=VALUE``; with what was expected."""


def parse_assignment(text: str, what: str, values: Collection[str] = ()) -> tuple[str, str]:
    """Return name and value of a word ``NAME=VALUE``.

    Args:
        text: the name may hold equals signs, the value none
        what: the value is called, as ``MODE``
        values: that are possible; none for any

    Raises: AssignmentError
    """
    name, _, value = text.rpartition("=")
    if not name or (values and value not in values):
        more = f"; {what} is one of {', '.join(values)}" if values else ""
        raise AssignmentError(f"{text!r} is not NAME={what}{more}")
    return name, value


def parse_setting(text: str, names: Collection[str], where: str) -> tuple[str, str]:
    """Return name and value of a word whose names are known.

    Args:
        text: the value may hold equals signs, the name none
        names: that are possible
        where: they are from, as ``the backend config``

    Raises: AssignmentError
    """
    name, equals, value = text.partition("=")
    if not equals or name not in names:
        words = ", ".join(names)
        raise AssignmentError(f"{text!r} is not NAME=VALUE of {where}; available: {words}")
    return name, value
