"""The nodes that the edits of the recipe shown are about, computed in a thread."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QObject, Signal

from devtools_app.jobs.computed import Computed
from devtools_app.state.state import State
from devtools_app.state.variant_steps import shown_variant
from inspector.graph.model_graph import COMPILED

EDITED = "Edited: "
_NONE: Mapping[str, str] = {}


class EditMarks(QObject):
    """Knows which nodes of the graph shown the draft of its recipe changes.

    Signals:
        changed(): the marks of the newest request are known
    """

    changed = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._computed: Computed[Mapping[str, str]] = Computed("edit marks", self)
        self._computed.ready.connect(lambda _key: self.changed.emit())

    def of(self, state: State, graph: str = COMPILED) -> Mapping[str, str]:
        """Return the edits by node; none without edits, and until they are known."""
        one, shown = shown_variant(state), state.open_session
        if one is None or shown is None or not one.changed:
            return _NONE
        old, new, method, session = one.recipe.job, one.draft.present, state.method, shown.session
        key = (shown.id, shown.revision, method, graph, old, new)

        def work(_token: object) -> Mapping[str, str]:
            from devtools_app.viewmodels.edited_nodes import edited_nodes

            return edited_nodes(session, method, old, new, graph)

        return self._computed.ask(key, work) or _NONE

    def close(self) -> None:
        """Stop computing."""
        self._computed.close()
