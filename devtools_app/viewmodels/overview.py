"""The overview: summary of a session, consistency of its files, distribution of its time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from devtools_app.viewmodels.entries import ListEntry
from devtools_app.viewmodels.finding_links import finding_entry, short_paths
from devtools_app.viewmodels.run_marks import RunMarks, run_marks
from devtools_app.viewmodels.session_list import session_line
from devtools_app.viewmodels.status import StatusFacts, status_facts
from inspector.check.session import BELONG, DO_NOT_BELONG, Check, FileLink, check_session
from inspector.files.getters import getters
from inspector.files.session import LoadedFile, Session
from inspector.findings.next_steps import NextStep, change_words, next_steps, next_steps_beside
from inspector.findings.session import Finding, findings
from inspector.graph.snippet import file_name
from inspector.memory.measured import measured_as, measured_memory
from inspector.profile.methods import VALUES_LOGGED, MethodTime
from inspector.tables.facts import Fact, FactGroup
from inspector.tables.files import kind_label
from inspector.tables.method_facts import method_group, work_facts
from inspector.tables.selection import Units
from inspector.units import Quantity, choose_unit, exact_text, format_bytes, format_time, plural

_NS = 1e6  # a millisecond in nanoseconds


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of the time of a method.

    Attributes:
        word: kind: delegates, operators, control, unattributed, or what tracing takes off
        nanoseconds: mean over runs
        share: of the whole, 0 to 1; None where the times are not the program's
        text: with its unit
        exact: unrounded
        view: view that shows it
    """

    word: str
    nanoseconds: float
    share: float | None
    text: str
    exact: str
    view: str


@dataclass(frozen=True, slots=True)
class TimeSum:
    """The distribution of the time of a method; the slices add up to the total.

    Attributes:
        method: method that ran, empty if the trace does not name it
        whole: its time with its unit, empty if unknown
        runs: number of averaged runs
        slices: its parts
        reason: why the time is unknown, else empty
        note: note shown with the times, such as an assumed unit; may be empty
        hatched: whether values were logged, so that the times are not the program's
        marks: its runs on a line, None for few runs
    """

    method: str = ""
    whole: str = ""
    runs: int = 0
    slices: tuple[Slice, ...] = ()
    reason: str = ""
    note: str = ""
    hatched: bool = False
    marks: RunMarks | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """A missing file that would add information.

    Attributes:
        what: the file
        adds: facts it would add
        command: code that writes it
    """

    what: str
    adds: str
    command: str


@dataclass(frozen=True, slots=True)
class OverviewVerdict:
    """The verdict on whether the files belong together.

    Attributes:
        entry: the verdict
        links: one line per compared pair of files
    """

    entry: ListEntry
    links: tuple[ListEntry, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """The content of the first view.

    Attributes:
        title: name of the session
        subtitle: its contents
        time: of the method shown
        findings: most important first
        entries: the same as a list
        verdict: None for a single file
        methods: one group per method, and one for the values of getter methods
        memory: resident memory of the run of each method, where it was measured
        files: one line per file
        missing: files that would add information
        steps: what to do next
        change: how the program can be changed, empty without one
    """

    title: str
    subtitle: str
    time: TimeSum
    findings: tuple[Finding, ...]
    entries: tuple[ListEntry, ...]
    verdict: OverviewVerdict | None
    methods: tuple[FactGroup, ...]
    memory: tuple[FactGroup, ...]
    files: FactGroup
    missing: tuple[Missing, ...]
    steps: tuple[NextStep, ...] = ()
    change: str = ""


def overview(session: Session, method: str, units: Units, beside: str = "") -> Overview:
    """Return the overview of a session.

    Args:
        session: the session shown
        method: the method shown
        units: of the user
        beside: name of a variant open beside it that was not measured, empty for none
    """
    found = findings(session)
    return Overview(
        session.name,
        session_line(session),
        time_sum(status_facts(session, method), units),
        found,
        tuple(finding_entry(session, one) for one in found),
        verdict(session),
        _methods(session, units),
        tuple(filter(None, (_memory(session, method, units) for method in session.methods))),
        FactGroup("Files", tuple(_file(file, units) for file in session.files)),
        missing(session),
        next_steps_beside(session, beside) if beside else next_steps(session),
        change_words(session),
    )


def _methods(session: Session, units: Units) -> tuple[FactGroup, ...]:
    constants = getters(session.program) if session.program is not None else {}
    computing = [name for name in session.methods if name not in constants]
    groups = [method_group(session, name, units) for name in computing]
    if constants:
        facts = tuple(Fact(name, text) for name, text in constants.items())
        groups.append(FactGroup("Metadata", facts))
    return tuple(groups)


def _memory(session: Session, method: str, units: Units) -> FactGroup | None:
    """Return what a run took of memory, phase by phase; None where it was not measured."""
    rows = measured_memory(session, method)
    facts = [
        Fact(
            (one.part and f"· {one.part}") or one.phase,
            format_bytes(one.nbytes, units.size),
            "; ".join(filter(None, (exact_text(one.nbytes, Quantity.SIZE), one.note))),
        )
        for one in rows
    ]
    title = f"Memory of {method} as measured: {measured_as(rows)}"
    return FactGroup(title, tuple(facts)) if facts else None


def methods_work(session: Session) -> dict[str, tuple[Fact, ...]]:
    """Return method -> its FLOPs, bytes and limit; of a large program that takes a while."""
    constants = getters(session.program) if session.program is not None else {}
    return {name: work_facts(session, name) for name in session.methods if name not in constants}


def time_sum(facts: StatusFacts, units: Units) -> TimeSum:
    """Return the parts of a method's time; the last one is unattributed."""
    time = facts.time
    if time is None:
        return TimeSum(reason=facts.why_no_time)
    parts = (
        ("delegates", time.delegates_ms, "partitions"),
        ("operators", time.operators_ms, "operators"),
        ("control", time.control_ms, "timeline"),
        ("unattributed", time.unattributed_ms, "timeline"),
        ("tracing", -(time.tracing_ms or 0.0), "timeline"),
    )
    unit = choose_unit(Quantity.TIME, time.latency_ms * _NS, units.time).symbol
    logged = VALUES_LOGGED in facts.tags
    shared = 0.0 if logged else time.method_ms
    slices = tuple(
        Slice(
            word,
            part * _NS,
            part / shared if shared and word != "tracing" else None,
            f"{'−' if part < 0 else ''}{format_time(abs(part) * _NS, unit)}",
            exact_text(round(part * _NS, 3), Quantity.TIME),
            view,
        )
        for word, part, view in parts
        if part
    )
    return TimeSum(
        time.method,
        format_time(time.latency_ms * _NS, unit),
        len(time.headline.steady),
        slices,
        "",
        ", ".join(_notes(time, facts.tags, unit)),
        hatched=logged,
        marks=run_marks(time.headline, _NS, unit),
    )


def _notes(time: MethodTime, tags: Sequence[str], unit: str) -> list[str]:
    """Return what the headline is shown with: its spread, the trace, runs left out, tags."""
    runs, found = time.headline, list[str]()
    if runs.median is not None and runs.p10 is not None and runs.p90 is not None:
        low, high = (format_time(ms * _NS, unit) for ms in (runs.p10, runs.p90))
        found.append(f"median {format_time(runs.median * _NS, unit)}, p10 to p90 {low} to {high}")
    if left := runs.left_out():
        found.append(f"without {left}")
    if runs.noise:
        found.append(f"noisy ({runs.noise})")
    if time.bare is not None:
        found.append(f"without a trace, with it {format_time(time.method_ms * _NS, unit)}")
    return [*found, *([time.tag] if time.tag else ()), *tags]


def verdict(session: Session) -> OverviewVerdict | None:
    """Return whether the files belong together, None for a single file."""
    if len(session.files) < 2:
        return None
    check = check_session(session)
    return OverviewVerdict(_verdict_entry(session, check), _link_entries(session, check))


def _verdict_entry(session: Session, check: Check) -> ListEntry:
    if check.verdict == BELONG:
        count = len(session.files)
        sentence = "Both files" if count == 2 else f"All {count} files"
        return ListEntry(f"{sentence} belong together", "", "good", "good")
    if check.verdict == DO_NOT_BELONG:
        odd = f"{check.odd_one_out} is the one that differs. " if check.odd_one_out else ""
        detail = short_paths(session, odd + check.mismatch)
        return ListEntry("These files do not belong together", detail, "bad", "problem")
    text = "No contradiction found, but too little evidence connects all of them."
    return ListEntry("Unknown whether all files belong together", text, "warn", "unknown")


def _link_entries(session: Session, check: Check) -> tuple[ListEntry, ...]:
    found: list[ListEntry] = []
    for link in check.links:
        names = short_paths(session, f"{link.first} and {link.second}")
        if link.verdict == BELONG:
            found.append(ListEntry(names, _agreement(link), "good", "agree"))
        elif link.verdict == DO_NOT_BELONG:
            found.append(ListEntry(names, link.mismatch, "bad", "contradict"))
        else:
            found.append(ListEntry(names, "nothing to compare", "muted", "unknown"))
    return tuple(found)


def _agreement(link: FileLink) -> str:
    facts = (
        f"{link.matched:,} fact agrees" if link.matched == 1 else f"{link.matched:,} facts agree"
    )
    return f"{facts}: {link.what}"


def _file(file: LoadedFile, units: Units) -> Fact:
    size = format_bytes(file.size, units.size)
    text = f"{kind_label(file.kind)}  {size}"
    hover = f"{file.path}, {file.size:,} B"
    if file.error:
        return Fact(file_name(file.path), text, f"{hover}: {file.error}", "not readable", "bad")
    issues = Counter(issue.severity.value for issue in getattr(file.artifact, "issues", ()))
    for severity, tone in (("error", "bad"), ("warning", "warn")):
        count = issues[severity]
        if count:
            badge = plural(count, severity)
            return Fact(file_name(file.path), text, hover, badge, tone)
    return Fact(file_name(file.path), text, hover)


_MISSING = (
    Missing(
        "program (.pte)",
        "instructions, memory plan, delegates and sizes",
        "executorch_program.write_to_file(open('model.pte', 'wb'))",
    ),
    Missing(
        "ETRecord",
        "source lines, modules and the names of the graph",
        "to_edge_transform_and_lower(..., generate_etrecord=True)"
        "  # then program.get_etrecord().save('model.etrecord')",
    ),
    Missing(
        "trace (ETDump)",
        "times of every operator and delegate",
        "etscope run model.pte -o run --debug-level intermediate"
        "  # times, and the values that the numeric gap compares",
    ),
)


def missing(session: Session) -> tuple[Missing, ...]:
    """Return the missing files that would add information to a session."""
    absent = (session.program is None, session.record is None, not session.dumps)
    return tuple(one for one, gone in zip(_MISSING, absent, strict=True) if gone)


def step_entry(session: Session, step: NextStep) -> ListEntry:
    """Return an action as it is listed, with file names instead of paths."""
    return ListEntry(step.text, short_paths(session, step.brings), "accent")
