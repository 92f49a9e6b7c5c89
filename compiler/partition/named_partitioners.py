"""Partitioners by the names a user writes, with options; whoever adds one adds a line here."""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from typing import Any, cast

from compiler.named import Asked, UnknownNameError, make_named, object_in_file, parse_named

PartitionerNameError = UnknownNameError


@dataclass(frozen=True, slots=True)
class NamedPartitioner:
    """A partitioner that can be asked for by name.

    Attributes:
        alias: short name
        home: module of the class
        cls: name of the class, which is a name of the partitioner as well
        what: where the nodes go, in words
    """

    alias: str
    home: str
    cls: str
    what: str


PARTITIONERS: tuple[NamedPartitioner, ...] = (
    NamedPartitioner(
        "demo-add-mul",
        "compiler.backends.demo",
        "AddMulPartitionerDemo",
        "the demonstration backend of the documents: additions and matrix products",
    ),
    NamedPartitioner(
        "demo-all",
        "compiler.backends.demo",
        "AllNodesPartitionerDemo",
        "the whole-graph demonstration: everything, as a program inside the program",
    ),
    NamedPartitioner(
        "xnnpack",
        "compiler.backends.xnnpack",
        "XnnpackPartitioner",
        "XNNPACK, the kernels for processors of the stock runtime",
    ),
)


def partitioner_names() -> tuple[str, ...]:
    """Return every name of the table, aliases first."""
    aliases = [one.alias for one in PARTITIONERS]
    return (*aliases, *(one.cls for one in PARTITIONERS))


def is_called(name: str, cls: str) -> bool:
    """Return whether a user means a partitioner of a class by a name; an empty one means any.

    Args:
        name: alias, class, or ``file.py:Class``, with or without options
        cls: name of the class
    """
    short = name.rpartition(".py:")[2].partition(":")[0]
    return short in ("", cls) or any(one.cls == cls and one.alias == short for one in PARTITIONERS)


def parse_partitioner(text: str) -> Asked:
    """Return what ``NAME[:option=value…]`` asks for.

    Raises: PartitionerNameError for an option without a value
    """
    return parse_named(text)


def make_partitioner(asked: Asked) -> Any:  # noqa: ANN401 - ours or anyone's
    """Return a new partitioner.

    Raises: PartitionerNameError if there is none of that name or it does not take the options;
        whatever its file or its class raises
    """
    made = make_named(asked, _class_of(asked))
    if not callable(getattr(made, "partition", None)):
        raise PartitionerNameError(f"{asked.name} is no partitioner: it has no method partition")
    return made


def _class_of(asked: Asked) -> type:
    if asked.in_file:
        found = object_in_file(asked.name)
        if not isinstance(found, type):
            raise PartitionerNameError(f"{asked.name} is not a class")
        return cast("type[Any]", found)
    for one in PARTITIONERS:
        if asked.name in (one.alias, one.cls):
            return getattr(importlib.import_module(one.home), one.cls)
    close = difflib.get_close_matches(asked.name, partitioner_names(), 1)
    hint = f"did you mean {close[0]}?" if close else f"there is {', '.join(partitioner_names())}"
    raise PartitionerNameError(f"no partitioner {asked.name!r}; {hint}")
