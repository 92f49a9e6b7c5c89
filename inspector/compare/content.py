"""A comparison as a JSON object."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from inspector.compare.alignment import MOVED, GraphAlignment
from inspector.compare.change import Change
from inspector.compare.model import Comparison, MethodGraphs, TimeRow, delta_content
from inspector.compare.weighing import weigh
from inspector.graph.model_graph import ModelGraph
from inspector.jobs.measure import Measurement


def comparison_content(found: Comparison, measured: Measurement | None = None) -> dict[str, Any]:
    """Return the entire comparison; for graphs only their differences.

    Args:
        found: the comparison
        measured: measured times used in it
    """
    return {
        "names": list(found.names),
        "methods": list(found.methods),
        "summary": [delta_content(delta) for delta in found.summary],
        "recipes": [asdict(one) for one in found.recipes],
        "owners": [{**asdict(one), "words": one.words()} for one in found.owners],
        "partitions": [asdict(one) for one in found.partitions],
        "graphs": [each for graphs in found.graphs for each in _graphs(graphs)],
        "operators": _times(found.operators),
        "modules": _times(found.modules),
        "nodes": _times(found.nodes),
        "memory": [delta_content(delta) for delta in found.memory],
        "sizes": [delta_content(delta) for delta in found.sizes],
        "gaps": [asdict(row) for row in found.gaps],
        "weights": [asdict(one) for one in found.weights],
        "changes": [[change_content(one) for one in each] for each in found.changes],
        "measured": None if measured is None else _measured(measured),
        "notes": list(found.notes),
        "problems": list(found.problems),
        "weighed": [
            [asdict(one) for one in weigh(found, number)] for number in range(1, len(found.names))
        ],
    }


def _times(rows: Iterable[TimeRow]) -> list[dict[str, Any]]:
    return [
        {
            **{name: value for name, value in asdict(row).items() if name != "ticks_ns"},
            "differences": [row.difference(n) for n in range(1, len(row.ms))],
        }
        for row in rows
    ]


def _graphs(graphs: MethodGraphs) -> list[dict[str, Any]]:
    return [
        {
            "method": graphs.method,
            "session": number,
            "note": graphs.note or None,
            **(_NOTHING if alignment is None else _alignment(alignment)),
        }
        for number, alignment in enumerate(graphs.alignments, 1)
    ]


_NOTHING: dict[str, Any] = {
    "source": None,
    "same": None,
    "moved": [],
    "removed": [],
    "added": [],
    "changed": [],
    "replaced": [],
}


def _alignment(one: GraphAlignment) -> dict[str, Any]:
    old, new = one.old.nodes, one.new.nodes
    return {
        "source": one.old.source,
        "same": len(one.pairs),
        "moved": [
            {"old": old[pair.old].name, "new": new[pair.new].name}
            for pair in one.pairs
            if pair.how == MOVED
        ],
        "removed": _nodes(one.old, one.removed),
        "added": _nodes(one.new, one.added),
        "changed": [
            {
                "old_node": old[each.pair.old].name,
                "new_node": new[each.pair.new].name,
                "what": each.what,
                "old": each.old,
                "new": each.new,
            }
            for each in one.changed
        ],
        "replaced": [
            {
                "old": [old[number].name for number in each.old],
                "new": [new[number].name for number in each.new],
            }
            for each in one.replaced
        ],
    }


def _nodes(graph: ModelGraph, numbers: Iterable[int]) -> list[dict[str, Any]]:
    nodes = [graph.nodes[number] for number in numbers]
    return [
        {"node": node.name, "operator": node.node.target, "module": node.node.module_path}
        for node in nodes
    ]


def change_content(change: Change) -> dict[str, Any]:
    """Return a difference as JSON."""
    return {
        "area": change.area,
        "what": change.what,
        "old": change.old,
        "new": change.new,
        "unit": change.unit or None,
        "counts": change.counts,
        "note": change.note or None,
        "samples": [{"at": each.at, "old": each.old, "new": each.new} for each in change.samples],
    }


def _measured(measured: Measurement) -> dict[str, Any]:
    return {
        "versions": dict(measured.versions or {}),
        "programs": [
            {
                "program": each.job.program,
                "method": (each.facts or {}).get("method"),
                "threads": (each.facts or {}).get("threads"),
                "clock": (each.facts or {}).get("clock"),
                "engines": list(each.engines),
                "median_ms": each.median_ms,
                "fastest_ms": each.fastest_ms,
                "blocks_ms": [list(block) for block in each.blocks],
                "failure": each.failure or None,
            }
            for each in measured.programs
        ],
    }
