"""Where the panels are for each group of tabs: a group that comes back has its panels again."""

from __future__ import annotations

from devtools_app.shell.docks import Docks
from devtools_app.state.panel_layout import PanelLayout, PanelLayouts
from devtools_app.state.tab_groups import TabGroup


class GroupLayouts:
    """The arrangement of each group; a group that was not in front yet takes that of the last."""

    def __init__(self, docks: Docks) -> None:
        self._docks = docks
        self._by_group: dict[str, PanelLayout] = {}

    def switch(self, old: TabGroup, new: TabGroup) -> None:
        """Keep the arrangement of one group and restore that of another."""
        self._by_group[old.value] = self._docks.arrangement()
        if new.value in self._by_group:
            self._docks.arrange(self._by_group[new.value])

    def of_groups(self, front: TabGroup) -> PanelLayouts:
        """Return the arrangement of each group that was in front."""
        return {**self._by_group, front.value: self._docks.arrangement()}

    def restore(self, layouts: PanelLayouts, front: TabGroup) -> None:
        """Restore the arrangements of groups; others stay."""
        self._by_group.update(layouts)
        if front.value in layouts:
            self._docks.arrange(layouts[front.value])
