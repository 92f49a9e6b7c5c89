"""Checks whether files belong together: each pair is compared; the first mismatch is reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import PurePath
from typing import cast

from inspector.files.bundled import inner_program
from inspector.files.session import LoadedFile, Session
from inspector.files.trace_roles import logs_values
from inspector.join.facts import JoinEvidence
from schema.bundled import BundledFile
from schema.etdump import ETDump
from schema.etdump.debug_buffer import DebugBuffer
from schema.etrecord import RecordFile
from schema.flat_tensor import FlatTensor
from schema.objects.identity_cache import identity_cache
from schema.program import ProgramFile

BELONG, DO_NOT_BELONG, CANNOT_TELL = "belong", "do_not_belong", "cannot_tell"


@dataclass(frozen=True, slots=True)
class FileLink:
    """The comparison of two files.

    Attributes:
        first: path
        second: path
        verdict: belong, do_not_belong or cannot_tell
        matched: number of facts that agree
        what: description of the compared facts
        mismatch: first contradiction, empty if none
    """

    first: str
    second: str
    verdict: str
    matched: int
    what: str
    mismatch: str


@dataclass(frozen=True, slots=True)
class Check:
    """The verdict on a set of files.

    Attributes:
        verdict: do_not_belong if any pair contradicts, belong if the pairs that could be compared
            connect all files, else cannot_tell
        mismatch: first contradiction, with both files named
        odd_one_out: the file that contradicts most others, empty if none
        links: one per comparable pair of files
    """

    verdict: str
    mismatch: str
    odd_one_out: str
    links: tuple[FileLink, ...]


Comparison = Callable[..., JoinEvidence]
# Comparable facts of two kinds of files, and the function that compares them; imported on demand
# files, so that a program alone does not wait for it.
PAIRS: tuple[tuple[type, type, str], ...] = (
    (ProgramFile, ProgramFile, "pairs:program_and_program"),
    (ProgramFile, RecordFile, "pairs:program_and_record"),
    (ProgramFile, ETDump, "traces:program_and_trace"),
    (ProgramFile, FlatTensor, "pairs:program_and_data"),
    (ProgramFile, BundledFile, "pairs:program_and_bundle"),
    (RecordFile, ETDump, "traces:record_and_trace"),
    (RecordFile, FlatTensor, "pairs:record_and_data"),
    (ETDump, DebugBuffer, "traces:trace_and_buffer"),
    (ETDump, ETDump, "runs:trace_and_trace"),
)


@identity_cache
def check_session(session: Session) -> Check:
    """Compare every pair of files with comparable facts."""
    has_judge = any(map(_judges_traces, session.files))
    links = tuple(
        link
        for index, first in enumerate(session.files)
        for second in session.files[index + 1 :]
        if not (has_judge and _is_trace(first) and _is_trace(second))
        and not _is_foreign_buffer(session, first, second)
        for link in _compare(first, second)
    )
    links = _without_older_records(session, links)
    bad = [link for link in links if link.verdict == DO_NOT_BELONG]
    if bad:
        return Check(DO_NOT_BELONG, _sentence(bad[0]), _odd_one_out(session, bad), links)
    good = [link for link in links if link.verdict == BELONG]
    verdict = BELONG if good and not _not_reached(session, good) else CANNOT_TELL
    return Check(verdict, "", "", links)


def _without_older_records(session: Session, links: tuple[FileLink, ...]) -> tuple[FileLink, ...]:
    """Return the links without contradictions of traces to records that are older than passes.

    Kernels have no namespace in a trace, so that such a record alone cannot tell a run of another
    program from one of those passes; the program can, which both files agree with.
    """
    from inspector.check.pairs import is_older

    places = {id(file.artifact): file.path for file in session.files}
    program, record = (places.get(id(one)) for one in (session.program, session.record))
    theirs = [{one.first, one.second} for one in links if one.verdict == BELONG]
    traces = [file.path for file in session.files if _is_trace(file)]
    known = [{record, trace} for trace in traces if {program, trace} in theirs]
    against = [one for one in links if one.verdict == DO_NOT_BELONG]
    doubted = [one for one in against if {one.first, one.second} in known]
    if not doubted or {program, record} not in theirs:
        return links
    if session.program is None or session.record is None:
        return links
    if not any(is_older(session.record, plan) for plan in session.program.plans):
        return links
    return tuple(
        replace(one, verdict=CANNOT_TELL, mismatch="") if one in doubted else one for one in links
    )


@identity_cache
def own_part(session: Session) -> Session:
    """Return a session without the files that contradict its program; itself if none does."""
    program = next((file for file in session.files if file.artifact is session.program), None)
    if program is None:
        return session
    bad = [one for one in check_session(session).links if one.verdict == DO_NOT_BELONG]
    pairs = [{link.first, link.second} for link in bad]
    foreign = {path for pair in pairs if program.path in pair for path in pair - {program.path}}
    if not foreign:
        return session
    return replace(session, files=tuple(one for one in session.files if one.path not in foreign))


def _is_foreign_buffer(session: Session, first: LoadedFile, second: LoadedFile) -> bool:
    """Return whether two files are a trace and the debug buffer of another one."""
    pair = (first.artifact, second.artifact)
    buffer = next((one for one in pair if isinstance(one, DebugBuffer)), None)
    dump = next((one for one in pair if isinstance(one, ETDump)), None)
    if buffer is None or dump is None:
        return False
    logged = [one for one in session.dumps if logs_values(one)]
    if logged and not logs_values(dump):
        return True
    owned = any(session.buffer_of(one) is buffer for one in logged)
    return owned and session.buffer_of(dump) is not buffer


def _is_trace(file: LoadedFile) -> bool:
    return isinstance(file.artifact, ETDump)


def _judges_traces(file: LoadedFile) -> bool:
    """Return whether a file can check traces one by one, which may run different methods."""
    return isinstance(file.artifact, (ProgramFile, RecordFile)) or _inside(file) is not None


def _compare(first: LoadedFile, second: LoadedFile) -> list[FileLink]:
    for one, other in ((first, second), (second, first)):
        for left, right in ((one.artifact, other.artifact), (_inside(one), other.artifact)):
            comparison = _comparison(left, right)
            if comparison is None:
                continue
            evidence = comparison(left, right)
            return [_link(one, other, evidence)]
    return []


def _inside(file: LoadedFile) -> object | None:
    artifact = file.artifact
    return inner_program(artifact) if isinstance(artifact, BundledFile) else None


def _comparison(left: object, right: object) -> Comparison | None:
    for first, second, place in PAIRS:
        if isinstance(left, first) and isinstance(right, second):
            module, _, name = place.partition(":")
            return cast(Comparison, getattr(import_module(f"inspector.check.{module}"), name))
    return None


def _link(one: LoadedFile, other: LoadedFile, evidence: JoinEvidence) -> FileLink:
    verdict = CANNOT_TELL
    if evidence.mismatch:
        verdict = DO_NOT_BELONG
    elif evidence.matched:
        verdict = BELONG
    return FileLink(
        one.path, other.path, verdict, evidence.matched, evidence.what, evidence.mismatch
    )


def _sentence(link: FileLink) -> str:
    return f"{link.first} and {link.second}: {link.mismatch}"


def _odd_one_out(session: Session, bad: list[FileLink]) -> str:
    """Return the file that contradicts more others than any other file does."""
    counts = Counter(path for link in bad for path in (link.first, link.second))
    ranked = counts.most_common(2)
    if len(session.files) < 3 or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return ""
    return ranked[0][0]


def check_words(session: Session) -> str:
    """Return the verdict on a session as one sentence."""
    found = check_session(session)
    if found.verdict == DO_NOT_BELONG:
        return "The files do not belong together."
    if found.verdict == BELONG:
        return "The files belong together."
    if len(session.files) < 2:
        return "There is one file, so that nothing can contradict it."
    good = [link for link in found.links if link.verdict == BELONG]
    if not good:
        return "Nothing in the files shows whether they belong together."
    apart = [PurePath(path).name for path in _not_reached(session, good)]
    words = f"{', '.join(apart)} {'do' if len(apart) > 1 else 'does'}"
    return f"The others belong together; nothing shows whether {words}."


def _not_reached(session: Session, good: list[FileLink]) -> list[str]:
    """Return the files that no chain of agreeing pairs connects with the first of a pair."""
    reached = {good[0].first} if good else set[str]()
    grown = bool(good)
    while grown:
        grown = False
        for link in good:
            ends = {link.first, link.second}
            if ends & reached and not ends <= reached:
                reached |= ends
                grown = True
    return [file.path for file in session.files if file.path not in reached]
