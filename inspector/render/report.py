"""The whole session as one HTML file: no script, nothing loaded from elsewhere, bounded in size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from markupsafe import Markup

from inspector.check.session import BELONG, DO_NOT_BELONG, check_session, check_words
from inspector.files.session import Session
from inspector.findings.session import findings
from inspector.graph.delegation import MethodDelegation, analyse_delegation
from inspector.memory.measured import measured_memory
from inspector.memory.plan import Arena, analyse_memory
from inspector.profile.methods import UNATTRIBUTED, MethodTime, analyse_profile
from inspector.profile.operator_rows import operator_rows
from inspector.render.html import (
    Page,
    Words,
    heading,
    largest_values,
    left_out,
    make_page,
    memory_map,
    paragraph,
    sentences,
    table_html,
    time_bar,
)
from inspector.roofline.rows import known_limits
from inspector.size.files import session_sizes
from inspector.size.users import stored_users
from inspector.tables.check import link_table
from inspector.tables.delegation import delegate_table, operator_counts
from inspector.tables.files import file_table, issue_table
from inspector.tables.memory import culprits, measured
from inspector.tables.operators import operators
from inspector.tables.selection import AUTOMATIC
from inspector.tables.size import parts_table
from inspector.tables.table import ColumnKind, Table
from inspector.trace.run_times import steady_words
from inspector.units import NS_PER_MS, Quantity, choose_unit, format_bytes, format_ms
from schema.objects.plural import plural

_MOST_METHODS = 12
_MOST_ROWS = 40
_MOST_AT_PEAK = 8
_MOST_BOXES = 500
_MOST_ARENAS = 4
_BY_SHARE = ("share_of_method:desc", "mean:desc")  # times with logged values have no share
_TIMES = ("operator", "module", "delegate", "mean", "share_of_method", "p50", "join", "source")
_WORK = ("flops", "bytes", "flops_a_byte", "compute_rate")
_LIMITS = ("share_of_limit", "limit")
_COUNTED_ROWS = 20_000  # beyond these, counting takes longer than the rest of the report
_MEASURED = ("pte", "ptd", "bpte")

Section = Callable[[Session, tuple[str, ...], Words], Markup]


def make_report(session: Session, methods: tuple[str, ...]) -> Page:
    """Return the report of a session, 5 MB at most.

    Args:
        session: the session of the report
        methods: those to show; the first twelve are
    """
    words = partial(_without_folders, names=_names(session))
    bodies = ((title, make(session, methods[:_MOST_METHODS], words)) for title, make in SECTIONS)
    more = len(methods) - _MOST_METHODS
    notes = [f"{more:,} more methods are left out."] if more > 0 else []
    name = words(session.name)
    return make_page(f"{name}: ETScope report", name, bodies, notes)


def _names(session: Session) -> dict[str, str]:
    """Return path -> what a reader on another machine sees: the name, with its folder if needed."""
    short = Counter(Path(file.path).name for file in session.files)
    return {
        file.path: Path(file.path).name
        if short[Path(file.path).name] == 1
        else "/".join(Path(file.path).parts[-2:])
        for file in session.files
    }


def _without_folders(text: str, names: dict[str, str]) -> str:
    for path, name in sorted(names.items(), key=lambda pair: -len(pair[0])):
        text = text.replace(path, name)
    return text


def _summary(session: Session, methods: tuple[str, ...], words: Words) -> Markup:
    lines = (
        (f"{one.tone.shape} {one.text}", one.tone.value, one.line) for one in findings(session)
    )
    message = sentences(lines, words)
    files = table_html(file_table(session), _MOST_ROWS, words=words)
    listed = paragraph(f"Methods: {', '.join(methods)}") if methods else Markup()
    return message + files + listed


def _check(session: Session, _methods: tuple[str, ...], words: Words) -> Markup:
    if len(session.files) < 2:
        return Markup()
    found = check_session(session)
    tone = {BELONG: "good", DO_NOT_BELONG: "bad"}.get(found.verdict, "")
    mismatch = paragraph(words(found.mismatch)) if found.mismatch else Markup()
    pairs = table_html(link_table(found), _MOST_ROWS, words=words)
    return paragraph(check_words(session), tone) + mismatch + pairs


def _time(session: Session, methods: tuple[str, ...], _words: Words) -> Markup:
    profile = analyse_profile(session)
    times = [time for time in profile.methods if not time.method or time.method in methods]
    note = Markup()
    if times and profile.unit_assumed:
        note = paragraph(f"Ticks are assumed to be {profile.unit} (assumed).", "muted")
    if times and profile.values_logged:
        note += paragraph(f"{profile.values_warning}.", "bad")
    logged = profile.values_logged  # then the cause of any noise
    return Markup().join(_method_time(time, logged=logged) for time in times) + note


def _method_time(time: MethodTime, *, logged: bool) -> Markup:
    tones = {UNATTRIBUTED: "rest"}
    bar = time_bar(tuple((word, tones.get(word, word), ms) for word, ms in time.parts))
    unit = choose_unit(Quantity.TIME, time.latency_ms * NS_PER_MS).symbol
    took = f"{format_ms(time.method_ms, unit)}, mean of {steady_words(time.traced)}"
    if time.bare is not None:
        bare = f"{format_ms(time.bare.mean, unit)}, mean of {steady_words(time.bare)}"
        took = f"{bare} without a trace; with it {took}"
    else:
        took += f", {time.tag}"
    if time.headline.noise and not logged:
        took += f"; {time.headline.noise_words()}"
    return heading(f"{time.title}: {took}") + bar


def _operators(session: Session, methods: tuple[str, ...], _words: Words) -> Markup:
    found: list[Markup] = []
    for method in methods or ("",):
        rows = operator_rows(session, method)
        if not rows:
            continue  # the table would list nodes without times
        table = operators(session, method, AUTOMATIC)
        table = table.complete() if len(rows) <= _COUNTED_ROWS else table
        limits = () if known_limits(session).missing else _LIMITS
        columns = _known(table, (*_TIMES, *_WORK, *limits))
        shown = table_html(table, _MOST_ROWS, columns=columns, sort=_BY_SHARE)
        found.append(heading(method) + shown if len(methods) > 1 and shown else shown)
    return Markup().join(found)


def _known(table: Table, requested: Sequence[str]) -> list[str]:
    """Return the requested columns that a table has; ticks without a unit have other columns."""
    return [
        one.id
        for one in table.columns
        if one.id in requested or (one.kind is ColumnKind.SHARE and one.id not in _LIMITS)
    ]


def _delegation(session: Session, methods: tuple[str, ...], _words: Words) -> Markup:
    entries = (entry for entry in analyse_delegation(session) if entry.method in methods)
    return Markup().join(map(_method_delegation, entries))


def _method_delegation(entry: MethodDelegation) -> Markup:
    counts = (
        f"{plural(entry.num_delegated_subgraphs, 'delegated subgraph')},"
        f" {plural(entry.num_delegated_nodes, 'delegated node')},"
        f" {plural(entry.num_non_delegated_nodes, 'non-delegated node')}"
    )
    by_count = operator_counts(entry)
    return (
        heading(f"{entry.method}, counted by {entry.counting}")
        + paragraph(counts)
        + table_html(delegate_table(entry), _MOST_ROWS)
        + table_html(by_count, _MOST_ROWS)
    )


def _memory(session: Session, methods: tuple[str, ...], _words: Words) -> Markup:
    program = session.program
    found: list[Markup] = []
    for method in methods if program is not None else ():
        assert program is not None
        plan = analyse_memory(program, method)
        steps = max(plan.instruction_count, 1)
        found += [_arena(session, method, one, steps) for one in plan.arenas[:_MOST_ARENAS]]
        found.append(left_out(_MOST_ARENAS, len(plan.arenas), "planned buffers"))
        if measured_memory(session, method):
            rows = table_html(measured(session, method, AUTOMATIC), _MOST_ROWS)
            found.append(heading(f"{method}, as measured") + rows)
    return Markup().join(found)


def _arena(session: Session, method: str, arena: Arena, steps: int) -> Markup:
    drawn = largest_values(arena, _MOST_BOXES)
    sizes = (
        f"{format_bytes(arena.planned_bytes)} planned, peak {format_bytes(arena.peak_bytes)},"
        f" lower bound {format_bytes(arena.lower_bound_bytes)}"
    )
    at_peak = culprits(session, method, arena, peak_only=True)
    return (
        heading(f"{method}, planned buffer {arena.mem_id}: {sizes}")
        + memory_map(arena, steps, drawn)
        + left_out(len(drawn), len(arena.values), "values")
        + table_html(at_peak, _MOST_AT_PEAK)
    )


def _size(session: Session, _methods: tuple[str, ...], words: Words) -> Markup:
    users = stored_users(session)
    found: list[Markup] = []
    for one in session_sizes(session)[:_MOST_ROWS]:
        if one.size is None or one.file.kind not in _MEASURED:
            continue
        title = heading(f"{words(one.file.path)}: {format_bytes(one.size.total_bytes)}")
        parts = parts_table([(one.file, part) for part in one.size.parts], users=users)
        found.append(title + table_html(parts, _MOST_ROWS, sort=("size:desc",), words=words))
    return Markup().join(found)


def _issues(session: Session, _methods: tuple[str, ...], words: Words) -> Markup:
    issues = (*session.all_issues(), *session.unread())
    return table_html(issue_table(issues), _MOST_ROWS, words=words)


SECTIONS: tuple[tuple[str, Section], ...] = (
    ("Summary", _summary),
    ("Do the files belong together?", _check),
    ("Where the time went", _time),
    ("Operators by time", _operators),
    ("Delegation", _delegation),
    ("Memory", _memory),
    ("Size", _size),
    ("Issues", _issues),
)
