"""Blocks of the GUI thread in a tour of every view, and how soon views of large programs show."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from devtools_app.sample_data import LOOP, SAMPLE
from tests.bench import files
from tests.bench.child import ask_module
from tests.bench.result import Result

_TOURS = 3  # processes; of each step the middle one counts, as a rare wait is the machine's
_LIMIT = 50.0  # ms of a block
_SWITCH = 200.0  # ms of a block when a view of a million events is shown
_PICTURE, _SIZE, _MEMORY = 2.0, 3.0, 700.0  # seconds, seconds, MiB with 50,000 operators


def gui_blocks(_folder: Path) -> Iterable[Result]:
    """The samples, and files alone whose views lack what others would bring."""
    yield from _blocks("demo", _tours(*LOOP[:2], "--", *LOOP[2:]))
    for name in ("model.pte", "model.etrecord", "run.etdp"):
        yield from _blocks(f"{name} alone", _tours(str(SAMPLE / name)))


def large_window(folder: Path) -> Iterable[Result]:
    """A program of 50,000 operators without modules, and five runs of it."""
    tours = _tours(*map(str, files.large_session(folder)))
    yield from _blocks("50,000 operators", tours)
    for step, limit in (("look graph", _PICTURE), ("look size", _SIZE)):
        taken = statistics.median(one["seconds"][step] for one in tours)
        yield Result(f"50,000 operators, {step} until drawn", taken, "s", limit)
    peak = statistics.median(one["peak"] for one in tours)
    yield Result("50,000 operators, peak of memory in the tour", peak, "MiB", _MEMORY)


def million_window(folder: Path) -> Iterable[Result]:
    """A trace of a million events alone."""
    tours = _tours(str(files.million_events(folder, runs=10)))
    yield from _blocks("1,000,000 events", tours, _SWITCH)


def _tours(*arguments: str) -> list[Any]:
    return [ask_module("tests.bench.tour", *arguments) for _ in range(_TOURS)]


def _blocks(name: str, tours: Sequence[Any], limit: float = _LIMIT) -> Iterable[Result]:
    """Return the longest block of a tour, and each step with one above the limit."""
    longest = [_longest(one["blocks"]) for one in tours]
    found: dict[str, tuple[float, str]] = {}
    for step in dict.fromkeys(step for one in longest for step in one):
        taken = sorted((one.get(step, (0.0, "")) for one in longest), key=lambda each: each[0])
        found[step] = taken[len(taken) // 2]
    above = {step: one for step, one in found.items() if one[0] > limit}
    worst = max((one[0] for one in found.values()), default=0.0)
    detail = f"{len(above)} steps above"
    yield Result(f"{name}, longest block of the window", worst, "ms", limit, detail=detail)
    for step, (taken, what) in sorted(above.items(), key=lambda each: -each[1][0]):
        yield Result(f"  {step}", taken, "ms", detail=what)


def _longest(blocks: Sequence[Any]) -> dict[str, tuple[float, str]]:
    """Return milliseconds and what ran of the longest block of each step."""
    found: dict[str, tuple[float, str]] = {}
    for one in blocks:  # the longest first
        found.setdefault(one["step"], (1e3 * one["seconds"], one["what"]))
    return found


TOUR_CASES = (gui_blocks, large_window, million_window)
