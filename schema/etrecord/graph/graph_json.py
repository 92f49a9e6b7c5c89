"""Serde JSON of every schema version as a torch-free Graph.

The stock tool stores programs as JSON of the serialised ``torch.export`` program: unions with
one key (all keys in release 0.1), nodes without names before 1.0, no ``getitem`` nodes.

Source: exir/serde/schema.py ``ExportedProgram``; docs/formats.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from schema.errors import FormatError, Issue
from schema.etrecord.budget import Budget
from schema.etrecord.graph.graph_reader import GraphReader
from schema.etrecord.graph.json_text import Json, parse_json, parse_json_text
from schema.etrecord.graph.shared import Shared
from schema.etrecord.graph.signature import Signature, read_signature
from schema.etrecord.graph.unions import BROKEN, mapping, text
from schema.etrecord.parts.lowered import LoweredModule, read_lowered
from schema.graph import Graph

_MAX_LOWERED_DEPTH = 8  # a hostile record may nest lowered modules endlessly


@dataclass(frozen=True, slots=True)
class RecordedProgram:
    """One program of a record.

    Attributes:
        member: name in the record
        graph: its graph; delegates and branches are subgraphs
        schema_version: of the JSON, as written
        verifiers: dialects it was checked against, as in TRAINING or EDGE
        range_constraints: smallest and largest value of each symbol, None if unbounded
        mutated: whether it was recorded after memory planning had rewritten it
        issues: parts that could not be read
    """

    member: str
    graph: Graph
    schema_version: tuple[int, int] = (0, 0)
    verifiers: tuple[str, ...] = ()
    range_constraints: dict[str, tuple[int | None, int | None]] = field(
        default_factory=dict[str, tuple[int | None, int | None]]
    )
    mutated: bool = False
    issues: tuple[Issue, ...] = field(default=(), compare=False)


def read_program(data: bytes | memoryview, member: str, budget: Budget) -> RecordedProgram:
    """Return the program of a member.

    Raises: FormatError if it is not program JSON or too large; bad nodes become issues
    """
    tree = parse_json(data, budget, member)
    try:
        return ProgramReader(budget, member).program(tree)
    except FormatError as error:
        raise error.inside(member) from None
    except (*BROKEN, RecursionError) as error:
        raise FormatError("the JSON of a program", describe(error), field=member) from None


def describe(error: Exception) -> str:
    """Return a short description of a structure that did not fit."""
    if isinstance(error, KeyError):
        return f"no {str(error)[:60]}"
    return str(error)[:120] or type(error).__name__


class ProgramReader:
    """Reads programs, and those inside their lowered modules."""

    def __init__(self, budget: Budget, member: str, depth: int = 0) -> None:
        self._budget = budget
        self._member = member
        self._depth = depth
        self._inner_issues: list[Issue] = []

    def program(self, tree: Json) -> RecordedProgram:
        """Return the program of its parsed JSON, which is emptied on the way."""
        version = _version(tree.get("schema_version"))
        shared = Shared(self._member, version[0], self._budget, self._lowered)
        module: Json = tree["graph_module"]
        try:
            signature = read_signature(module.get("signature"))
        except BROKEN as error:
            shared.note(f"the signature cannot be read: {describe(error)}")
            signature = Signature()
        graph = GraphReader(shared, signature).read(self._member, module["graph"])
        return RecordedProgram(
            self._member,
            graph,
            version,
            tuple([str(entry) for entry in tree.get("verifiers") or ()]),
            _ranges(tree.get("range_constraints")),
            shared.mutated,
            (*shared.finish(), *self._inner_issues),
        )

    def _lowered(self, name: str, source: str) -> LoweredModule:
        """Return the lowered module in a string argument.

        Raises: FormatError if it cannot be read
        """
        if self._depth >= _MAX_LOWERED_DEPTH:
            raise FormatError(f"at most {_MAX_LOWERED_DEPTH} delegates in each other", "more")
        tree = parse_json_text(source, self._budget, name)
        inner = ProgramReader(self._budget, f"{self._member}/{name}", self._depth + 1)
        original = inner.program(tree.pop("original_module"))
        self._inner_issues += original.issues
        store = tree.pop("named_data_store", None)
        named = parse_json_text(text(store), self._budget, name) if store else None
        return read_lowered(name, tree, original.graph, named)


def _version(tree: Json) -> tuple[int, int]:
    """Return the schema version; release 0.1 wrote one integer."""
    if isinstance(tree, int):
        return tree, 0
    major, minor = mapping(tree).get("major"), mapping(tree).get("minor")
    return (major, minor) if isinstance(major, int) and isinstance(minor, int) else (0, 0)


def _ranges(tree: Json) -> dict[str, tuple[int | None, int | None]]:
    return {
        symbol: (_bound(mapping(limits), "min_val"), _bound(mapping(limits), "max_val"))
        for symbol, limits in mapping(tree).items()
    }


def _bound(limits: dict[str, Json], key: str) -> int | None:
    value = limits.get(key)
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else None
    return value if isinstance(value, int) else None
