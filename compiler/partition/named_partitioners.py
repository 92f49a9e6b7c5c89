"""Partitioners by the names that users write, with options; `schema.backends` has the table."""

from __future__ import annotations

from typing import Any, cast

from compiler.named import (
    NamedObject,
    UnknownNameError,
    create_named,
    create_of_vendor,
    object_in_file,
    parse_named,
)
from compiler.named_options import options_in_words
from schema.backends import partitioners, resolve
from schema.vendors.names import (
    partitioner_aliases,
    partitioner_class,
    partitioner_vendor,
    unknown_partitioner,
)

PartitionerNameError = UnknownNameError


def partitioner_names() -> tuple[str, ...]:
    """Return every name of the table, aliases first."""
    return (*partitioner_aliases(), *(one.class_name for one in partitioners()))


def is_called(name: str, cls: str) -> bool:
    """Return whether a user means a partitioner of a class by a name; an empty one means any.

    Args:
        name: alias, class, or ``file.py:Class``, with or without options
        cls: name of the class
    """
    short = name.rpartition(".py:")[2].partition(":")[0]
    return short in ("", cls) or partitioner_class(short) == cls


def parse_partitioner(text: str) -> NamedObject:
    """Parse ``NAME[:option=value…]``.

    Raises: PartitionerNameError for an option without a value
    """
    return parse_named(text)


def create_partitioner(asked: NamedObject) -> Any:  # noqa: ANN401 - ours or anyone's
    """Return a new partitioner.

    Raises: PartitionerNameError if it is unknown or does not accept the options;
        errors of its file or class
    """
    vendor = None if asked.in_file else partitioner_vendor(asked.name)
    built = (
        create_of_vendor("create_partitioner_of", vendor, asked.options)
        if vendor is not None
        else create_named(*_in_words(asked, _class_of(asked)))
    )
    if not callable(getattr(built, "partition", None)):
        raise PartitionerNameError(f"{asked.name} is not a partitioner: it has no method partition")
    return built


def _in_words(asked: NamedObject, cls: type) -> tuple[NamedObject, type]:
    """Return the name with its options converted and checked; a user's own class has any."""
    if asked.in_file:
        return asked, cls
    try:
        return NamedObject(asked.name, options_in_words(asked.name, cls, asked.options)), cls
    except ValueError as error:
        raise PartitionerNameError(str(error)) from error


def _class_of(asked: NamedObject) -> type:
    if asked.in_file:
        found = object_in_file(asked.name)
        if not isinstance(found, type):
            raise PartitionerNameError(f"{asked.name} is not a class")
        return cast("type[Any]", found)
    for one in partitioners():
        if asked.name in (one.alias, one.class_name):
            return resolve(one.place)
    raise PartitionerNameError(unknown_partitioner(asked.name))
