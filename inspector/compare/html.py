"""A comparison as one HTML file: no script, nothing loaded from elsewhere, bounded in size."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from inspector.compare.model import Comparison, Delta, TimeRow
from inspector.compare.words import difference_text, output_name, signed_text, tone, value_text
from inspector.files.session import Session
from inspector.memory.plan import Arena, PlannedValue, analyse_memory
from inspector.render.html import STYLE, left_out, memory_map, number, percent, table, text
from schema.version import __version__

MOST_BYTES = 5_000_000
_MOST_ROWS = 60
_MOST_BOXES = 300
_MOST_ARENAS = 3
_MOST_METHODS = 6
_LEGEND = '<p class="soft">Differences are those from the first column.</p>'

Section = Callable[[Comparison, Sequence[Session]], str]


def comparison_html(found: Comparison, sessions: Sequence[Session]) -> str:
    """Return the report of a comparison, 5 MB at most.

    Args:
        found: the comparison
        sessions: those that were compared, for the pictures of their memory
    """
    names = " and ".join(text(name) for name in found.names)
    head = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{names}: ETScope comparison</title><style>{STYLE}</style></head>"
        f'<body><main><h1>{names}</h1><p class="soft">ETScope {__version__}</p>'
    )
    left = MOST_BYTES - len(head.encode()) - 4096
    done: list[str] = []
    dropped: list[str] = []
    for title, make in SECTIONS:
        body = make(found, sessions)
        block = f"<section><h2>{text(title)}</h2>{body}</section>" if body else ""
        if len(block.encode()) > left:
            dropped.append(title)
            continue
        left -= len(block.encode())
        done.append(block)
    note = f'<p class="soft">Left out, too large: {text(", ".join(dropped))}.</p>'
    return f"{head}{''.join(done)}{note if dropped else ''}</main></body></html>\n"


def _names(found: Comparison) -> list[str]:
    return [text(name, 40) for name in found.names]


def _summary(found: Comparison, sessions: Sequence[Session]) -> str:
    del sessions
    notes = "".join(f'<li class="soft">{text(note, 400)}</li>' for note in found.notes)
    listed = f"<ul>{notes}</ul>" if notes else ""
    return _LEGEND + _deltas(found.summary, found) + listed


def _deltas(deltas: Sequence[Delta], found: Comparison) -> str:
    names = _names(found)
    heads = ["", "what", "method", *names, *(f"{name}, difference" for name in names[1:]), "note"]
    rows = [
        [
            text(delta.area),
            text(delta.what),
            text(delta.method),
            *(text(value_text(value, delta.unit)) for value in delta.values),
            *(_difference(delta, session) for session in range(1, len(names))),
            text(delta.note),
        ]
        for delta in deltas[:_MOST_ROWS]
    ]
    more = left_out(len(rows), len(deltas), "rows")
    return table(heads, rows, frozenset(range(3, 3 + len(names)))) + more


def _difference(delta: Delta, session: int) -> str:
    words = text(difference_text(delta, session))
    kind = tone(delta, session)
    return f'<span class="{kind}">{words}</span>' if kind else words


def _recipes(found: Comparison, sessions: Sequence[Session]) -> str:
    del sessions
    if not found.recipes:
        return ""
    names = _names(found)
    rows = [
        [names[one.session], text(one.field), text(one.old or "—", 300), text(one.new or "—", 300)]
        for one in found.recipes[:_MOST_ROWS]
    ]
    shown = table(("in", "field", "before", "after"), rows, frozenset())
    return shown + left_out(len(rows), len(found.recipes), "fields")


def _owners(found: Comparison, sessions: Sequence[Session]) -> str:
    del sessions
    if not found.owners:
        return ""
    names = _names(found)
    rows = [
        [
            names[one.session],
            text(one.new_node),
            text(one.operator),
            text(one.module),
            text(_owner(one.old_owner, one.old_delegate)),
            text(_owner(one.new_owner, one.new_delegate)),
            text(one.reason, 300),
        ]
        for one in sorted(found.owners, key=lambda one: not one.other)[:_MOST_ROWS]
    ]
    heads = ("in", "node", "operator", "module", "from", "to", "reason")
    return table(heads, rows, frozenset()) + left_out(len(rows), len(found.owners), "nodes")


def _owner(name: str, delegate: int | None) -> str:
    return name if delegate is None else f"{name} delegate {delegate}"


def _partitions(found: Comparison, sessions: Sequence[Session]) -> str:
    del sessions
    if not found.partitions:
        return ""
    names = _names(found)
    rows = [
        [
            names[one.session],
            text(one.method),
            text(one.backend),
            "new" if one.old is None else str(one.old),
            "gone" if one.new is None else str(one.new),
            number(one.old_nodes),
            number(one.new_nodes),
            number(one.common),
        ]
        for one in found.partitions[:_MOST_ROWS]
    ]
    heads = ("in", "method", "backend", "was", "is", "nodes before", "nodes", "in both")
    more = left_out(len(rows), len(found.partitions), "partitions")
    return table(heads, rows, frozenset({5, 6, 7})) + more


def _graph(found: Comparison, sessions: Sequence[Session]) -> str:
    del sessions
    names = _names(found)
    rows: list[list[str]] = []
    for graphs in found.graphs:
        for session, each in enumerate(graphs.alignments, 1):
            if each is None:
                continue
            old, new = each.old.nodes, each.new.nodes
            for group in each.replaced:
                before = ", ".join(old[node].name for node in group.old)
                after = ", ".join(new[node].name for node in group.new)
                rows.append([names[session], "replaced", text(before), text(after)])
            known = {node for group in each.replaced for node in group.old}
            also = {node for group in each.replaced for node in group.new}
            gone = [old[node].name for node in each.removed if node not in known]
            come = [new[node].name for node in each.added if node not in also]
            rows += [[names[session], "removed", text(name), ""] for name in gone]
            rows += [[names[session], "added", "", text(name)] for name in come]
            rows += [
                [names[session], f"other {one.what}", text(one.old), text(one.new)]
                for one in each.changed
            ]
    if not rows:
        return ""
    shown = table(("in", "what", "before", "after"), rows[:_MOST_ROWS], frozenset())
    return shown + left_out(_MOST_ROWS, len(rows), "differences")


def _times(found: Comparison, sessions: Sequence[Session]) -> str:
    del sessions
    parts = (
        ("By operator", found.operators),
        ("By module", found.modules),
        ("By nodes measured together, largest difference first", found.nodes),
    )
    return "".join(_time_table(title, rows, found) for title, rows in parts if rows)


def _time_table(title: str, rows: Sequence[TimeRow], found: Comparison) -> str:
    names = _names(found)
    heads = ["", *names, *(f"{name}, difference" for name in names[1:]), "where"]
    cells = [
        [
            text(row.name),
            *(text(value_text(ms, "ms")) for ms in row.ms),
            *(text(signed_text(row.difference(n), "ms")) for n in range(1, len(row.ms))),
            text(" / ".join(each or "—" for each in row.where) if any(row.where) else row.note),
        ]
        for row in rows[:_MOST_ROWS]
    ]
    shown = table(heads, cells, frozenset(range(1, 2 * len(names))))
    return f"<h3>{text(title)}</h3>{shown}{left_out(len(cells), len(rows), 'rows')}"


def _memory(found: Comparison, sessions: Sequence[Session]) -> str:
    if not found.memory:
        return ""
    pictures = [
        _maps(name, session, method)
        for method in found.methods[:_MOST_METHODS]
        for name, session in zip(found.names, sessions, strict=True)
    ]
    return _deltas(found.memory, found) + "".join(pictures)


def _maps(name: str, session: Session, method: str) -> str:
    program = session.program
    if program is None or method not in session.methods:
        return ""
    plan = analyse_memory(program, method)
    return "".join(
        f"<h3>{text(name)}, {text(method)}, arena {arena.mem_id}</h3>"
        f"{memory_map(arena, max(plan.instruction_count, 1), _largest(arena))}"
        for arena in plan.arenas[:_MOST_ARENAS]
    )


def _largest(arena: Arena) -> Sequence[PlannedValue]:
    def weight(value: PlannedValue) -> int:
        return -value.nbytes * (value.last - value.first + 1)

    return sorted(arena.values, key=weight)[:_MOST_BOXES]


def _sizes(found: Comparison, sessions: Sequence[Session]) -> str:
    del sessions
    return _deltas(found.sizes, found) if found.sizes else ""


def _gaps(found: Comparison, sessions: Sequence[Session]) -> str:
    del sessions
    if not found.gaps:
        return ""
    names = _names(found)
    heads = ["node", "operator", *(f"{name}, max abs" for name in names)]
    heads += [f"{name}, by itself" for name in names]
    rows = [
        [
            text(output_name(row)),
            text(row.operator),
            *map(number, row.max_abs),
            *map(number, row.own),
        ]
        for row in found.gaps[:_MOST_ROWS]
    ]
    note = '<p class="soft">Each session is held to its own recorded program.</p>'
    shown = table(heads, rows, frozenset(range(2, 2 + 2 * len(names))))
    return note + shown + left_out(len(rows), len(found.gaps), "outputs")


def _weights(found: Comparison, sessions: Sequence[Session]) -> str:
    del sessions
    if not found.weights:
        return ""
    names = _names(found)
    rows = [
        [
            names[one.session],
            text(one.name),
            text(one.old or "—"),
            text(one.new or "—"),
            number(one.largest),
            percent(one.share),
        ]
        for one in found.weights[:_MOST_ROWS]
    ]
    heads = ("in", "weight", "before", "after", "largest difference", "elements that differ")
    return table(heads, rows, frozenset({4, 5})) + left_out(
        len(rows), len(found.weights), "weights"
    )


SECTIONS: tuple[tuple[str, Section], ...] = (
    ("Summary", _summary),
    ("Recipe", _recipes),
    ("Nodes that changed owner", _owners),
    ("Partitions", _partitions),
    ("Graph", _graph),
    ("Time", _times),
    ("Memory", _memory),
    ("Size", _sizes),
    ("Errors", _gaps),
    ("Weights", _weights),
)
