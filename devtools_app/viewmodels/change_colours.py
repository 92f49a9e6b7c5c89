"""Colours of changes against another session: changed delegation, or new nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from devtools_app.appearance.colours import PLAIN
from devtools_app.state.state import OpenSession, State
from devtools_app.state.variant_steps import compared_sessions
from devtools_app.viewmodels.canvas_data import GraphOverlay, LegendEntry, Swatch
from devtools_app.viewmodels.scene import GraphScene
from inspector.compare.alignment import align_graphs
from inspector.compare.ownership import PORTABLE, owner_changes
from inspector.files.session import Session
from inspector.graph.model_graph import COMPILED, ModelNode, model_graph
from schema.graph import NodeKind

CHANGE = "change"
TAKEN, LEFT, MOVED, NEW = 1, 2, 0, 3  # colours of the set of backends
_PASSIVE = (NodeKind.PLACEHOLDER, NodeKind.OUTPUT, NodeKind.GET_ATTR)


@dataclass(frozen=True, slots=True)
class NodeChanges:
    """Changes of the nodes of a graph.

    Attributes:
        against: letter of the baseline session, empty without one
        fates: one of TAKEN, LEFT, MOVED and NEW by name of the node; the others are unchanged
    """

    against: str = ""
    fates: Mapping[str, int] = field(default_factory=dict[str, int])


def held_to(state: State) -> OpenSession | None:
    """Return the baseline session of the current one, or None."""
    others = [one for one in compared_sessions(state) if one.id != state.current]
    return others[0] if others else None


def node_changes(session: Session, former: OpenSession | None, method: str) -> NodeChanges:
    """Return the changes of the nodes of a method since another session."""
    if former is None or method not in former.session.methods:
        return NodeChanges()
    old, new = (model_graph(one, method, COMPILED) for one in (former.session, session))
    if old is None or new is None:
        return NodeChanges(former.id)
    alignment = align_graphs(old, new)
    fates = {new.nodes[added].name: NEW for added in alignment.added if _computes(new.nodes[added])}
    for one in owner_changes(alignment, session, method, 1):
        if one.old_owner == one.new_owner:
            fate = MOVED
        else:
            fate = LEFT if one.new_owner == PORTABLE else TAKEN
        fates[one.new_node] = fate
    return NodeChanges(former.id, fates)


def _computes(node: ModelNode) -> bool:
    return node.node.kind not in _PASSIVE


def change_overlay(
    graph: GraphScene, found: NodeChanges, legend: tuple[LegendEntry, ...]
) -> GraphOverlay:
    """Return the colours of the nodes that changed, with a line of the legend for each kind."""
    if not found.against:
        nothing = LegendEntry("nothing to compare with: press Ctrl+R", Swatch.PLAIN)
        return GraphOverlay(CHANGE, legend=(*legend, nothing))
    codes = np.array([found.fates.get(name, PLAIN) for name in graph.scene.names], np.int64)
    labels = {
        TAKEN: f"delegated, not in {found.against}",
        LEFT: f"not delegated, unlike in {found.against}",
        MOVED: "in another partition",
        NEW: f"not in {found.against}",
    }
    there = set(codes.tolist())
    lines = [LegendEntry(text, Swatch.FILL, code) for code, text in labels.items() if code in there]
    if not lines:
        lines = [LegendEntry(f"as in {found.against}", Swatch.PLAIN)]
    return GraphOverlay(CHANGE, categories=codes, legend=(*legend, *lines))
