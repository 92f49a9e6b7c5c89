"""Three to seven sentences about notable facts of a session, each with a target.

A finding states a fact of the files, never a guess. First comes what makes other figures wrong or
uncertain, then what costs time, by what could be saved of a run, then what costs bytes, likewise,
then the rest by importance.
"""

from __future__ import annotations

from inspector.check.session import BELONG, DO_NOT_BELONG, check_session, check_words, own_part
from inspector.files.facts import facts_text, file_facts, kind_text
from inspector.files.session import Session
from inspector.findings.finding import Finding, Tone
from inspector.findings.limits import limit_findings
from inspector.findings.program import delegation_findings, memory_findings, size_findings
from inspector.findings.time import time_findings
from inspector.roofline.method_work import work_note
from inspector.units import format_bytes
from schema.errors import Severity
from schema.objects.identity_cache import identity_cache

__all__ = ["FEWEST", "MOST", "Finding", "Tone", "findings", "rank"]

FEWEST, MOST = 3, 7


@identity_cache
def findings(session: Session) -> tuple[Finding, ...]:
    """Return the findings of a session, most important first, three to seven.

    Whether the files belong together is always among them; files that contradict the program have
    no others.
    """
    always, own = _belonging(session), own_part(session)
    found = [
        *_problems(session),
        *time_findings(own),
        *limit_findings(own),
        *delegation_findings(own),
        *memory_findings(own),
        *size_findings(own),
        *_missing(session),
    ]
    if len(found) + len(always) < FEWEST:
        found += _what_it_is(session)[: FEWEST - len(found) - len(always)]
    found.sort(key=rank)
    return tuple(sorted([*always, *found[: MOST - len(always)]], key=rank))


def rank(finding: Finding) -> tuple[int, float]:
    """Return the place of a finding, the smallest first.

    What is saved counts only where the figures it comes from are not in doubt.
    """
    if finding.doubt:
        return 0, -finding.weight
    if finding.saves_ms:
        return 1, -finding.saves_ms
    return (2, -finding.saves_bytes) if finding.saves_bytes else (3, -finding.weight)


def _belonging(session: Session) -> list[Finding]:
    if len(session.files) < 2:
        return []
    check = check_session(session)
    if check.verdict == DO_NOT_BELONG:
        odd = f"{check.odd_one_out} is the one that differs" if check.odd_one_out else ""
        text = f"The files do not belong together: {check.mismatch}"
        return [Finding(Tone.BAD, text, odd, weight=100, doubt=True)]
    count = len(session.files)
    if check.verdict == BELONG:
        words = "Both files belong" if count == 2 else f"All {count} files belong"
        facts = sum(link.matched for link in check.links)
        return [Finding(Tone.GOOD, f"{words} together", f"{facts:,} facts agree", weight=5)]
    return [Finding(Tone.NEUTRAL, check_words(session).rstrip("."), weight=6)]


def _problems(session: Session) -> list[Finding]:
    issues = (*session.all_issues(), *session.unread())
    errors = [issue for issue in issues if issue.severity is Severity.ERROR]
    warnings = [issue for issue in issues if issue.severity is Severity.WARNING]
    if errors:
        more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
        text = f"{errors[0].message}{more}"
        return [Finding(Tone.BAD, text, errors[0].where, "issues", weight=90, doubt=True)]
    if warnings:
        more = f" and {len(warnings) - 1} more" if len(warnings) > 1 else ""
        text = f"{warnings[0].message}{more}"
        return [Finding(Tone.WARN, text, warnings[0].where, "issues", weight=40, doubt=True)]
    return []


def _missing(session: Session) -> list[Finding]:
    unnamed = ", no names of the logged values" if session.debug_buffer is not None else ""
    no_program = "program (.pte): no memory plan, sizes or instructions"
    requested = (
        (session.program is None, "; ".join(filter(None, (no_program, work_note(session))))),
        (session.record is None, "ETRecord: no source lines, modules or graph names"),
        (not session.dumps, f"ETDump: no times{unnamed}"),
    )
    absent = [words for missing, words in requested if missing]
    return [
        Finding(Tone.NEUTRAL, f"No {words}", weight=1.5 - 0.1 * place)
        for place, words in enumerate(absent)
    ]


def _what_it_is(session: Session) -> list[Finding]:
    found: list[Finding] = []
    for file in session.files:
        if file.artifact is not None:
            facts = facts_text(file_facts(session, file.artifact))
            text = f"{session.name} has {kind_text(file.kind)} of {format_bytes(file.size)}"
            found.append(Finding(Tone.NEUTRAL, text, facts, weight=0.5))
    return found
