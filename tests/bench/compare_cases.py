"""Benchmarks of comparing: graphs of ten thousand nodes side by side."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.bench.child import ask
from tests.bench.result import Result

_DIFF = """
import json, random, sys, time
from inspector.compare.alignment import align_graphs
from tests.inspector.graph_samples import changed_graph, large_graph

count, kind = int(sys.argv[1]), sys.argv[2]
old = large_graph(count, seed=1)
new, wanted = changed_graph(old, kind, seed=2)
start = time.perf_counter()
found = align_graphs(old, new)
taken = time.perf_counter() - start
print(json.dumps([taken, len(found.pairs), len(found.removed), len(found.added), wanted]))
"""


def graph_diff(_folder: Path) -> Iterable[Result]:
    """Two graphs of 10,000 nodes: edited here and there, renumbered, with other sizes, unlike."""
    for kind in ("edited", "shifted", "resized", "unlike"):
        taken, pairs, removed, added, wanted = ask(_DIFF, "10000", kind)
        detail = f"{pairs:,} the same, {removed:,} gone, {added:,} new; {wanted:,} are the same"
        yield Result(f"graph diff, 10,000 nodes {kind}", taken, "s", 2.0, detail=detail)


COMPARE_CASES = (graph_diff,)
