"""Where the panels are for each group of tabs: a group that comes back has its panels again."""

from __future__ import annotations

from devtools_app.shell.below_panels import BelowPanels
from devtools_app.shell.docks import Docks
from devtools_app.shell.node_panel import FollowingPanel
from devtools_app.state.panel_layout import PanelLayout, PanelLayouts, Showing
from devtools_app.state.tab_groups import TabGroup


class GroupLayouts:
    """The layout of each group; a group that was not in front yet takes that of the last."""

    def __init__(self, docks: Docks, below: BelowPanels, node: FollowingPanel | None) -> None:
        self._docks, self._below, self._node = docks, below, node
        self._by_group: dict[str, PanelLayout] = {}

    def layout(self) -> PanelLayout:
        """Return where the panels are."""
        showing = self._node.showing if self._node is not None else Showing.FOLLOWS
        return PanelLayout(self._docks.save(), showing, self._below.chosen)

    def arrange(self, layout: PanelLayout) -> None:
        """Put the panels where a layout has them; one that is not valid is the default."""
        if not self._docks.restore(layout.docks):
            self.reset()
            return
        self._below.restore(chosen=layout.below)
        if self._node is not None:
            self._node.restore(layout.node)

    def reset(self) -> None:
        """Put all panels in their default places."""
        self._docks.reset()
        self._below.reset()
        if self._node is not None:
            self._node.restore(Showing.FOLLOWS)

    def settle(self) -> None:
        """Open and fold what follows the window and the selection."""
        self._below.arrange()
        if self._node is not None:
            self._node.arrange()

    def switch(self, old: TabGroup, new: TabGroup) -> None:
        """Keep the layout of one group and restore that of another."""
        self._by_group[old.value] = self.layout()
        self._below.set_group(new)
        if new.value in self._by_group:
            self.arrange(self._by_group[new.value])
        else:
            self._below.arrange()

    def of_groups(self, front: TabGroup) -> PanelLayouts:
        """Return the layout of each group that was in front."""
        return {**self._by_group, front.value: self.layout()}

    def restore(self, layouts: PanelLayouts, front: TabGroup) -> None:
        """Restore the layouts of groups; others stay."""
        self._by_group.update(layouts)
        self._below.set_group(front)
        if front.value in layouts:
            self.arrange(layouts[front.value])
