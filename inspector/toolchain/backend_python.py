"""The interpreter whose packages partition for the built-in compiler."""

from __future__ import annotations

from schema.backends import partitioners
from schema.vendors.environments import environment, environments
from schema.vendors.table import vendor_called

AUTO = "auto"


class NoEnvironmentError(Exception):
    """A name that no environment has; one sentence."""


def interpreter_of(named: str, partitioner: str) -> str:
    """Return the interpreter for a partitioner, empty for the current one.

    Args:
        named: by the user: a path, the name of an environment, or ``auto`` for that of the backend
        partitioner: with its options; ETScope's own stay here

    Raises: NoEnvironmentError with those that are there
    """
    name = partitioner.partition(":")[0]
    if not named or any(name in (one.alias, one.class_name) for one in partitioners()):
        return ""
    vendor = vendor_called(name)
    asked = named
    if named == AUTO:
        asked = vendor.alias if vendor is not None else name
    elif any(mark in named for mark in ("/", "\\")):
        return named
    found = environment(asked)
    if found is not None:
        return str(found.python)
    if named == AUTO and vendor is not None and not vendor.missing():
        return ""  # this interpreter has it
    there = ", ".join(one.name for one in environments()) or "none"
    raise NoEnvironmentError(
        f"no environment {asked!r} of a backend; available: {there}. "
        f"`etscope backends install {asked}` creates one"
    )
