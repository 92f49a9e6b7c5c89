"""The result of comparing two files, and helpers shared by the comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schema.graph import GraphNode

Nodes = Mapping[int, tuple[GraphNode, ...]]
Finding = tuple[int, str]  # facts that agree, first mismatch


@dataclass(frozen=True, slots=True)
class JoinEvidence:
    """The result of a comparison.

    Attributes:
        what: description of the compared facts
        matched: number that agree
        mismatch: first contradiction, empty if none
    """

    what: str
    matched: int = 0
    mismatch: str = ""


def stem(name: str) -> str:
    """Return an operator name without the mark of an in-place variant."""
    return name.rstrip("_")  # a re-inplaced operator is the same operator


def shape_against(logged: tuple[int, ...], planned: tuple[int | str, ...], bounded: bool) -> bool:
    """Return whether a logged shape contradicts a planned one; bounds may be undercut."""
    if len(logged) != len(planned):
        return True
    for here, there in zip(logged, planned, strict=True):
        if isinstance(there, str):
            continue
        if here > there or (here != there and not bounded):
            return True
    return False
