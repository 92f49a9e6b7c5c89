"""The result of comparing two files, and helpers shared by the comparisons."""

from __future__ import annotations

from collections.abc import Collection, Mapping
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


_LAYOUT_COPY = "_to_dim_order_copy"


def stem(name: str) -> str:
    """Return an operator name without the mark of an in-place variant."""
    return name.rstrip("_")  # a re-inplaced operator is the same operator


def is_made_later(operator: str, origin: str, recorded: Collection[str]) -> bool:
    """Return whether a pass made the node of an instruction after the graph was recorded.

    Of records without origins, copies into another layout may be: vendors' compilers add them
    behind their delegates, with the handle of what they copy.

    Args:
        operator: that the instruction calls, without namespace
        origin: name of its node, as the record has it
        recorded: names of the nodes of the recorded graph
    """
    named = f"_{operator}_" in f"_{origin}_" if origin else operator == _LAYOUT_COPY
    return origin not in recorded and named


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
