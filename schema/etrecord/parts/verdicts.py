"""Verdicts: for every node of a partitioned graph the decision of each partitioner, and why.

A record stores them as JSON under a name that the stock tool does not read as a graph.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from schema.errors import FormatError

MEMBER = "etscope/verdicts_constants"
VERSION = 1


class NodeOutcome(str, Enum):
    """The outcome of a node."""

    DELEGATED = "delegated"
    REJECTED = "rejected_by_rule"
    NO_RULE = "no_rule_for_operator"
    CLAIMED = "claimed_earlier"
    CYCLE = "dropped_because_of_cycle"
    TOO_SMALL = "dropped_as_too_small"
    VETOED = "vetoed_by_user"
    DECOMPOSED = "decomposed_away"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision of one partitioner about one node.

    Attributes:
        node: name in the recorded edge program; of the exported program for a node that was
            decomposed away
        operator: as in ``aten.add.Tensor``
        debug_handle: of the node, None if it has none
        partitioner: that decided
        rule: id of the rule that decided
        outcome: the decision
        reason: as a sentence, with the values that decided
        source: ``file:line`` of the user's code, empty if unknown
        backend: of a delegated node, empty for others
        partition: tag of the partition, empty for nodes outside of partitions
    """

    node: str
    operator: str
    debug_handle: int | None
    partitioner: str
    rule: str
    outcome: NodeOutcome
    reason: str
    source: str = ""
    backend: str = ""
    partition: str = ""


Verdicts = Mapping[str, tuple[Verdict, ...]]
Members = Mapping[str, Mapping[int, tuple[str, ...]]]
"""By method and instruction that calls a delegate: its nodes, by their names in the graph."""
_TEXTS = ("node", "operator", "partitioner", "rule", "reason", "source", "backend", "partition")


def encode_verdicts(verdicts: Mapping[str, Sequence[Verdict]], members: Members) -> bytes:
    """Return verdicts by method as JSON.

    Args:
        verdicts: on each node
        members: which nodes are in which call; empty when that is not known
    """
    methods = {
        method: [{**asdict(verdict), "outcome": verdict.outcome.value} for verdict in found]
        for method, found in verdicts.items()
    }
    calls = {method: found for method, found in members.items() if found}
    content = {"version": VERSION, "methods": methods, **({"calls": calls} if calls else {})}
    return json.dumps(content).encode()


def decode_verdicts(tree: Any, file: str = "") -> Verdicts:  # noqa: ANN401 - parsed JSON
    """Return verdicts by method.

    Raises: FormatError if structure or version of the JSON is unknown
    """
    try:
        if tree["version"] != VERSION:
            raise FormatError(f"version {VERSION}", str(tree["version"]), field=MEMBER, file=file)
        methods: dict[str, list[dict[str, Any]]] = tree["methods"]
        return {
            method: tuple(_verdict(entry) for entry in entries)
            for method, entries in methods.items()
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError("verdicts by method", str(error), field=MEMBER, file=file) from None


def decode_members(tree: Any, file: str = "") -> Members:  # noqa: ANN401 - parsed JSON
    """Return which nodes are in which call of a delegate; empty if not recorded.

    Raises: FormatError if the structure of the JSON is unknown
    """
    try:
        methods: dict[str, dict[str, list[Any]]] = tree.get("calls", {})
        return {
            method: {int(step): tuple(map(str, names)) for step, names in calls.items()}
            for method, calls in methods.items()
        }
    except (TypeError, ValueError, AttributeError) as error:
        raise FormatError("nodes by call", str(error), field=MEMBER, file=file) from None


def _verdict(entry: dict[str, Any]) -> Verdict:
    texts = {name: entry.get(name, "") for name in _TEXTS}
    handle = entry.get("debug_handle")
    if not all(isinstance(text, str) for text in texts.values()):
        raise TypeError("a verdict with a field that is not a string")
    if handle is not None and handle.__class__ is not int:
        raise TypeError("a debug handle that is not an integer")
    return Verdict(**texts, debug_handle=handle, outcome=NodeOutcome(entry["outcome"]))
