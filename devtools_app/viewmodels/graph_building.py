"""Builds the content of the graph view in a thread: scene, colours and layout of one graph."""

from __future__ import annotations

from dataclasses import dataclass

from devtools_app.state.state import OpenSession
from devtools_app.viewmodels.canvas_data import GraphOverlay
from devtools_app.viewmodels.change_colours import CHANGE, change_overlay, node_changes
from devtools_app.viewmodels.data_colours import chosen_data, data_lines, data_overlay
from devtools_app.viewmodels.gap_colours import gap_text, node_gaps
from devtools_app.viewmodels.layout.cluster_tree import ClusterPath
from devtools_app.viewmodels.layout.engine import LayoutCache
from devtools_app.viewmodels.layout.lines import placed_lines
from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.viewmodels.layout.scene_graph import SceneGraph
from devtools_app.viewmodels.opening import opened_or_readable
from devtools_app.viewmodels.scene import GraphScene, graph_scene, part_of_scene, with_sublabels
from devtools_app.viewmodels.scene_overlay import graph_overlay
from inspector.files.session import Session
from inspector.numerics.report import RunGap
from inspector.profile.join_index import JoinIndex, join_index


@dataclass(frozen=True, slots=True)
class GraphSettings:
    """The drawn graph, and the sources of its colours and labels.

    Attributes:
        name: of the graph
        flat: without boxes of modules
        overlay: meaning of colours, and the units of time and size
        gap: the comparison for colours, or None
        former: the baseline session of changes, or None
        part: names of the nodes to draw alone, None for all
        text: size of text beside the usual one
    """

    name: str
    flat: bool
    overlay: tuple[str, str, str]
    gap: RunGap | None
    former: OpenSession | None = None
    part: tuple[str, ...] | None = None
    text: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class DrawnGraph:
    """A graph with its layout.

    Attributes:
        asked: the boxes that were to be open, None for those to begin with
    """

    graph: GraphScene
    scene: SceneGraph
    overlay: GraphOverlay
    placed: Placed
    index: JoinIndex
    look: GraphSettings
    asked: frozenset[ClusterPath] | None


def build_graph(
    session: Session,
    method: str,
    look: GraphSettings,
    expanded: frozenset[ClusterPath] | None,
    before: DrawnGraph | None,
    cache: LayoutCache,
) -> DrawnGraph | None:
    """Return a graph of a method, None if the session has no data for it.

    Args:
        session: the session
        method: name
        look: graph and settings
        expanded: opened boxes, None for the defaults
        before: the previous drawing
        cache: of layouts
    """
    graph = graph_scene(session, method, look.name, flat=look.flat)
    if graph is None:
        return None
    if look.part is not None:
        graph = part_of_scene(session, method, graph, _numbers(graph, look.part), flat=look.flat)
    if before is not None and before.graph is graph and before.look == look:
        scene, overlay = before.scene, before.overlay
    else:
        rows = node_gaps(graph, look.name, look.gap)
        text = {node: gap_text(row, look.overlay[0]) for node, row in rows.items()}
        data = chosen_data(session, look.overlay[0])
        text |= data_lines(graph, data) if data is not None else {}
        scene = with_sublabels(graph, *look.overlay, text)
        overlay = graph_overlay(graph, *look.overlay, rows, traced=bool(session.dumps))
        if data is not None:
            overlay = data_overlay(graph, data, overlay.legend)
        if look.overlay[0] == CHANGE:
            changes = node_changes(session, look.former, method)
            overlay = change_overlay(graph, changes, overlay.legend)
    if before is not None and expanded == before.asked and scene.is_laid_out_like(before.scene):
        placed = before.placed.of_scene(scene)  # other colours and second lines, at the same places
    else:
        placed = opened_or_readable(scene, expanded, cache, look.text)
    placed_lines(placed)  # here rather than when it is drawn, where the window waits for it
    return DrawnGraph(graph, scene, overlay, placed, join_index(session, method), look, expanded)


def _numbers(graph: GraphScene, names: tuple[str, ...]) -> tuple[int, ...]:
    index = graph.scene.index
    return tuple(sorted(index[name] for name in names if name in index))
