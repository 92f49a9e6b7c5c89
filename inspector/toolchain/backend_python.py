"""The interpreter whose packages partition for the built-in compiler."""

from __future__ import annotations

from collections.abc import Iterable

from schema.backends import partitioners
from schema.vendors.environments import environment, environment_for, environments
from schema.vendors.table import vendor_called

AUTO = "auto"


class NoEnvironmentError(Exception):
    """A name that no environment has; one sentence."""


def interpreter_of(named: str, partitioner: str) -> str:
    """Return the interpreter for a partitioner or quantizer, empty for the current one.

    Args:
        named: by the user: a path, the name of an environment, or ``auto`` for that of the
            vendor; empty: an environment only for what the current interpreter cannot do
        partitioner: with its options; ETScope's own stay here

    Raises: NoEnvironmentError with those that are there
    """
    name = partitioner.partition(":")[0]
    if any(name in (one.alias, one.class_name) for one in partitioners()):
        return ""
    if any(mark in named for mark in ("/", "\\")):
        return named
    vendor = vendor_called(name)
    if named in ("", AUTO) and vendor is not None:
        found = environment(vendor.alias) if named else None
        if found is None and vendor.missing():
            found = environment_for(vendor)
        if found is None and (not named or not vendor.missing()):
            return ""
        asked = vendor.alias
    elif not named:
        return ""
    else:
        asked = name if named == AUTO else named
        found = environment(asked)
    if found is None:
        raise NoEnvironmentError(_no_environment(asked))
    return str(found.python)


def interpreter_of_all(asked: Iterable[str]) -> str:
    """Return the environment that these need, empty for the current interpreter.

    It is empty, too, where they need several: one interpreter cannot serve them.

    Args:
        asked: partitioners and quantizers with their options
    """
    found = {interpreter_of("", one) for one in asked} - {""}
    return found.pop() if len(found) == 1 else ""


def _no_environment(asked: str) -> str:
    there = ", ".join(one.name for one in environments()) or "none"
    return (
        f"no environment {asked!r} of a backend; available: {there}. "
        f"`etscope backends install {asked}` creates one"
    )
