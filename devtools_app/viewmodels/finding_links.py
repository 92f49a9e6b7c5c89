"""Findings as entries of a list, and their links."""

from __future__ import annotations

from collections import Counter

from devtools_app.state.requests import Request, Select, ShowView
from devtools_app.viewmodels.edit_targets import Offer, OfferGroup
from devtools_app.viewmodels.entries import ListEntry
from inspector.files.session import Session
from inspector.findings.attempts import edit_words, edited
from inspector.findings.session import Finding, Tone
from inspector.graph.snippet import file_name
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.edits import edit_named
from inspector.size.files import session_sizes
from inspector.tables.selection import Selection, SelectionKind
from inspector.tables.size import part_selection

_TONES = {Tone.BAD: "bad", Tone.WARN: "warn", Tone.GOOD: "good", Tone.NEUTRAL: "muted"}


def finding_entry(session: Session, finding: Finding, line: str | None = None) -> ListEntry:
    """Return a finding as it is listed, with file names instead of paths.

    Args:
        session: whose files are named
        finding: the finding
        line: below its sentence, by default with its severity
    """
    below = finding.line if line is None else line
    text, detail = short_paths(session, finding.text), short_paths(session, below)
    return ListEntry(text, detail, _TONES[finding.tone])


def action_entry(finding: Finding) -> ListEntry | None:
    """Return the line that acts on a finding: tries its edits, else shows the view it is about.

    None for a finding without edits that costs nothing, and for one that this page is about.
    """
    if finding.edits:
        return ListEntry(f"Try it: {edit_words(finding.edits)}", "", "accent", depth=1)
    costs = finding.saved or finding.tone in (Tone.BAD, Tone.WARN)
    if not costs or finding.view == "overview":
        return None
    return ListEntry(f"Show in {finding.view.capitalize()}", "", "accent", depth=1)


def finding_offers(finding: Finding, base: CompileJob) -> tuple[OfferGroup, ...]:
    """Return the edits of a finding for a recipe, all as one; empty if it has them already."""
    job = edited(base, finding.edits)
    if job == base:
        return ()
    name, target = finding.edits[0]
    offer = Offer(edit_named(name), target, job, edit_words(finding.edits))
    return (OfferGroup("Try it", (offer,)),)


def short_paths(session: Session, sentence: str) -> str:
    """Return a sentence with the names of files instead of their paths.

    Two files of one name keep a distinguishing folder.
    """
    paths = sorted((file.path for file in session.files), key=len, reverse=True)
    names = Counter(map(file_name, paths))
    for path in paths:
        name = file_name(path)
        if names[name] > 1:
            folder = file_name(path.replace("\\", "/").rpartition("/")[0])
            name = f"{folder}/{name}" if folder else name
        sentence = sentence.replace(path, name)
    return sentence


def finding_request(session: Session, method: str, finding: Finding) -> Request:
    """Return the request of choosing a finding.

    Args:
        session: the session it is about
        method: the method shown, for a finding that names none
        finding: the finding
    """
    selection = _selection(session, finding.method or method, finding)
    return Select(selection, finding.view) if selection else ShowView(finding.view)


def _selection(session: Session, method: str, finding: Finding) -> Selection:
    if finding.event is not None:
        return Selection(SelectionKind.EVENT, method=method, event=finding.event)
    if finding.instruction is not None:
        return Selection(SelectionKind.INSTRUCTION, method=method, instruction=finding.instruction)
    if finding.delegate is not None:
        return Selection(SelectionKind.DELEGATE, method=method, delegate=finding.delegate)
    return _part(session, finding.part) if finding.part else Selection()


def _part(session: Session, name: str) -> Selection:
    for one in session_sizes(session):
        for part in one.size.parts if one.size is not None else ():
            if part.name == name:
                return part_selection(one.file, part)
    return Selection()
