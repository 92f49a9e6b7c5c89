"""The overview: summary of a session, consistency of its files, distribution of its time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from devtools_app.viewmodels.entries import ListEntry
from devtools_app.viewmodels.finding_links import finding_entry, short_paths
from devtools_app.viewmodels.headline import TimeSum, time_sum
from devtools_app.viewmodels.session_list import session_line
from devtools_app.viewmodels.status import status_facts
from inspector.check.session import BELONG, DO_NOT_BELONG, Check, FileLink, check_session
from inspector.files.getters import getters
from inspector.files.session import LoadedFile, Session
from inspector.findings.next_steps import NextStep, change_words, next_steps
from inspector.findings.session import Finding, findings
from inspector.graph.snippet import file_name
from inspector.memory.measured import measured_as, measured_memory
from inspector.tables.facts import Fact, FactGroup
from inspector.tables.files import kind_label
from inspector.tables.method_facts import cost_facts, method_group, work_facts
from inspector.tables.selection import Units
from inspector.units import Quantity, exact_text, format_bytes
from schema.objects.plural import plural


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
        costs: what the method costs beside its time
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
    costs: tuple[Fact, ...]
    findings: tuple[Finding, ...]
    entries: tuple[ListEntry, ...]
    verdict: OverviewVerdict | None
    methods: tuple[FactGroup, ...]
    memory: tuple[FactGroup, ...]
    files: FactGroup
    missing: tuple[Missing, ...]
    steps: tuple[NextStep, ...] = ()
    change: str = ""


def overview(
    session: Session,
    method: str,
    units: Units,
    beside: str = "",
    *,
    values_compared: bool = False,
) -> Overview:
    """Return the overview of a session.

    Args:
        session: the session shown
        method: the method shown
        units: of the user
        beside: name of a variant open beside it that was not measured, empty for none
        values_compared: whether its values have been compared with its record
    """
    found = findings(session)
    return Overview(
        session.name,
        session_line(session),
        time_sum(status_facts(session, method), units),
        cost_facts(session, method, units),
        found,
        tuple(finding_entry(session, one, one.grounds) for one in found),
        verdict(session),
        _methods(session, units),
        tuple(filter(None, (_memory(session, method, units) for method in session.methods))),
        FactGroup("Files", tuple(_file(file, units) for file in session.files)),
        missing(session),
        next_steps(session, beside=beside, values_compared=values_compared),
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
    return f"{plural(link.matched, 'fact agrees', 'facts agree')}: {link.what}"


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
