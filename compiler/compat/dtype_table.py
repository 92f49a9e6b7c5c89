"""The dtype constraints of an operator as a table: type aliases, and rows of argument -> alias.

Within a row, arguments of one alias have the same dtype; other aliases are independent of each
other. It is computed from the rules that the verifier checks, so that both always agree.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from compiler.dialect.dtype_rules import DtypeRule, dtype_rule_of

Dtypes = frozenset[torch.dtype]
_Case = tuple[tuple[torch.dtype, ...], Dtypes]  # dtypes of the deciding arguments, of the result


@dataclass(frozen=True, slots=True)
class TypeConstraints:
    """Which dtypes tensors of an operator may have together.

    Attributes:
        aliases: names of dtypes by alias, ``T0``, ``T1``, …
        rows: alias by argument name; results without a name are ``__ret_0`` and so on
    """

    aliases: Mapping[str, tuple[str, ...]]
    rows: tuple[Mapping[str, str], ...]


class _Aliases:
    """Names sets of dtypes; a set used twice in a row for independent tensors has two names."""

    def __init__(self) -> None:
        self._names: dict[tuple[Dtypes, int], str] = {}

    def row(self, sets: Iterable[tuple[tuple[str, ...], Dtypes]]) -> dict[str, str]:
        """Return a row from groups of names that share a dtype and the dtypes they may share."""
        used: dict[Dtypes, int] = {}
        row: dict[str, str] = {}
        for names, dtypes in sets:
            count = used[dtypes] = used.get(dtypes, -1) + 1
            alias = self._names.setdefault((dtypes, count), f"T{len(self._names)}")
            row |= dict.fromkeys(names, alias)
        return row

    def table(self) -> dict[str, tuple[str, ...]]:
        """Return the names of the dtypes of each alias."""
        return {alias: _names(dtypes) for (dtypes, _), alias in self._names.items()}


def _names(dtypes: Dtypes) -> tuple[str, ...]:
    return tuple(sorted(str(dtype).removeprefix("torch.") for dtype in dtypes))


def type_constraints(op: Any) -> TypeConstraints | None:  # noqa: ANN401 - an operator of torch
    """Return the dtype constraints of an operator, None for one that is not checked."""
    rule = dtype_rule_of(op)
    if rule is None:
        return None
    tensors = [a.name for a in op._schema.arguments if "Tensor" in str(a.type)]
    returns = [r.name or f"__ret_{i}" for i, r in enumerate(op._schema.returns)]
    deciding = tuple(name for name in tensors if name not in rule.others)
    free = [((name,), rule.others[name]) for name in tensors if name in rule.others]
    fixed = [((n,), frozenset((d,))) for n, d in zip(returns[1:], rule.fixed, strict=False)]
    first = tuple(returns[:1] if rule.fixed else returns)
    aliases = _Aliases()
    rows = [aliases.row([*groups, *free, *fixed]) for groups in _groups(rule, deciding[:2], first)]
    for name in deciding[2:]:  # further tensors have the dtype of the second
        for row in rows:
            row[name] = row[deciding[1]]
    return TypeConstraints(aliases.table(), tuple(rows))


def _groups(
    rule: DtypeRule, deciding: tuple[str, ...], returns: tuple[str, ...]
) -> Iterator[list[tuple[tuple[str, ...], Dtypes]]]:
    pairs = itertools.product(sorted(rule.allowed, key=str), repeat=len(deciding))
    cases = [(given, rule.results(given)) for given in pairs]
    cases = [case for case in cases if case[1]]
    same = [
        given[0] for given, results in cases if len(set(given)) == 1 and results == frozenset(given)
    ]
    if deciding and same:
        yield [((*deciding, *returns), frozenset(same))]
    kept = [case for case in cases if not (case[0] and case[0][0] in same and _alike(case))]
    for results in dict.fromkeys(results for _, results in kept):
        given = [inputs for inputs, found in kept if found == results]
        for sets in _products(given):
            named = [((name,), found) for name, found in zip(deciding, sets, strict=True)]
            yield [*named, (returns, results)] if returns else named


def _alike(case: _Case) -> bool:
    return len(set(case[0])) == 1 and case[1] == frozenset(case[0])


def _products(given: Sequence[tuple[torch.dtype, ...]]) -> Iterator[tuple[Dtypes, ...]]:
    """Factor sets of inputs into products of independent sets."""
    if not given or not given[0]:
        yield ()
        return
    rest: dict[frozenset[tuple[torch.dtype, ...]], set[torch.dtype]] = {}
    for first in dict.fromkeys(one[0] for one in given):
        behind = frozenset(one[1:] for one in given if one[0] == first)
        rest.setdefault(behind, set()).add(first)
    for behind, firsts in rest.items():
        for sets in _products(sorted(behind, key=str)):
            yield (frozenset(firsts), *sets)
