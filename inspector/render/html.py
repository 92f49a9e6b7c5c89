"""Tables, bars and memory maps as HTML: escaped, without script, bounded in size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from inspector.memory.plan import Arena, PlannedValue
from inspector.tables.query import Query, Selected, select
from inspector.tables.row_order import as_floats
from inspector.tables.table import Column, ColumnKind, Table
from inspector.tables.tree import Tree
from inspector.units import NS_PER_MS, Quantity, choose_unit, format_ms
from schema.objects.plural import plural
from schema.version import __version__

MOST_BYTES = 5_000_000  # promised in docs/cli.md; larger sections are left out
MOST_TEXT = 160
_ROOM = 4096  # bytes for the notes at the end
_WIDTH, _HEIGHT = 1000, 320
_FLAME_ROW, _LETTER, _NAME_OF_BOX = 22, 6.5, 40
_TONES = {"good": "good", "bad": "bad", "warn": "warn", "muted": "soft"}
Words = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Page:
    """A document.

    Attributes:
        html: the document
        sections: titles of its sections
        left_out: titles of sections that did not fit
    """

    html: str
    sections: tuple[str, ...]
    left_out: tuple[str, ...]


def make_page(
    title: str, heading: str, sections: Iterable[tuple[str, str]], notes: Sequence[str] = ()
) -> Page:
    """Return a document of at most 5 MB; sections that do not fit are left out and named.

    Args:
        title: of the document
        heading: above the sections
        sections: title and HTML of each; one without HTML is not shown
        notes: sentences below
    """
    left = MOST_BYTES - len(_page(title, heading, (), notes).encode()) - _ROOM
    kept: list[tuple[str, str]] = []
    dropped: list[str] = []
    for name, body in sections:
        size = len(body.encode()) + len(name) * 6 + 64
        if body and size <= left:
            left -= size
            kept.append((name, body))
        elif body:
            dropped.append(name)
    message = [*notes, *([f"Omitted, too large: {', '.join(dropped)}."] if dropped else [])]
    html = _page(title, heading, kept, message)
    return Page(html, tuple(name for name, _ in kept), tuple(dropped))


def _page(
    title: str, heading: str, sections: Sequence[tuple[str, str]], notes: Sequence[str]
) -> str:
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=clean(title),
            heading=clean(heading),
            version=__version__,
            sections=[(name, Markup(body)) for name, body in sections],
            notes=[clean(note, 400) for note in notes],
        )
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("inspector.render"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _part(name: str, *values: object) -> Markup:
    """Return the output of a macro of parts.html; strings in the values are escaped."""
    parts: Any = _environment().get_template("parts.html").module
    return Markup(getattr(parts, name)(*values))


def clean(value: object, most: int = MOST_TEXT) -> str:
    """Return a value as text without control characters that is not too long."""
    raw = "" if value is None else str(value)
    text = "".join(char if char.isprintable() else " " for char in raw[: most + 1])
    return text if len(text) <= most else f"{text[: most - 1]}…"


def heading(text: str) -> Markup:
    """Return a heading inside of a section."""
    return Markup("<h3>{}</h3>").format(clean(text, 2 * MOST_TEXT))


def paragraph(text: str, tone: str = "") -> Markup:
    """Return a paragraph."""
    return Markup('<p class="{}">{}</p>').format(_TONES.get(tone, ""), clean(text, 600))


def left_out(shown: int, total: int, noun: str) -> Markup:
    """Return the sentence about omitted rows, empty for a complete list."""
    return _part("more", max(total - shown, 0), noun)


def sentences(lines: Iterable[tuple[str, str, str]], words: Words = str) -> Markup:
    """Return a list of sentences, each with its tone and a quiet detail."""
    shown = [
        {"text": clean(words(text), 600), "tone": _TONES.get(tone, ""), "detail": words(detail)}
        for text, tone, detail in lines
    ]
    return _part("items", shown) if shown else Markup()


# ---- tables


def table_html(
    source: Table | Tree,
    most: int,
    *,
    columns: Sequence[str] = (),
    sort: Sequence[str] = (),
    words: Words = str,
) -> Markup:
    """Return a table as HTML, empty for a table without rows.

    Args:
        source: the table
        most: rows shown
        columns: ids of those shown, empty for all
        sort: as in a query
        words: changes each text before it is shown
    """
    rows = source.rows if isinstance(source, Tree) else source
    if not rows.length:
        return Markup()
    found = select(source, Query(sort=tuple(sort), columns=tuple(columns)))
    return selected_html(found, most, words)


def selected_html(found: Selected, most: int, words: Words = str) -> Markup:
    """Return rows of a table as HTML, the first of them and how many more there are.

    Args:
        found: the rows
        most: rows shown
        words: changes each text before it is shown
    """
    shown = min(most, len(found.rows))
    view = {
        "columns": [
            {"heading": clean(one.heading), "is_number": _is_number(one)}
            for one in found.table.columns
        ],
        "rows": [_cells(found, place, words) for place in range(shown)],
        "left_out": len(found.rows) - shown,
        "noun": found.table.noun,
    }
    return _part("table", view)


def _is_number(column: Column) -> bool:
    return column.kind is ColumnKind.NUMBER


def _cells(found: Selected, place: int, words: Words) -> list[dict[str, Any]]:
    row = int(found.rows[place])
    depth = 0 if found.depths is None else int(found.depths[place])
    return [
        {
            "text": clean(words(column.cell(row)), 2 * MOST_TEXT),
            "is_number": _is_number(column),
            "tone": _TONES.get(column.tone(column.values[row]), "") if column.tone else "",
            "bar": _bar(column, row),
            "indent": depth if number == 0 else 0,
        }
        for number, column in enumerate(found.table.columns)
    ]


def _bar(column: Column, row: int) -> float | None:
    if column.kind is not ColumnKind.SHARE:
        return None
    share = float(as_floats([column.values[row]])[0])
    return None if share != share else min(max(100 * share / column.full, 0.0), 100.0)


# ---- drawings


def time_bar(parts: Sequence[tuple[str, str, float]]) -> Markup:
    """Return a stacked bar with its legend; the parts are the whole.

    Args:
        parts: name, colour variable and ms of each part
    """
    total = sum(max(ms, 0.0) for _, _, ms in parts)
    if total <= 0:
        return Markup()
    unit = choose_unit(Quantity.TIME, total * NS_PER_MS).symbol  # one, as they add up
    shown = [
        {
            "name": name,
            "colour": colour,
            "text": format_ms(ms, unit),
            "percent": 100 * max(ms, 0.0) / total,
        }
        for name, colour, ms in parts
        if ms
    ]
    return _part("time_bar", shown, total)


@dataclass(frozen=True)
class FlameBox:
    """A box of a flame graph.

    Attributes:
        name: written into it where it fits
        detail: beside the name, when pointed at
        level: 0 at the top
        start: on the axis of the time, in ms
        width: likewise
    """

    name: str
    detail: str
    level: int
    start: float
    width: float


def flame_graph(boxes: Sequence[FlameBox], label: str) -> Markup:
    """Return boxes within boxes over time as SVG."""
    total = max((box.start + box.width for box in boxes), default=0.0)
    if total <= 0:
        return Markup()
    drawn = [_flame_box(box, total) for box in boxes]
    height = _FLAME_ROW * (1 + max(box.level for box in boxes))
    return _part("flame", {"width": _WIDTH, "height": height, "label": label, "boxes": drawn})


def _flame_box(box: FlameBox, total: float) -> dict[str, Any]:
    width = max(box.width / total * _WIDTH, 0.5)
    name = clean(box.name, _NAME_OF_BOX)
    return {
        "x": box.start / total * _WIDTH,
        "y": box.level * _FLAME_ROW,
        "width": width,
        "height": _FLAME_ROW - 1,
        "colour": "cab"[box.level % 3],
        "name": name if width > _LETTER * (len(name) + 1) else "",
        "title": clean(f"{box.name}: {box.detail}, {box.width / total:.1%}", 120),
    }


def memory_map(arena: Arena, steps: int, values: Sequence[PlannedValue]) -> Markup:
    """Return addresses over instructions as SVG, the peak marked.

    Args:
        arena: a planned buffer
        steps: instructions of its method
        values: those drawn
    """
    ends = (value.offset + value.nbytes for value in arena.values)
    space = max(arena.planned_bytes, *ends, 1) if arena.values else max(arena.planned_bytes, 1)
    columns = max(steps, 1)
    peak = arena.peak_instruction
    what = f"planned buffer {arena.mem_id}: address over instructions"
    found = {
        "width": _WIDTH,
        "height": _HEIGHT,
        "label": f"{what}, peak {arena.peak_bytes:,} bytes",
        "boxes": [_box(value, columns, space) for value in values if value.first >= 0],
        "peak": None if peak is None else (peak + 0.5) / columns * _WIDTH,
        "last": columns - 1,
    }
    return _part("memory_map", found)


def _box(value: PlannedValue, columns: int, space: int) -> dict[str, Any]:
    steps = f"instructions {value.first} to {value.last}"
    return {
        "x": value.first / columns * _WIDTH,
        "y": _HEIGHT - (value.offset + value.nbytes) / space * _HEIGHT,
        "width": max((value.last - value.first + 1) / columns * _WIDTH, 0.5),
        "height": max(value.nbytes / space * _HEIGHT, 0.5),
        "colour": {"input": "b", "output": "b", "state": "c"}.get(value.role, "a"),
        "title": clean(f"{value.name}: {plural(value.nbytes, 'byte')}, {steps}", 90),
    }


def largest_values(arena: Arena, most: int) -> Sequence[PlannedValue]:
    """Return the values that take most bytes for most instructions."""

    def weight(value: PlannedValue) -> int:
        return -value.nbytes * (value.last - value.first + 1)

    return sorted(arena.values, key=weight)[:most]
