"""Resolves dotted names: a name with a counterpart, a module with such names, or neither."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection
from functools import lru_cache

from inspector.compat.names import NamePlace, place_of, places
from inspector.compat.porting.moved import (
    GONE_MODULES,
    GONE_NAMES,
    NOT_NEEDED,
    moved_places,
)

_ROOT = "executorch"


def find_place(module: str, name: str) -> NamePlace | None:
    """Return the new place of a name of a module; None if it has none.

    A package documents names defined in its modules: both imports are supported.
    """
    found = place_of(module, name) or moved_places().get((module, name))
    package = module.rpartition(".")[0]
    while found is None and package not in ("", _ROOT):
        found = place_of(package, name)
        package = package.rpartition(".")[0]
    return found


def is_ported(module: str) -> bool:
    """Return whether a module is of the package, or one that torch no longer has."""
    return any(_is_below(module, one) for one in (_ROOT, *GONE_MODULES))


def is_known_module(path: str) -> bool:
    """Return whether some documented name is in a module or below it."""
    return path in _modules()


def is_not_needed(path: str) -> bool:
    """Return whether a module is imported only for its registrations, which are not needed here."""
    return any(_is_below(path, one) for one in NOT_NEEDED)


def is_gone_name(path: str) -> bool:
    """Return whether torch no longer has a name and nothing can be imported instead."""
    return path in GONE_NAMES


def only_home(module: str, mentioned: Collection[str] = ()) -> str:
    """Return the only module of ours with the documented names of a module; else empty.

    Args:
        module: of the package
        mentioned: attribute names in the script; if some are names of the module, only
            those count, otherwise the module of ours with most of its names
    """
    names = names_of(module)
    used = {names[word].module for word in mentioned if word in names}
    if len(used) > 1:
        return ""
    homes = Counter(place.module for place in names.values())
    if used or len(homes) == 1:
        return (used or set(homes)).pop()
    most = homes.most_common(1)
    return most[0][0] if mentioned and most else ""


def names_of(module: str) -> dict[str, NamePlace]:
    """Return the documented names of a module."""
    return {name: place for (stock, name), place in _all().items() if stock == module}


def remedy(path: str) -> str:
    """Return a hint for a name without counterpart: the same name elsewhere, or a similar one."""
    if path in GONE_NAMES:
        return GONE_NAMES[path]
    for old, new in GONE_MODULES.items():
        if _is_below(path, old):
            return f"its torchao counterparts are in {new}"
    module, _, name = path.rpartition(".")
    like = {place for (_, other), place in _all().items() if other == name}
    if like:
        here = " or ".join(sorted(f"from {one.module} import {one.name}" for one in like))
        return f"documented in another module: {here}"
    near = difflib.get_close_matches(name, list(names_of(module)), 1)
    return f"the documented name nearest to it is {near[0]}" if near else ""


def _is_below(path: str, module: str) -> bool:
    return path == module or path.startswith(f"{module}.")


@lru_cache(maxsize=1)
def _all() -> dict[tuple[str, str], NamePlace]:
    return {**places(), **moved_places()}


@lru_cache(maxsize=1)
def _modules() -> frozenset[str]:
    found: set[str] = set()
    for stock, _ in _all():
        parts = stock.split(".")
        found.update(".".join(parts[: count + 1]) for count in range(len(parts)))
    return frozenset(found)
