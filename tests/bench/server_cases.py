"""Benchmarks of changing and compiling again: previews and compiles of a warm worker."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from inspector.jobs.compile_server import CompileServer
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.edits import EditTarget, TargetKind, edit_named
from inspector.recipes.source import Source
from tests.bench.child import ROOT
from tests.bench.result import Result

SOURCE = f"""import sys
sys.path.insert(0, {str(ROOT)!r})
import torch
from tests.bench.compile_nets import NETS

def net():
    torch.manual_seed(0)
    made, inputs = NETS["MobileNetV2"]()
    return made.eval(), inputs
"""
_TIMES = 7


def changing(_folder: Path) -> Iterable[Result]:
    """A change previewed, and compiled again, by a worker that knows the program."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.py"
        path.write_text(SOURCE)
        job = CompileJob(Source(str(path), "net"), partitioners=("xnnpack",))
        server = CompileServer()
        try:
            start = time.perf_counter()
            base = server.preview(job).methods["forward"]
            first = time.perf_counter() - start
            nodes = [node.name for node in base.nodes if node.partition is not None]
            jobs = [without(job, nodes[at]) for at in range(0, len(nodes), len(nodes) // _TIMES)]
            seen = [seconds_of(lambda one=one: server.preview(one)) for one in jobs]
            detail = f"first, with export, {first:.2f} s; {len(base.nodes)} nodes"
            value = 1e3 * statistics.median(seen)
            yield Result("preview of a change, MobileNetV2", value, "ms", 200.0, detail=detail)
            places = [(one, Path(folder) / str(at)) for at, one in enumerate(jobs)]
            made = [seconds_of(lambda p=p: server.compile(*p, guard="off")) for p in places]
            changed = replace(job, memory_planner="greedy")
            planned = seconds_of(lambda: server.compile(changed, Path(folder) / "planned"))
            detail = f"another planner only: {planned:.2f} s"
            value = statistics.median(made)
            yield Result("compile of a change, MobileNetV2", value, "s", None, detail=detail)
        finally:
            server.close()


def without(job: CompileJob, node: str) -> CompileJob:
    """Return a recipe that keeps one more node off its delegate."""
    return edit_named("keep-off").apply(job, EditTarget(TargetKind.NODE, node))


def seconds_of(call: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


SERVER_CASES = (changing,)
