"""Colours of the graph view: by time, bytes, backend or error, with their legends."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from devtools_app.appearance.colours import NOT_DELEGATED, PLAIN, backend_index
from devtools_app.viewmodels.canvas_data import GraphOverlay, LegendEntry, Swatch
from devtools_app.viewmodels.gap_colours import GAP, OWN_GAP, gap_overlay
from devtools_app.viewmodels.scene import GraphScene
from inspector.numerics.report import Row
from inspector.units import format_bytes, format_time
from schema.backends import short_backend

OVERLAYS = ("time", "bytes", "backend", GAP, OWN_GAP, "none")
Floats = NDArray[np.float64]
CLOSED = LegendEntry("a closed box: its largest", Swatch.NOTE)
NO_GAPS: Mapping[int, Row] = MappingProxyType({})


def graph_overlay(
    graph: GraphScene,
    overlay: str,
    time_unit: str,
    size_unit: str,
    gaps: Mapping[int, Row] = NO_GAPS,
    *,
    traced: bool = False,
) -> GraphOverlay:
    """Return the colours for one of OVERLAYS, each node's share of the time beside its own.

    Args:
        graph: the graph
        overlay: one of OVERLAYS
        time_unit: of times, or auto
        size_unit: of sizes, or auto
        gaps: numeric gap by node
        traced: whether a trace is open, although it may have no time of a node
    """
    legend = _owners(graph)
    if overlay in (GAP, OWN_GAP):
        return gap_overlay(graph, gaps, overlay, legend)
    shares = _shares(graph)
    if overlay == "time" and _has(graph.times.node_ns):
        top = float(np.nanmax(graph.times.node_ns))
        ramp = LegendEntry("", Swatch.RAMP, low="0", high=format_time(top, time_unit))
        heat = (LegendEntry("Fill: time of a node", Swatch.HEADING), ramp, CLOSED)
        legend = (*heat, *legend)
        if shares is not None:
            legend = (*legend, LegendEntry("bar: share of the method", Swatch.BAR))
        return GraphOverlay("time", graph.times.node_ns / (top or 1.0), None, shares, legend=legend)
    if overlay == "time":
        why = "the trace has none of these nodes" if traced else "open the ETDump of a run"
        missing = LegendEntry(f"no times: {why}", Swatch.PLAIN)
        return GraphOverlay("time", legend=(*legend, missing))
    if overlay == "bytes" and _has(graph.nbytes):
        top = float(np.nanmax(graph.nbytes))
        ramp = LegendEntry("", Swatch.RAMP, low="0", high=format_bytes(top, size_unit))
        words = LegendEntry("Fill: outputs and weights", Swatch.HEADING)
        # Sizes span decades; on a linear map all but the largest would look alike.
        places = np.log1p(graph.nbytes) / np.log1p(top) if top else graph.nbytes
        return GraphOverlay("bytes", places, legend=(words, ramp, CLOSED, *legend))
    if overlay == "backend":
        owners = graph.scene.owners
        return GraphOverlay("backend", None, owners, None, legend=legend)
    return GraphOverlay(legend=legend)


def _has(values: Floats) -> bool:
    return bool(np.isfinite(values).any())


def _shares(graph: GraphScene) -> Floats | None:
    whole = graph.times.method_ns
    if not whole > 0 or not _has(graph.times.node_ns):
        return None
    return graph.times.node_ns / whole


def _owners(graph: GraphScene) -> tuple[LegendEntry, ...]:
    backends = dict.fromkeys(node.backend for node in graph.graph.nodes if node.backend)
    found = [
        LegendEntry(short_backend(backend), Swatch.STRIPE, backend_index(backend))
        for backend in backends
    ]
    owners = set(graph.scene.owners.tolist())
    if NOT_DELEGATED in owners:
        found.append(LegendEntry("not delegated", Swatch.STRIPE_OUTSIDE))
    if PLAIN in owners:
        label = "input, output" if NOT_DELEGATED in owners or found else "node"
        found.append(LegendEntry(label, Swatch.PLAIN))
    return (
        (LegendEntry("Stripe, outline: runs on", Swatch.HEADING), *found)
        if backends
        else tuple(found)
    )
