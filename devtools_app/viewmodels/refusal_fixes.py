"""Recipe changes that exclude the nodes the engine refused at compile time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inspector.files.session import Session
from inspector.jobs.guard import repaired
from inspector.join.record_maps import refusals
from inspector.recipes.compile_job import CompileJob
from schema.etrecord.parts.guard import Refusal


@dataclass(frozen=True, slots=True)
class Fix:
    """A change that excludes refused nodes.

    Attributes:
        text: description
        job: with the change
    """

    text: str
    job: CompileJob


def fixes_of(session: Session | None, job: CompileJob) -> tuple[Fix, ...]:
    """Return a change for each refused node, and one for all of them where there are several.

    Args:
        session: its record holds the refusals
        job: the current recipe; nodes that it excludes already are skipped
    """
    found = refusals(session.record) if session is not None and session.record is not None else ()
    open_ones = [one for one in found if repaired(job, [one]) != job]
    fixes = [Fix(_sentence(one), repaired(job, [one])) for one in open_ones]
    if len(fixes) > 1:
        fixes.insert(0, Fix(_all_terms(open_ones), repaired(job, open_ones)))
    return tuple(fixes)


def _sentence(refusal: Refusal) -> str:
    name = refusal.exported or refusal.node
    return f"Keep {name} ({refusal.operator}) off the delegate: {refusal.engine} refuse it"


def _all_terms(found: Sequence[Refusal]) -> str:
    return f"Keep all {len(found)} refused nodes off the delegate, so that the program loads"
