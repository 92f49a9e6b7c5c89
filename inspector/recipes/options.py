"""Metadata of recipe fields, from which command line, dialog, panel and worker are generated.

It is data instead of docstrings, so that ``python -OO`` keeps the help.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field
from enum import Enum
from typing import Any

_KEY = "option"
# headings of forms, in their order
SOURCE, TOOLCHAIN, QUANTIZE, PRECISION, EDGE, PARTITION, RULES, MEMORY, OUTPUT = GROUPS = (
    "Source",
    "Toolchain",
    "Quantize",
    "Precision",
    "Edge program",
    "Partition",
    "Partition rules",
    "Memory",
    "Output",
)


class FieldNames(str, Enum):
    """What the values of a field name; forms offer them in lists."""

    NOTHING = ""
    FILE = "file"
    FUNCTION = "function"
    METHOD = "method"
    INTERPRETER = "interpreter"
    DATA = "data"
    QUANTIZER = "quantizer"
    PARTITIONER = "partitioner"
    PLANNER = "planner"
    PASS = "pass"
    OPERATOR = "operator"
    NODE = "node"
    MODULE = "module"
    DTYPE = "dtype"
    RULE = "rule"
    SETTING = "setting"
    EDGE_SETTING = "edge setting"


@dataclass(frozen=True, slots=True)
class Option:
    """Presentation of a recipe field.

    Attributes:
        help: its description
        flag: on the command line, without dashes; may be empty
        metavar: name of its value there
        choices: (value, label) of each allowed value; empty allows any
        label: in the window; empty for the name of the field
        pair: placeholder after the equals sign of ``NAME=…`` values, as ``MODE``
        empty: meaning of an empty value, shown in the empty field of a form
        group: heading of a form under which it stands
        names: what its values name
        values: allowed values of ``NAME=…``; empty allows any
        more: what the command line also takes beside ``choices``, empty for nothing
        automatic: whether the command line also takes ``auto``, which it replaces by a value
    """

    help: str
    flag: str = ""
    metavar: str = "NAME"
    choices: tuple[tuple[str, str], ...] = ()
    label: str = ""
    pair: str = ""
    empty: str = ""
    group: str = ""
    names: FieldNames = FieldNames.NOTHING
    values: tuple[str, ...] = ()
    more: str = ""
    automatic: bool = False


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
    group: str = "",
    names: FieldNames = FieldNames.NOTHING,
    values: tuple[str, ...] = (),
    more: str = "",
    automatic: bool = False,
) -> Any:  # noqa: ANN401 - stands for a value of the field's type
    """Return a field of a dataclass with an ``Option``; ``...`` for a required field."""
    shown = f"NAME={pair}" if pair else metavar
    texts = (label, pair, empty, group, names, values, more, automatic)
    found = Option(help, flag, shown, choices, *texts)
    metadata = {_KEY: found}
    return field(metadata=metadata) if default is ... else field(default=default, metadata=metadata)


def option_of(one: Field[Any]) -> Option | None:
    """Return the metadata of a field, None for a nested part."""
    return one.metadata.get(_KEY)
