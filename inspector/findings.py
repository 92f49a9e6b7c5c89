"""Three to seven sentences about a session: what stands out, each leading somewhere.

A finding states a fact of the files, never a guess. They are ranked by how much they matter.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum

from inspector.check import BELONG, DO_NOT_BELONG, check_session
from inspector.delegation import MethodDelegation, analyse_delegation
from inspector.memory import analyse_memory, instruction_label
from inspector.profile import Profile, analyse_profile
from inspector.profile_rows import ProfileRow
from inspector.session import Session
from inspector.size import Part
from inspector.size_files import session_sizes
from schema.errors import Severity
from schema.identity_cache import identity_cache
from schema.program import instructions

MOST = 7


class Tone(str, Enum):
    """How a finding should be read."""

    BAD = "bad"
    WARN = "warn"
    GOOD = "good"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence.

    Attributes:
        tone: how to read it
        text: the sentence
        detail: a second, shorter line; empty for none
        view: view that shows it: overview, graph, operators, timeline, memory, size, partitions,
            issues
        method: method it is about, empty for the whole session
        event: profile row to select, None for none
        instruction: instruction to select, None for none
        delegate: delegate to select, None for none
        part: name of a file part to select, empty for none
        weight: larger is more important
    """

    tone: Tone
    text: str
    detail: str = ""
    view: str = "overview"
    method: str = ""
    event: int | None = None
    instruction: int | None = None
    delegate: int | None = None
    part: str = ""
    weight: float = 0.0


@identity_cache
def findings(session: Session) -> tuple[Finding, ...]:
    """Return the findings of a session, most important first, seven at most."""
    found = [
        *_belonging(session),
        *_problems(session),
        *_time(session),
        *_delegation(session),
        *_memory(session),
        *_size(session),
        *_missing(session),
    ]
    found.sort(key=lambda finding: -finding.weight)
    return tuple(found[:MOST])


def _belonging(session: Session) -> list[Finding]:
    if len(session.files) < 2:
        return []
    check = check_session(session)
    if check.verdict == DO_NOT_BELONG:
        odd = f"{check.odd_one_out} is the odd one out" if check.odd_one_out else ""
        return [
            Finding(
                Tone.BAD, f"The files do not belong together: {check.mismatch}", odd, weight=100
            )
        ]
    count = len(session.files)
    if check.verdict == BELONG:
        words = "Both files belong" if count == 2 else f"All {count} files belong"
        return [Finding(Tone.GOOD, f"{words} together", weight=5)]
    return [
        Finding(Tone.NEUTRAL, "Nothing in the files tells whether all belong together", weight=6)
    ]


def _problems(session: Session) -> list[Finding]:
    issues = session.all_issues()
    errors = [issue for issue in issues if issue.severity is Severity.ERROR]
    warnings = [issue for issue in issues if issue.severity is Severity.WARNING]
    if errors:
        more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
        text = f"{errors[0].message}{more}"
        return [Finding(Tone.BAD, text, errors[0].where, "issues", weight=90)]
    if warnings:
        more = f" and {len(warnings) - 1} more" if len(warnings) > 1 else ""
        text = f"{warnings[0].message}{more}"
        return [Finding(Tone.WARN, text, warnings[0].where, "issues", weight=40)]
    return []


def _time(session: Session) -> list[Finding]:
    if not session.dumps:
        return []
    profile = analyse_profile(session)
    if len(profile.rows) == 0:
        text = "The trace holds no events: the runtime was built or run without tracing"
        return [Finding(Tone.WARN, text, view="timeline", weight=60)]
    if not profile.unit_is_time:
        text = "The trace counts cycles; shares are of cycles and no time is shown"
        return [Finding(Tone.NEUTRAL, text, view="operators", weight=20)]
    found = [*_slowest(profile, session), *_unattributed(profile)]
    if profile.unit_assumed and profile.methods:
        text = f"Ticks are taken for {profile.unit}; the file does not say its unit"
        found.append(Finding(Tone.NEUTRAL, text, view="operators", weight=2))
    return found


def _slowest(profile: Profile, session: Session) -> list[Finding]:
    outer = [
        (number, row)
        for number, row in enumerate(profile.rows)
        if row.event_name == "OPERATOR_CALL" and row.share is not None
    ]
    if not outer:
        return []
    outer.sort(key=lambda pair: -(pair[1].share or 0.0))
    has_delegates = any(row.event_name == "DELEGATE_CALL" for row in profile.rows)
    top = outer[:3]
    share = sum(row.share or 0.0 for _, row in top)
    names = ", ".join(dict.fromkeys(_operator(row, session) for _, row in top))
    what = "operators that are not delegated" if has_delegates else "operators"
    plural = what if len(top) > 1 else what.replace("operators", "operator").replace("are", "is")
    tone = (
        Tone.BAD if has_delegates and share > 0.25 else Tone.WARN if share > 0.25 else Tone.NEUTRAL
    )
    text = f"{share * 100:.0f} % of the time is in {len(top)} {plural}"
    return [Finding(tone, text, names, "operators", event=top[0][0], weight=30 + 40 * share)]


def _operator(row: ProfileRow, session: Session) -> str:
    if row.op_types:
        return row.op_types[-1].removesuffix(".default").split(".", 1)[-1]
    number = row.instruction_id
    for plan in session.program.plans if session.program is not None else ():
        steps = instructions(plan)
        if number is not None and number < len(steps):
            return instruction_label(plan, steps[number][2].instr_args).split("::")[-1]
    for other in analyse_profile(session).rows:
        if other.instruction_id == number and other.event_name.startswith("native_call_"):
            return other.event_name.removeprefix("native_call_")
    return f"instruction {number}"


def _unattributed(profile: Profile) -> list[Finding]:
    found: list[Finding] = []
    for time in profile.methods:
        share = time.unattributed_ms / time.method_ms if time.method_ms else 0.0
        if share > 0.1:
            text = f"{share * 100:.0f} % of {time.method or 'the run'} is in no instruction"
            found.append(
                Finding(Tone.WARN, text, "unattributed time", "timeline", weight=20 + share)
            )
    return found


def _delegation(session: Session) -> list[Finding]:
    found: list[Finding] = []
    for entry in analyse_delegation(session):
        if entry.num_delegated_subgraphs:
            found.append(_partly(entry))
    return found


def _partly(entry: MethodDelegation) -> Finding:
    computing = entry.compute_delegated + entry.compute_non_delegated
    share = entry.compute_delegated / computing if computing else 0.0
    backends = Counter(one.backend_id for one in entry.delegates)
    names = ", ".join(
        f"{name} ×{count}" if count > 1 else name for name, count in backends.most_common()
    )
    plural = "delegates" if entry.num_delegated_subgraphs != 1 else "delegate"
    text = (
        f"{entry.compute_delegated} of {computing} computing nodes are in"
        f" {entry.num_delegated_subgraphs} {plural}"
    )
    tone = Tone.GOOD if share >= 0.95 else Tone.WARN
    return Finding(tone, text, names, "partitions", entry.method, weight=25 + 20 * (1 - share))


def _memory(session: Session) -> list[Finding]:
    program = session.program
    if program is None:
        return []
    found: list[Finding] = []
    for plan in program.plans:
        arenas = [arena for arena in analyse_memory(program, plan.name).arenas if arena.peak_bytes]
        if not arenas:
            continue
        arena = max(arenas, key=lambda one: one.peak_bytes)
        culprits = arena.at_peak()[:2]
        names = " and ".join(value.operator or value.role for value in culprits)
        waste = arena.planned_bytes - arena.lower_bound_bytes
        tone = Tone.WARN if waste > 0.2 * arena.planned_bytes else Tone.NEUTRAL
        text = f"Peak {nbytes_text(arena.peak_bytes)} at instruction {arena.peak_instruction}"
        found.append(
            Finding(
                tone,
                f"{text}, {nbytes_text(arena.planned_bytes)} planned",
                names,
                "memory",
                plan.name,
                instruction=arena.peak_instruction,
                weight=15,
            )
        )
    return found[:2]


def _size(session: Session) -> list[Finding]:
    parts: list[Part] = []
    total = 0
    for one in session_sizes(session):
        if one.file.kind in ("pte", "ptd") and one.size is not None:
            parts += one.size.parts
            total += one.file.size
    if not parts or total < 4096:
        return []
    largest = max(parts, key=lambda part: part.nbytes)
    share = largest.nbytes / total
    if share < 0.05:
        return []
    text = f"{share * 100:.0f} % of the {nbytes_text(total)} is one part: {_short(largest.name)}"
    return [Finding(Tone.NEUTRAL, text, largest.kind, "size", part=largest.name, weight=10 + share)]


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:18]}…{name[-18:]}"


def _missing(session: Session) -> list[Finding]:
    wanted = (
        (session.program is None, "program (.pte): no memory plan, sizes or instructions"),
        (session.record is None, "ETRecord: no source lines, modules or graph names"),
        (not session.dumps, "ETDump: no times"),
    )
    absent = [words for missing, words in wanted if missing]
    if not absent:
        return []
    more = "; ".join(f"no {words}" for words in absent[1:])
    return [Finding(Tone.NEUTRAL, f"There is no {absent[0]}", more, weight=1)]


def nbytes_text(nbytes: int) -> str:
    """Return a size with its unit, four digits at most."""
    value = float(nbytes)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} B" if unit == "B" else f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} GiB"
