"""Colours of a graph by values that the user opened beside it."""

from __future__ import annotations

from devtools_app.appearance.colour_maps import colour_scale
from devtools_app.state.state import State
from devtools_app.viewmodels.canvas_data import GraphOverlay, LegendEntry, Swatch
from devtools_app.viewmodels.scene import GraphScene
from inspector.files.node_data import NodeData
from inspector.files.session import Session
from inspector.graph.node_values import NodeValues, node_values, values_of_part
from inspector.units import plain_text
from schema.objects.plural import plural

_START = "data "
_NAMED = 3  # unmatched names in the legend


def data_overlays(session: Session | None) -> tuple[tuple[str, str], ...]:
    """Return name and label of the colours by values in a session's files."""
    sets = session.node_data if session is not None else ()
    return tuple((f"{_START}{number}", one.title) for number, one in enumerate(sets))


def shown_overlay(state: State) -> str:
    """Return the meanings of colour: time, where the session lacks the chosen values."""
    if not state.overlay.startswith(_START):
        return state.overlay
    return state.overlay if chosen_data(state.session, state.overlay) is not None else "time"


def chosen_data(session: Session | None, overlay: str) -> NodeData | None:
    """Return the values that an overlay shows, None for other overlays."""
    names = [name for name, _ in data_overlays(session)]
    return session.node_data[names.index(overlay)] if session and overlay in names else None


def data_overlay(
    graph: GraphScene, data: NodeData, legend: tuple[LegendEntry, ...]
) -> GraphOverlay:
    """Return the colours of a set of values: signed ones around 0, others from low to high.

    Args:
        graph: the graph
        data: the values
        legend: entries that go last
    """
    found = _values(graph, data)
    heading = LegendEntry(f"Fill: {data.title}", Swatch.HEADING)
    if not found.keys:
        nothing = LegendEntry("no value is of a node here", Swatch.NOTE)
        return GraphOverlay(data.title, legend=(heading, nothing, *_rest(found), *legend))
    scale = colour_scale(found.values)
    low, high = plain_text(scale.low), plain_text(scale.high)
    ramp = LegendEntry("", Swatch.RAMP, low=low, high=high, diverging=scale.signed)
    lines = (heading, ramp, *_rest(found), *legend)
    places = scale.places(found.values)
    return GraphOverlay(data.title, places, diverging=scale.signed, legend=lines)


def _values(graph: GraphScene, data: NodeData) -> NodeValues:
    if graph.whole is None:
        return node_values(graph.graph, data)
    return values_of_part(graph.graph, graph.whole, data)


def _rest(found: NodeValues) -> tuple[LegendEntry, ...]:
    lines: list[LegendEntry] = []
    if found.missing:
        lines.append(LegendEntry(f"{plural(found.missing, 'node')} without a value", Swatch.PLAIN))
    if found.unmatched:
        count = len(found.unmatched)
        lines.append(LegendEntry(f"{plural(count, 'name')} of no node here", Swatch.NOTE))
    return tuple(lines)


def data_lines(graph: GraphScene, data: NodeData) -> dict[int, str]:
    """Return the second line of each node with a value."""
    found = _values(graph, data)
    return {node: f"{found.values[node]:.6g}" for node in found.keys}


def unmatched(session: Session | None, overlay: str, graph: GraphScene) -> str:
    """Return which values of an overlay belong to no node; empty for none, and other colours."""
    data = chosen_data(session, overlay)
    if data is None:
        return ""
    found = _values(graph, data)
    if not found.unmatched:
        return ""
    names = ", ".join(found.unmatched[:_NAMED])
    more = f" and {len(found.unmatched) - _NAMED:,} more" if len(found.unmatched) > _NAMED else ""
    return f"{data.title}: no node of this graph is called {names}{more}"
