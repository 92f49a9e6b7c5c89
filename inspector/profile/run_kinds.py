"""Which runs are of one program when there is no program: those that run the same instructions.

Without it a trace does not name the method. Times of runs that contradict each other are of
different methods or programs, and their mean would be the time of nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from inspector.trace.blocks import Block
from inspector.trace.event_kinds import OPERATOR_CALL, inside_delegates
from schema.payloads.identity import has_program_order

_WRAPPERS = (OPERATOR_CALL,)  # not logged by every release
_JUMP = "JF_CALL"
Rows: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """The kind of a run.

    Shapes: outer int64[n, 3] chain, instruction and name; inner int64[m, 4] with how often

    Attributes:
        outer: events of instructions, each once, sorted
        inner: events inside delegates, the same
        jumps: whether there is control flow, so that other runs may take another way
        by_node: see `names_nodes`
    """

    outer: Rows
    inner: Rows
    jumps: bool
    by_node: bool


def names_nodes(block: Block) -> bool:
    """Return whether events inside delegates are called by the node of the payload.

    An engine that logs the value of each node does so; kernels of the delegate's own library have
    names and numbers of their own, so that runs of one program differ in them.
    """
    inside = block.layout.delegate_str[inside_delegates(block)]
    places: list[int] = np.unique(inside).tolist()
    names = [block.strings[place] for place in places if place >= 0]
    return bool(names) and all(map(has_program_order, names))


def run_kinds(blocks: Sequence[Block]) -> list[int]:
    """Return for each block which kind of run it is, numbered in order of appearance."""
    if len(blocks) < 2:
        return [0] * len(blocks)
    known: dict[str, int] = {}
    firsts: list[_Steps] = []
    found: list[int] = []
    for block in blocks:
        steps = _steps(block, known)
        kind = next((n for n, first in enumerate(firsts) if _agree(first, steps)), len(firsts))
        if kind == len(firsts):
            firsts.append(steps)
        found.append(kind)
    return found


def kind_labels(files: Sequence[str]) -> list[str]:
    """Return a short name of each kind by the file it is first seen in, no two the same."""
    paths = [PurePath(file).parts[-2:] for file in files]
    names = ["/".join(path[-1:]) for path in paths]
    if len(set(names)) < len(names):
        names = ["/".join(path) for path in paths]
    return [
        name if names.count(name) == 1 else f"{name}, kind {names[: number + 1].count(name)}"
        for number, name in enumerate(names)
    ]


def _steps(block: Block, known: dict[str, int]) -> _Steps:
    layout = block.layout
    texts = [*block.strings, ""]  # the last stands for no name
    number = np.array([known.setdefault(text, len(known)) for text in texts], np.int64)
    family = np.array(
        [known.setdefault(f"{text.partition(')')[0]})", len(known)) for text in texts], np.int64
    )
    inside = inside_delegates(block)
    wrappers = [place for place, text in enumerate(block.strings) if text in _WRAPPERS]
    outer = (layout.chain >= 0) & ~inside & ~np.isin(layout.name, wrappers)
    called = np.where(layout.delegate_str >= 0, family[layout.delegate_str], layout.delegate_int)
    places: list[NDArray[Any]] = [layout.chain, layout.instruction]
    steps = np.stack([*places, number[layout.name]], axis=1).astype(np.int64)
    inner = np.stack([*places, called], axis=1).astype(np.int64)[inside]
    rows, counts = np.unique(inner, axis=0, return_counts=True)
    return _Steps(
        np.unique(steps[outer], axis=0),
        np.concatenate([rows, counts[:, None]], axis=1),
        _JUMP in block.strings,
        names_nodes(block),
    )


def _agree(one: _Steps, other: _Steps) -> bool:
    """Return whether nothing in two runs contradicts that they are of one method."""
    if not one.jumps and not other.jumps:
        apart = not len(one.inner) or not len(other.inner) or one.by_node != other.by_node
        return np.array_equal(one.outer, other.outer) and (
            apart or np.array_equal(one.inner, other.inner)
        )
    both = {tuple(row) for row in one.outer.tolist()} & {tuple(row) for row in other.outer.tolist()}
    places = _places(one.outer) & _places(other.outer)
    return bool(both) and len({row[:2] for row in both}) == len(places)


def _places(rows: Rows) -> set[tuple[int, ...]]:
    return {tuple(row[:2]) for row in rows.tolist()}
