"""The views in the middle by what they are for: Look, Change, Prove. One group is in front."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from devtools_app.state.state import State


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


def with_group_of_view(state: State, tabs: Tabs) -> State:
    """Return the state with a group in front that has the view in front.

    That of the state if it has the view, else the first one that does; a view of no group changes
    nothing.
    """
    if state.view in tabs.get(state.group, ()):
        group = state.group
    else:
        found = next((one for one, names in tabs.items() if state.view in names), None)
        if found is None:
            return state
        group = found
    if (group, state.fronts.get(group)) == (state.group, state.view):
        return state
    return replace(state, group=group, fronts={**state.fronts, group: state.view})


def show_group(state: State, group: TabGroup, tabs: Tabs) -> State:
    """Return the state with another group in front, at the view that was in front of it."""
    names = tabs.get(group, ())
    front = state.fronts.get(group, "")
    if group is state.group or not names:
        return state
    return replace(state, group=group, view=front if front in names else names[0])
