"""Plans with one field replaced by a number or list that makes no sense there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from schema import program as pte

Path = tuple[str | int, ...]
_NUMBERS = (-(1 << 31), -2, -1, 0, 1, 2, 3, 7, 63, 99, 1 << 16, (1 << 31) - 1)
_SMALLEST, _LARGEST = -(1 << 31), (1 << 31) - 1


def mutated(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """Return a program with one to three fields of a plan replaced, and which."""
    program = pte.decode(data)
    plans = list(program.plans)
    at = rng.randrange(len(plans))
    said: list[str] = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        path, value = rng.choice(list(_leaves(plans[at])))
        changed = _other(value, rng)
        said.append(f"{'.'.join(map(str, path))} = {changed!r}")
        plans[at] = _with(plans[at], path, changed)
    table = replace(program.table, execution_plan=tuple(plans))
    return "; ".join(said), pte.encode(replace(program, table=table))


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if is_dataclass(value) and not isinstance(value, type):
        for entry in fields(value):
            yield from _leaves(getattr(value, entry.name), (*path, entry.name))
    elif isinstance(value, tuple):
        if value and all(isinstance(item, int) for item in value):
            yield path, value
        for place, item in enumerate(value):
            yield from _leaves(item, (*path, place))
    elif isinstance(value, int | float):
        yield path, value


def _other(value: Any, rng: random.Random) -> Any:
    if isinstance(value, tuple):
        drawn = list(value)
        act = rng.randrange(4)
        if act == 0:
            return tuple(drawn[:-1])
        if act == 1:
            return (*drawn, rng.choice(_NUMBERS))
        drawn[rng.randrange(len(drawn))] = rng.choice(_NUMBERS)
        return tuple(reversed(drawn)) if act == 2 else tuple(drawn)
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        return rng.choice((0.0, -1.0, 1e30, float("nan"), float("inf")))
    near = value + rng.choice((-16, -1, 1, 16))
    return rng.choice((*_NUMBERS, min(max(near, _SMALLEST), _LARGEST)))


def _with(value: Any, path: Path, changed: Any) -> Any:
    if not path:
        return changed
    head, rest = path[0], path[1:]
    if isinstance(head, int):
        items = list(value)
        items[head] = _with(items[head], rest, changed)
        return tuple(items)
    return replace(value, **{head: _with(getattr(value, head), rest, changed)})
