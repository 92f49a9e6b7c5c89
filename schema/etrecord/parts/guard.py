"""Refusals: partitions that their engine does not load.

A record stores them as JSON under a name that the stock tool does not read as a graph. The
member exists only if a partition was refused.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from schema.errors import FormatError

MEMBER = "etscope/guard_constants"
VERSION = 1
INITIALISATION, SHAPES, ENDED = "initialisation", "shapes", "ended"
PHASES = (INITIALISATION, SHAPES, ENDED)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A partition that was refused, and the operator that caused it.

    Attributes:
        method: it belongs to
        delegate: its index among the delegates of the method
        backend: id of its backend
        engine: name of the engine that refused it
        phase: ``initialisation``, ``shapes`` if its first run would fail, or ``ended`` if it
            crashed the
            process of the engine
        reason: the message of the engine, one sentence without a full stop
        place: index of the node in the payload, None if unknown
        kind: of that node, empty if unknown
        node: of the recorded edge program, empty if unknown
        exported: its node of the exported program, empty if unknown; this name does not depend on
            the
            lowering
        operator: of that node, as in ``aten.add.Tensor``
        partitioner: that took the node
        rule: of the partitioner that accepted it
        source: ``file:line`` of the user's code, empty if unknown
        others: edge nodes fused into the same payload node
    """

    method: str
    delegate: int
    backend: str
    engine: str
    phase: str
    reason: str
    place: int | None = None
    kind: str = ""
    node: str = ""
    exported: str = ""
    operator: str = ""
    partitioner: str = ""
    rule: str = ""
    source: str = ""
    others: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """Return the refusals: partition, engine and reason."""
        what = f"{self.node} ({self.operator})" if self.node else self._payload_node()
        line = f" from {self.source}" if self.source else ""
        rule = f"; {self.rule} of {self.partitioner} accepted it" if self.rule else ""
        return (
            f"partition {self.delegate} of {self.method} {_VERBS[self.phase]} {self.engine}:"
            f" {what}{line}: {self.reason}{rule}"
        )

    def _payload_node(self) -> str:
        return f"node {self.place} ({self.kind})" if self.place is not None else "no node is named"

    @property
    def remedies(self) -> tuple[str, ...]:
        """Return the options that exclude the operator, the most specific first."""
        if not self.node:
            return ()
        name = self.exported or self.node
        named = (("node", name), ("op", self.operator), ("rule", self.rule))
        return tuple(f"--deny-{kind} {name}" for kind, name in named if name)


_VERBS = {
    INITIALISATION: "is refused at initialisation by",
    SHAPES: "loads, and is refused at its first run by",
    ENDED: "ends",
}


def encode_refusals(refusals: Sequence[Refusal]) -> bytes:
    """Return refusals as JSON; equal ones have equal bytes."""
    content = {"version": VERSION, "refusals": [asdict(one) for one in refusals]}
    return json.dumps(content).encode()


def decode_refusals(tree: Any, file: str = "") -> tuple[Refusal, ...]:  # noqa: ANN401 - parsed JSON
    """Return refusals.

    Raises: FormatError if structure or version of the JSON is unknown
    """
    try:
        if tree["version"] != VERSION:
            raise FormatError(f"version {VERSION}", str(tree["version"]), field=MEMBER, file=file)
        return tuple(refusal_from(entry) for entry in tree["refusals"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError("refused partitions", str(error), field=MEMBER, file=file) from None


def refusal_from(entry: Any) -> Refusal:  # noqa: ANN401 - parsed JSON
    """Return the refusal in a JSON object.

    Raises: KeyError, TypeError, ValueError, AttributeError for any other structure
    """
    texts = {one.name: entry[one.name] for one in fields(Refusal) if one.type == "str"}
    if not all(isinstance(text, str) for text in texts.values()):
        raise TypeError("a refusal with a field that is not a string")
    if texts["phase"] not in PHASES:
        raise ValueError(f"unknown phase {texts['phase'][:40]!r}; available: {', '.join(PHASES)}")
    place, delegate = entry["place"], entry["delegate"]
    if delegate.__class__ is not int or not (place is None or place.__class__ is int):
        raise TypeError("a place that is not an integer")
    others = entry["others"]
    if not isinstance(others, (list, tuple)) or not all(isinstance(name, str) for name in others):  # pyright: ignore[reportUnknownVariableType]
        raise TypeError("other nodes that are not a list of names")
    return Refusal(**texts, delegate=delegate, place=place, others=tuple(others))  # pyright: ignore[reportUnknownArgumentType]
