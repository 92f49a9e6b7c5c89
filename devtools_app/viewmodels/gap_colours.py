"""The numeric gap on the graph: colours by decades, and the second line of nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from devtools_app.viewmodels.canvas_data import GraphOverlay, LegendEntry, Swatch
from devtools_app.viewmodels.scene import GraphScene
from inspector.graph.model_graph import COMPILED, ModelNode
from inspector.numerics.metrics import Metrics
from inspector.numerics.report import INSTRUCTION, Row, RunGap
from inspector.tables.numeric_gap import FLOOR, Floats

GAP, OWN_GAP = "gap", "own gap"
_WORDS = {GAP: "Fill: distance from reference", OWN_GAP: "Fill: error added by a node"}


def node_gaps(graph: GraphScene, name: str, run: RunGap | None) -> Mapping[int, Row]:
    """Return node -> its row of a comparison; compared outputs take precedence.

    Args:
        graph: a graph of the method
        name: the graph's name
        run: a comparison of the same method, or None
    """
    if run is None:
        return {}
    by_name = _by_name(run)
    if name == COMPILED:
        found = {node.id: by_name.get(node.name) for node in graph.graph.nodes}
    else:
        by_handle, by_step = _by_numbers(run)
        found = {node.id: _numbered(node, by_handle, by_step) for node in graph.graph.nodes}
    return {node: row for node, row in found.items() if row is not None}


def _by_name(run: RunGap) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for row in run.rows:
        before = found.get(row.graph_node)
        if row.graph_node and (before is None or row.compared > before.compared):
            found[row.graph_node] = row
    return found


def _by_numbers(run: RunGap) -> tuple[dict[int, Row], dict[int, Row]]:
    by_handle: dict[int, Row] = {}
    by_step: dict[int, Row] = {}
    for row in run.rows:
        if not row.compared:
            continue
        if row.place == INSTRUCTION:
            by_step.setdefault(row.instruction, row)
        if len(row.handles) == 1:  # of several nodes with one handle the last has the value
            by_handle[row.handles[0]] = row
    return by_handle, by_step


def _numbered(
    node: ModelNode, by_handle: Mapping[int, Row], by_step: Mapping[int, Row]
) -> Row | None:
    if node.instruction is not None:
        return by_step.get(node.instruction)
    return by_handle.get(node.node.debug_handle or 0)


def gap_overlay(
    graph: GraphScene, rows: Mapping[int, Row], overlay: str, legend: tuple[LegendEntry, ...]
) -> GraphOverlay:
    """Return colours for the size of errors, on a scale of decades.

    Args:
        graph: the graph
        rows: ``node_gaps`` of it
        overlay: ``gap`` or ``own gap``
        legend: entries that go before
    """
    sizes = np.full(len(graph.graph.nodes), np.nan)
    for node, row in rows.items():
        size = gap_size(row, overlay)
        sizes[node] = math.nan if size is None else size
    if np.isnan(sizes).all():
        missing = LegendEntry("not compared: see the view Numeric gap", Swatch.PLAIN)
        return GraphOverlay(overlay, legend=(*legend, missing))
    low, high = _ends(sizes[np.isfinite(sizes)])
    decades = np.log10(np.minimum(np.maximum(sizes, low), high)) - math.log10(low)
    words = LegendEntry(_WORDS[overlay], Swatch.HEADING)
    ramp = LegendEntry(
        "in decades",
        Swatch.RAMP,
        low="0" if low <= FLOOR else f"≤ {low:.0e}",
        high=f"≥ {high:.0e}" if np.isinf(sizes).any() else f"{high:.0e}",
    )
    span = math.log10(high) - math.log10(low)
    return GraphOverlay(overlay, decades / span, legend=(words, ramp, *legend))


def _ends(known: Floats) -> tuple[float, float]:
    """Return whole decades around the sizes, at least three of them."""
    floor = round(math.log10(FLOOR))
    above = known[known > FLOOR]
    if not len(above):
        return FLOOR, FLOOR * 1e3
    high = math.ceil(math.log10(float(above.max())))
    low = max(floor, min(math.floor(math.log10(float(above.min()))), high - 3))
    return 10.0**low, 10.0 ** max(high, low + 3)


def gap_size(row: Row, overlay: str) -> float | None:
    """Return the total or own error of a node; infinity where values are not finite."""
    metrics = row.own if overlay == OWN_GAP else row.total
    if metrics is None:
        return None
    return math.inf if metrics.odd else metrics.max_abs


def gap_text(row: Row | None, overlay: str) -> str:
    """Return the second line of a node's box, empty if unknown."""
    if row is None:
        return ""
    if not row.compared:
        return "not compared"
    metrics = row.own if overlay == OWN_GAP else row.total
    if metrics is None:
        return "own error unknown"
    return f"{_off(metrics)}{' · diverges' if row.diverges else ''}"


def _off(metrics: Metrics) -> str:
    text = "equal" if metrics.max_abs == 0 else f"error {metrics.max_abs:.2g}"
    if not metrics.odd:
        return text
    odd = f"{metrics.odd:,} not finite"
    return f"{text}, {odd}" if metrics.max_abs else odd
