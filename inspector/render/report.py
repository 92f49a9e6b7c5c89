"""The whole session as one HTML file: no script, nothing loaded from elsewhere, bounded in size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from inspector.check.session import BELONG, DO_NOT_BELONG, check_session
from inspector.files.session import Session
from inspector.findings.program import short
from inspector.findings.session import findings
from inspector.graph.delegation import MethodDelegation, analyse_delegation
from inspector.graph.source import user_frame
from inspector.memory.plan import Arena, analyse_memory
from inspector.render.html import (
    STYLE,
    left_out,
    memory_map,
    number,
    percent,
    share_bar,
    table,
    text,
    time_bar,
)
from inspector.size.files import session_sizes
from inspector.size.users import stored_users, users_of, users_text
from inspector.tables.units import format_bytes, plural
from inspector.trace.event_kinds import OPERATOR_CALL
from inspector.trace.profile import MethodTime, Profile, analyse_profile
from inspector.trace.profile_rows import ProfileRow
from schema.errors import Severity
from schema.version import __version__

MOST_BYTES = 5_000_000
_MOST_METHODS = 12
_MOST_ROWS = 40
_MOST_BOXES = 500
_MOST_ARENAS = 4


@dataclass(frozen=True, slots=True)
class Report:
    """The report.

    Attributes:
        html: the document
        sections: titles of what is in it
        left_out: titles of sections that did not fit
    """

    html: str
    sections: tuple[str, ...]
    left_out: tuple[str, ...]


Section = Callable[[Session, tuple[str, ...]], str]


def make_report(session: Session, methods: tuple[str, ...]) -> Report:
    """Return the report of a session, 5 MB at most.

    Args:
        session: what is reported
        methods: those to show; the first twelve are
    """
    head = _head(session)
    left = MOST_BYTES - len(head.encode()) - 4096
    done: list[str] = []
    kept: list[str] = []
    dropped: list[str] = []
    for title, make in SECTIONS:
        body = make(session, methods[:_MOST_METHODS])
        if not body:
            continue
        block = f"<section><h2>{text(title)}</h2>{body}</section>"
        if len(block.encode()) > left:
            dropped.append(title)
            continue
        left -= len(block.encode())
        done.append(block)
        kept.append(title)
    return Report(head + "".join(done) + _tail(methods, dropped), tuple(kept), tuple(dropped))


def _head(session: Session) -> str:
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{text(session.name)}: ETScope report</title><style>{STYLE}</style></head>"
        f'<body><main><h1>{text(session.name)}</h1><p class="soft">ETScope {__version__}</p>'
    )


def _tail(methods: tuple[str, ...], dropped: list[str]) -> str:
    notes = left_out(_MOST_METHODS, len(methods), "methods")
    if dropped:
        notes += f'<p class="soft">Left out, too large: {text(", ".join(dropped))}.</p>'
    return f"{notes}</main></body></html>\n"


def _summary(session: Session, methods: tuple[str, ...]) -> str:
    names = _names(session)
    rows = [
        [text(names[file.path]), text(file.kind.replace("_", " ")), number(file.size, "B")]
        for file in session.files[:_MOST_ROWS]
    ]
    sentences = "".join(
        f'<li class="{one.tone.value}">{text(_without_folders(one.text, session), 400)}'
        + (
            f' <span class="soft">{text(_without_folders(one.detail, session), 400)}</span>'
            if one.detail
            else ""
        )
        + "</li>"
        for one in findings(session)
    )
    files = table(("file", "kind", "size"), rows, frozenset({2}))
    more = left_out(len(rows), len(session.files), "files")
    listed = f"<p>Methods: {text(', '.join(methods), 600)}</p>" if methods else ""
    return f"<ul>{sentences}</ul>{files}{more}{listed}"


def _names(session: Session) -> dict[str, str]:
    """Return path -> what a reader on another machine sees: the name, with its folder if needed."""
    short = Counter(Path(file.path).name for file in session.files)
    return {
        file.path: Path(file.path).name
        if short[Path(file.path).name] == 1
        else "/".join(Path(file.path).parts[-2:])
        for file in session.files
    }


def _without_folders(words: str, session: Session) -> str:
    for path, name in sorted(_names(session).items(), key=lambda pair: -len(pair[0])):
        words = words.replace(path, name)
    return words


def _check(session: Session, methods: tuple[str, ...]) -> str:
    del methods
    if len(session.files) < 2:
        return ""
    found = check_session(session)
    words = {
        BELONG: ("good", "The files belong together."),
        DO_NOT_BELONG: ("bad", "The files do not belong together."),
    }
    tone, sentence = words.get(found.verdict, ("", "Nothing in the files could tell."))
    links = found.links[:_MOST_ROWS]
    rows = [
        [
            text(_without_folders(link.first, session)),
            text(_without_folders(link.second, session)),
            text(link.verdict.replace("_", " ")),
            number(link.matched),
            text(_without_folders(link.mismatch or link.what, session)),
        ]
        for link in links
    ]
    shown = table(("file", "with", "verdict", "facts", "what"), rows, frozenset({3}))
    mismatch = (
        f"<p>{text(_without_folders(found.mismatch, session), 600)}</p>" if found.mismatch else ""
    )
    more = left_out(len(rows), len(found.links), "pairs")
    return f'<p class="{tone}">{sentence}</p>{mismatch}{shown}{more}'


def _time(session: Session, methods: tuple[str, ...]) -> str:
    profile = analyse_profile(session)
    times = [time for time in profile.methods if not time.method or time.method in methods]
    note = ""
    if profile.methods and profile.unit_assumed:
        note = f'<p class="soft">Ticks are taken for {text(profile.unit)} (assumed).</p>'
    return "".join(map(_method_time, times)) + (note if times else "")


def _method_time(time: MethodTime) -> str:
    bar = time_bar(
        (
            ("delegates", "delegates", time.delegates_ms),
            ("operators", "operators", time.operators_ms),
            ("control", "control", time.control_ms),
            ("unattributed", "rest", time.unattributed_ms),
        )
    )
    name = text(time.title)
    return f"<h3>{name}: {time.method_ms:,.4g} ms, mean of {plural(time.runs, 'run')}</h3>{bar}"


def _operators(session: Session, methods: tuple[str, ...]) -> str:
    del methods
    profile = analyse_profile(session)
    if not session.dumps or len(profile.rows) == 0:
        return ""
    rows = _slowest(profile)
    unit = "ms" if profile.unit_is_time else "ticks"
    cells = [_operator(row) for row in rows]
    heads = (
        "event",
        "operator",
        "where",
        "delegate",
        f"p50 / {unit}",
        f"avg / {unit}",
        "share",
        "",
    )
    more = left_out(len(rows), len(_parts_of_runs(profile)), "events")
    note = '<p class="soft">A delegate call contains the events of its delegate.</p>'
    return note + table(heads, cells, frozenset({4, 5, 6})) + more


def _slowest(profile: Profile) -> list[ProfileRow]:
    """Return the events with the most time; columns are sorted, rows made only for these."""
    order = profile.rows.column("total")
    chosen = set(_parts_of_runs(profile))
    ranked = (-order).argsort(kind="stable").tolist()
    known = [index for index in ranked if order[index] > 0 and index in chosen]
    return [profile.rows[index] for index in known[:_MOST_ROWS]]


def _parts_of_runs(profile: Profile) -> list[int]:
    """Return the events that are parts of a run; an OPERATOR_CALL repeats its kernel's."""
    found: list[int] = []
    for index in range(len(profile.rows)):
        source, event = profile.rows.place(index)
        if (
            source.block.layout.chain[event] >= 0
            and source.block.event_name(event) != OPERATOR_CALL
        ):
            found.append(index)
    return found


def _operator(row: ProfileRow) -> list[str]:
    stats = row.statistics
    frame = next(filter(None, map(user_frame, row.stack_traces.values())), None)
    modules = dict.fromkeys(filter(None, row.module_hierarchy.values()))
    places = [next(iter(modules), ""), frame.label if frame is not None else ""]
    step = "" if row.instruction_id is None else f"{row.instruction_id} "
    return [
        text(f"{step}{row.event_name}"),
        text(", ".join(dict.fromkeys(row.op_types))),
        text(" · ".join(filter(None, places))),
        text(row.delegate_backend_name),
        number(stats.p50 if stats else None),
        number(stats.avg if stats else None),
        percent(row.share),
        share_bar(row.share) if row.share is not None else "",
    ]


def _delegation(session: Session, methods: tuple[str, ...]) -> str:
    entries = [entry for entry in analyse_delegation(session) if entry.method in methods]
    return "".join(map(_method_delegation, entries))


def _method_delegation(entry: MethodDelegation) -> str:
    operators = sorted(entry.by_operator, key=lambda row: -(row.delegated + row.non_delegated))
    rows = [
        [text(row.op_type), number(row.delegated), number(row.non_delegated)]
        for row in operators[:_MOST_ROWS]
    ]
    counted = table(("operator", "delegated", "not delegated"), rows, frozenset({1, 2}))
    delegates = [
        [
            number(one.index),
            text(one.backend_id),
            number(one.nbytes, "B"),
            number(one.named_bytes, "B"),
            number(len(one.nodes)),
        ]
        for one in entry.delegates[:_MOST_ROWS]
    ]
    heads = ("delegate", "backend", "payload", "named data", "nodes")
    listed = table(heads, delegates, frozenset({0, 2, 3, 4})) if delegates else ""
    more = left_out(len(rows), len(operators), "operators")
    others = left_out(len(delegates), len(entry.delegates), "delegates")
    return (
        f"<h3>{text(entry.method)}, counted by {text(entry.counting)}</h3>"
        f"<p>{entry.num_delegated_subgraphs:,} delegated subgraphs,"
        f" {entry.num_delegated_nodes:,} delegated nodes,"
        f" {entry.num_non_delegated_nodes:,} non-delegated nodes</p>"
        f"{listed}{others}{counted}{more}"
    )


def _memory(session: Session, methods: tuple[str, ...]) -> str:
    program = session.program
    if program is None:
        return ""
    found: list[str] = []
    for method in methods:
        plan = analyse_memory(program, method)
        for arena in plan.arenas[:_MOST_ARENAS]:
            found.append(_arena(method, arena, max(plan.instruction_count, 1)))
        found.append(left_out(_MOST_ARENAS, len(plan.arenas), "arenas"))
    return "".join(found)


def _arena(method: str, arena: Arena, steps: int) -> str:
    largest = sorted(arena.values, key=lambda value: -value.nbytes * (value.last - value.first + 1))
    drawn = largest[:_MOST_BOXES]
    rows = [
        [
            text(value.name),
            number(value.peak_bytes, "B"),
            f"{value.first} to {value.last}",
            text(value.operator or value.role),
        ]
        for value in arena.at_peak()[:8]
    ]
    peak = table(("alive at the peak", "bytes", "instructions", "made by"), rows, frozenset({1}))
    return (
        f"<h3>{text(method)}, arena {arena.mem_id}: {format_bytes(arena.planned_bytes)} planned,"
        f" peak {format_bytes(arena.peak_bytes)}, lower bound"
        f" {format_bytes(arena.lower_bound_bytes)}</h3>{memory_map(arena, steps, drawn)}"
        f"{left_out(len(drawn), len(arena.values), 'values')}{peak if rows else ''}"
    )


def _size(session: Session, methods: tuple[str, ...]) -> str:
    del methods
    found: list[str] = []
    users = stored_users(session)
    for one in session_sizes(session)[:_MOST_ROWS]:
        if one.size is None or one.file.kind not in ("pte", "ptd", "bpte"):
            continue
        whole = max(one.size.total_bytes, 1)
        parts = sorted(one.size.parts, key=lambda part: -part.nbytes)
        rows = [
            [
                text(short(part.name)),
                text(part.kind),
                text(users_text(users_of(part, users))),
                number(part.nbytes, "B"),
                percent(part.nbytes / whole),
                share_bar(part.nbytes / whole),
            ]
            for part in parts[:_MOST_ROWS]
        ]
        title = (
            f"<h3>{text(_names(session)[one.file.path])}: {format_bytes(one.size.total_bytes)}</h3>"
        )
        shown = table(("part", "kind", "used by", "bytes", "share", ""), rows, frozenset({3, 4}))
        found.append(title + shown + left_out(len(rows), len(parts), "parts"))
    return "".join(found)


def _issues(session: Session, methods: tuple[str, ...]) -> str:
    del methods
    issues = session.all_issues()
    tones = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.INFO: "soft"}
    rows = "".join(
        f'<li class="{tones[issue.severity]}">{text(_without_folders(issue.where, session))}:'
        f" {text(_without_folders(issue.message, session), 600)}</li>"
        for issue in issues[:_MOST_ROWS]
    )
    more = left_out(_MOST_ROWS, len(issues), "issues")
    return f"<ul>{rows}</ul>{more}" if rows else ""


SECTIONS: tuple[tuple[str, Section], ...] = (
    ("Summary", _summary),
    ("Do the files belong together?", _check),
    ("Where the time went", _time),
    ("The events with the most time", _operators),
    ("Delegation", _delegation),
    ("Memory", _memory),
    ("Size", _size),
    ("Issues", _issues),
)
