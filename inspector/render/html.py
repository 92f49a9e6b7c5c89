"""Pieces of the HTML report: escaped text, tables, bars and the memory map."""

from __future__ import annotations

import html
from collections.abc import Sequence

from inspector.memory.plan import Arena, PlannedValue

MOST_TEXT = 160
STYLE = """
:root{color-scheme:light dark;--page:#fbfaf8;--card:#ffffff;--text:#1d1c1a;--soft:#6b6862;
--line:#dedbd4;--bar:#3b6ea5;--delegates:#2f7d6b;--operators:#3b6ea5;--control:#8a6bb1;
--rest:#b9b4aa;--bad:#b3372f;--warn:#96650b;--good:#2f7d6b;--a:#8fb3d6;--b:#a9cfc4;--c:#e3c793}
@media (prefers-color-scheme:dark){:root{--page:#191917;--card:#232321;--text:#eceae4;
--soft:#a19d94;--line:#3b3934;--bar:#7aa7d6;--delegates:#6cc0ac;--operators:#7aa7d6;
--control:#b79bdb;--rest:#5c5850;--bad:#f0857c;--warn:#e0b25a;--good:#6cc0ac;--a:#3f638a;
--b:#3d6b60;--c:#79622f}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--text);
font:15px/1.5 system-ui,sans-serif}main{max-width:1100px;margin:0 auto;padding:24px}
h1{font-size:26px;margin:0}h2{font-size:19px;margin:32px 0 8px}h3{font-size:16px;margin:20px 0 6px}
.soft{color:var(--soft)}section{background:var(--card);border:1px solid var(--line);
border-radius:8px;padding:4px 20px 18px;margin:16px 0;overflow-x:auto}
table{border-collapse:collapse;font-size:13px;width:100%}
th,td{text-align:left;padding:3px 12px 3px 0;border-bottom:1px solid var(--line);
vertical-align:top}th{color:var(--soft);font-weight:600;white-space:nowrap}
td:last-child,th:last-child{padding-right:0}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td{overflow-wrap:break-word;max-width:380px}td:first-child{min-width:11em}
td.bar{min-width:90px;width:12%}ul{padding-left:20px;margin:8px 0}
.bad{color:var(--bad)}.warn{color:var(--warn)}.good{color:var(--good)}
.time{display:flex;height:26px;border-radius:4px;overflow:hidden;margin:8px 0}
.key{display:inline-block;width:11px;height:11px;border-radius:2px;margin-right:5px}
.share{display:block;height:9px;margin-top:5px;border-radius:2px;background:var(--bar);min-width:1px}
svg{width:100%;height:auto;background:var(--page);border:1px solid var(--line);border-radius:4px}
svg text{fill:var(--soft);font:11px system-ui,sans-serif}
"""
_WIDE, _HIGH = 1000.0, 320.0


def text(value: object, most: int = MOST_TEXT) -> str:
    """Return a value as escaped text: no markup, no control characters, not too long."""
    raw = "" if value is None else str(value)
    clean = "".join(char if char.isprintable() else " " for char in raw[: most + 1])
    return html.escape(clean if len(clean) <= most else f"{clean[: most - 1]}…", quote=True)


def number(value: float | None, unit: str = "") -> str:
    """Return a number for a cell, a dash where there is none."""
    if value is None:
        return "—"
    shown = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
    return f"{shown} {unit}".rstrip()


def percent(share: float | None) -> str:
    """Return a fraction as a percentage."""
    return "—" if share is None else f"{100 * share:.1f} %"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: frozenset[int]) -> str:
    """Return a table of cells that are escaped already.

    Args:
        heads: headings
        rows: cells
        numbers: columns that are aligned to the right
    """
    bars = ['class="bar"' if not cell else "" for cell in heads]
    mark = ['class="n"' if index in numbers else bars[index] for index in range(len(heads))]
    head = "".join(f"<th {mark[index]}>{cell}</th>" for index, cell in enumerate(heads))
    body = "".join(
        "<tr>" + "".join(f"<td {mark[i]}>{cell}</td>" for i, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def left_out(shown: int, total: int, what: str) -> str:
    """Return the sentence that says what a cut table leaves out, nothing for a whole one."""
    if shown >= total:
        return ""
    return f'<p class="soft">{total - shown:,} more {what} are left out.</p>'


def share_bar(share: float) -> str:
    """Return a bar as wide as a share."""
    width = min(max(100 * share, 0.0), 100.0)
    return f'<span class="share" style="width:{width:.2f}%"></span>'


def time_bar(parts: Sequence[tuple[str, str, float]]) -> str:
    """Return a stacked bar with its legend; the parts are the whole.

    Args:
        parts: name, colour variable and ms of each part
    """
    total = sum(max(ms, 0.0) for _, _, ms in parts)
    if total <= 0:
        return ""
    pieces = "".join(
        f'<span style="width:{100 * max(ms, 0.0) / total:.3f}%;background:var(--{colour})"'
        f' title="{text(name)} {ms:.4g} ms"></span>'
        for name, colour, ms in parts
    )
    legend = " &nbsp; ".join(
        f'<span class="key" style="background:var(--{colour})"></span>{text(name)}'
        f" {ms:,.4g} ms ({100 * ms / total:.1f} %)"
        for name, colour, ms in parts
    )
    return f'<div class="time">{pieces}</div><p>{legend}</p>'


def memory_map(arena: Arena, steps: int, values: Sequence[PlannedValue]) -> str:
    """Return addresses over instructions as SVG, the peak marked.

    Args:
        arena: the arena
        steps: instructions of its method
        values: those drawn
    """
    ends = (value.offset + value.nbytes for value in arena.values)
    space = max(arena.planned_bytes, *ends, 1) if arena.values else max(arena.planned_bytes, 1)
    columns = max(steps, 1)
    boxes = "".join(_box(value, columns, space) for value in values if value.first >= 0)
    peak = ""
    if arena.peak_instruction is not None:
        x = (arena.peak_instruction + 0.5) / columns * _WIDE
        peak = (
            f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{_HIGH:.0f}" stroke="var(--bad)"'
            ' stroke-dasharray="4 3"/>'
        )
    label = f"arena {arena.mem_id}: address over instructions, peak {arena.peak_bytes:,} bytes"
    return (
        f'<svg viewBox="0 0 {_WIDE:.0f} {_HIGH + 16:.0f}" role="img" aria-label="{text(label)}">'
        f'{boxes}{peak}<text x="2" y="{_HIGH + 13:.0f}">instruction 0</text>'
        f'<text x="{_WIDE - 2:.0f}" y="{_HIGH + 13:.0f}" text-anchor="end">'
        f"instruction {columns - 1:,}</text></svg>"
    )


def _box(value: PlannedValue, columns: int, space: int) -> str:
    x = value.first / columns * _WIDE
    width = max((value.last - value.first + 1) / columns * _WIDE, 0.5)
    height = max(value.nbytes / space * _HIGH, 0.5)
    y = _HIGH - (value.offset + value.nbytes) / space * _HIGH
    colour = {"input": "b", "output": "b", "state": "c"}.get(value.role, "a")
    title = f"{value.name}: {value.nbytes:,} bytes, instructions {value.first} to {value.last}"
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        f' fill="var(--{colour})" stroke="var(--page)" stroke-width=".5">'
        f"<title>{text(title, 90)}</title></rect>"
    )
