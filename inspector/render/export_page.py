"""One page on an export: where its time went, what was delegated, memory and size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from markupsafe import Markup

from inspector.files.session import Session
from inspector.render.html import FlameBox, Page, flame_graph, make_page, table_html
from inspector.render.report import SECTIONS
from inspector.tables.compile_stages import compile_table
from inspector.units import format_ms

_MOST_ROWS = 200
_MOST_METHODS = 12
_PARTS = ("Summary", "Delegation", "Memory", "Size", "Issues")


def make_export_page(
    stages: Sequence[Mapping[str, Any]], session: Session, methods: Sequence[str], title: str
) -> Page:
    """Return a page with the stages of a compile as a flame graph, and its result.

    Args:
        stages: of ``compile.json``, in order
        session: of the files that were written
        methods: of the program; the first twelve are shown
        title: of the page
    """
    shown = tuple(methods[:_MOST_METHODS])
    own = partial(_stages, stages)
    made = [(name, make) for name, make in SECTIONS if name in _PARTS]
    bodies = (
        (name, make(session, shown, str)) for name, make in [("Time of the export", own), *made]
    )
    more = len(methods) - len(shown)
    notes = [f"{more:,} more methods are left out."] if more > 0 else []
    return make_page(f"{title}: ETScope export", title, bodies, notes)


def _stages(stages: Sequence[Mapping[str, Any]], *_: object) -> Markup:
    boxes = list(stage_boxes(stages))
    table = table_html(compile_table(stages), _MOST_ROWS)
    return flame_graph(boxes, "stages of the export over time") + table


def stage_boxes(stages: Sequence[Mapping[str, Any]]) -> Iterator[FlameBox]:
    """Yield the whole, its stages, and the methods of each, as boxes in ms."""
    total = sum(one["time_ms"] for one in stages)
    yield FlameBox("export", format_ms(total), 0, 0.0, total)
    start = 0.0
    for name, entries in groupby(stages, key=lambda one: one["stage"]):
        listed = list(entries)
        took = sum(one["time_ms"] for one in listed)
        yield FlameBox(name, format_ms(took), 1, start, took)
        for one in listed:
            if one["method"]:
                nodes = "" if one["nodes"] is None else f", {one['nodes']:,} nodes"
                words = format_ms(one["time_ms"]) + nodes
                yield FlameBox(one["method"], words, 2, start, one["time_ms"])
            start += one["time_ms"]
