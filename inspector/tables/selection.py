"""State shared by all tables: the selection, and the units. Does not import numpy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspector.graph.model_graph import ModelNode


class SelectionKind(str, Enum):
    """Kinds of selections."""

    NONE = "none"
    NODE = "node"
    INSTRUCTION = "instruction"
    EVENT = "event"
    VALUE = "value"
    DELEGATE = "delegate"
    PART = "part"


@dataclass(frozen=True, slots=True)
class Selection:
    """The selection of all views.

    ``kind`` is the key that the user selected; a view may fill in other keys it knows. Views
    highlight related items by the links of the session.

    Attributes:
        kind: of the selection
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
    """Units for display.

    Attributes:
        time: auto, ns, µs, ms or s
        size: auto, B, KiB, MiB or GiB
    """

    time: str = "auto"
    size: str = "auto"


AUTOMATIC = Units()


def node_selection(node: ModelNode, method: str, graph: str) -> Selection:
    """Return the selection of a node of a graph."""
    return Selection(
        SelectionKind.NODE,
        method,
        graph,
        node.name,
        instruction=node.instruction,
        delegate=node.delegate,
    )
