"""Where the panels are, as settings and workspaces keep it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Showing(str, Enum):
    """When a panel is shown that can follow something."""

    FOLLOWS = ""
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class PanelLayout:
    """An arrangement of the panels around the views of a group of tabs.

    Attributes:
        docks: their places and sizes, base64 of Qt's bytes; empty for the default
        node: whether the Node panel follows the selection
        below: whether the user chose what stands below the views; else the height of the
            window decides
    """

    docks: str = ""
    node: Showing = Showing.FOLLOWS
    below: bool = False


PanelLayouts = Mapping[str, PanelLayout]
NO_LAYOUTS: PanelLayouts = {}
