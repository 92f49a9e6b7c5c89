"""The maps from instructions to debug handles and delegates.

JSON turns their integer keys into strings. A release before 1.0 could also write a map without
methods; it is read as that of ``forward``.

Source: exir/emit/_emitter.py ``EmitterOutput``; devtools/etrecord/_etrecord.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from schema.etrecord.graph.json_text import Json
from schema.etrecord.graph.unions import BROKEN, mapping

T = TypeVar("T")
FORWARD = "forward"
_MAX_DIGITS = 18  # any such number fits 64 bits; int() of long strings takes quadratic time
_MOST_OUTPUTS = 1 << 16  # of one call; each one becomes a line
Problems: TypeAlias = list[str]


@dataclass(frozen=True, slots=True)
class DelegateMap:
    """Debug data of a delegate about its inner operators.

    Attributes:
        name: backend id
        handles: debug handles by delegate debug id (a string, also where the backend used integers)
    """

    name: str
    handles: Mapping[str, tuple[int, ...]]


HandleMap: TypeAlias = Mapping[str, Mapping[int, tuple[int, ...]]]
DelegateMaps: TypeAlias = Mapping[str, Mapping[int, DelegateMap]]
CountMap: TypeAlias = Mapping[str, Mapping[int, int]]


def read_handle_map(tree: Json, problems: Problems) -> HandleMap:
    """Return the debug handles of each instruction of each method."""
    return _by_method(tree, _handles, problems, lambda entry: isinstance(entry, (int, list)))


def read_delegate_map(tree: Json, problems: Problems) -> DelegateMaps:
    """Return the delegate map of each delegate instruction of each method."""
    return _by_method(tree, _delegate, problems, lambda entry: "delegate_map" in mapping(entry))


def read_count_map(tree: Json, problems: Problems) -> CountMap:
    """Return the number of outputs of each delegate instruction of each method."""
    return _by_method(tree, _count, problems, lambda entry: isinstance(entry, int))


def _by_method(
    tree: Json,
    read: Callable[[Json], T],
    problems: Problems,
    is_entry: Callable[[Json], bool],
) -> Mapping[str, Mapping[int, T]]:
    if not isinstance(tree, dict):
        problems.append("it is not a JSON object")
    methods = mapping(tree)
    if methods and all(map(is_entry, methods.values())):
        methods = {FORWARD: methods}
    found: dict[str, Mapping[int, T]] = {}
    for method, entries in methods.items():
        instructions: dict[int, T] = {}
        for key, entry in mapping(entries).items():
            try:
                instructions[_instruction(key)] = read(entry)
            except BROKEN as error:
                problems.append(f"instruction {key[:40]} of {method[:40]}: {str(error)[:80]}")
        found[method] = MappingProxyType(instructions)
    return MappingProxyType(found)


def _instruction(key: str) -> int:
    if not key.isdecimal() or len(key) > _MAX_DIGITS:
        raise ValueError("not an instruction index")
    return int(key)


def _integer(entry: Json) -> int:
    if entry.__class__ is not int:
        raise TypeError(f"a {type(entry).__name__} instead of an integer")
    return entry


def _count(entry: Json) -> int:
    number = _integer(entry)
    if not 0 <= number <= _MOST_OUTPUTS:
        raise ValueError(f"{str(number)[:20]} outputs, where 0 to {_MOST_OUTPUTS} are possible")
    return number


def _handles(entry: Json) -> tuple[int, ...]:
    if isinstance(entry, int):
        return (_integer(entry),)
    return tuple([_integer(handle) for handle in entry])


def _delegate(entry: Json) -> DelegateMap:
    handles = {key: _handles(value) for key, value in mapping(entry["delegate_map"]).items()}
    return DelegateMap(str(entry.get("name") or ""), MappingProxyType(handles))
