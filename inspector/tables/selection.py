"""What is chosen for all tables: the one thing selected, and the units. Loads no numpy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class SelectionKind(str, Enum):
    """What the user pointed at."""

    NONE = "none"
    NODE = "node"
    INSTRUCTION = "instruction"
    EVENT = "event"
    VALUE = "value"
    DELEGATE = "delegate"
    PART = "part"


@dataclass(frozen=True, slots=True)
class Selection:
    """The one thing selected in all views.

    ``kind`` is which key the user pointed at; other keys may be filled in by a view that knows
    them. Views highlight whatever belongs to it by the links of the session.

    Attributes:
        kind: what was pointed at
        method: method it belongs to, empty for parts of a file
        graph: name of the graph a node is in, as the session calls it
        node: name of the node in that graph
        instruction: instruction id in the chain of the method
        event: row of the event in the event table of the session
        value: index of the value in the plan
        delegate: index of the delegate in the plan
        part: path of a part of a file (size tree, structure tree)
    """

    kind: SelectionKind = SelectionKind.NONE
    method: str = ""
    graph: str = ""
    node: str = ""
    instruction: int | None = None
    event: int | None = None
    value: int | None = None
    delegate: int | None = None
    part: str = ""

    def __bool__(self) -> bool:
        """Return whether anything is selected."""
        return self.kind is not SelectionKind.NONE


NOTHING = Selection()


@dataclass(frozen=True, slots=True)
class Units:
    """How numbers are shown.

    Attributes:
        time: auto, ns, µs, ms or s
        size: auto, B, KiB, MiB or GiB
    """

    time: str = "auto"
    size: str = "auto"


AUTOMATIC = Units()
