"""Caches results derived from immutable objects, keyed by the identity of the objects.

Hashing a frozen program traverses all of it; its identity is sufficient and free. The cache keeps
its keys alive, so that addresses are not reused, and evicts the oldest entries.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from typing_extensions import ParamSpec

P = ParamSpec("P")
R = TypeVar("R")
_CACHES: list[OrderedDict[Any, Any]] = []
_LOCK = threading.Lock()


def identity_cache(function: Callable[P, R]) -> Callable[P, R]:
    """Cache by the identity of the arguments; small values compare by equality.

    Scalars, strings and tuples of them compare by value. At most 128 results are cached. If several
    threads need the same result one computes it and the others wait.
    """
    entries: OrderedDict[Any, tuple[Any, R]] = OrderedDict()
    locks: dict[Any, threading.RLock] = {}
    _CACHES.append(entries)

    @wraps(function)
    def cached(*args: P.args, **kwargs: P.kwargs) -> R:
        key = (*map(_key, args), *((name, _key(item)) for name, item in sorted(kwargs.items())))
        with _LOCK:
            if key in entries:
                entries.move_to_end(key)
                return entries[key][1]
            lock = locks.setdefault(key, threading.RLock())
        with lock:
            with _LOCK:
                if key in entries:
                    return entries[key][1]
            try:
                result = function(*args, **kwargs)
                with _LOCK:
                    entries[key] = ((args, kwargs), result)
                    while len(entries) > 128:
                        entries.popitem(last=False)
            finally:
                with _LOCK:
                    locks.pop(key, None)
        return result

    return cached


def clear() -> None:
    """Drop all entries, so that closed files can be unmapped."""
    with _LOCK:
        for entries in _CACHES:
            entries.clear()


def _key(item: object) -> object:
    if isinstance(item, (int, str, float, bool, type(None))):
        return (type(item), item)
    if isinstance(item, tuple):
        members = cast("tuple[object, ...]", item)
        return tuple(map(_key, members)) if len(members) < 64 else id(members)
    return id(item)
