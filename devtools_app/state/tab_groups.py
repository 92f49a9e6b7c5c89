"""The views in the middle by what they are for: Look, Change, Prove. One group is in front."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class TabGroup(str, Enum):
    """Groups of the views in the middle; a view may be in several."""

    LOOK = "look"
    CHANGE = "change"
    PROVE = "prove"

    @property
    def word(self) -> str:
        """Return the word on the button."""
        return self.value.capitalize()


MOST_TABS = 10  # Alt+1 to Alt+9, Alt+0


def tab_key(number: int) -> str:
    """Return the key of a tab by its place in its group, from 1; empty beyond the last digit."""
    return f"Alt+{number % MOST_TABS}" if 1 <= number <= MOST_TABS else ""


Tabs = Mapping[TabGroup, tuple[str, ...]]  # names of the views of each group, in order
