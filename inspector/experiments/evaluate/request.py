"""The request for an evaluation of sessions, with the best reference that is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inspector.files.session import Session
from inspector.graph.methods import default_method, session_methods
from inspector.graph.operator_libraries import needed_libraries
from inspector.jobs.evaluate import EvalJob, EvalReference
from inspector.jobs.executing import RunJob
from inspector.recipes.data_source import absolute
from inspector.recipes.float_program import ProgramSource, float_program, recorded_program
from inspector.recipes.recipe import RecipeError
from inspector.recipes.session_recipe import session_recipe
from inspector.recipes.source import SourceKind

_PROGRAMS = ("pte", "bpte")
REFERENCES = ("auto", "float", "recorded", "first")


class EvalRequestError(ValueError):
    """Sessions that cannot be evaluated as requested; one sentence."""


@dataclass(frozen=True, slots=True)
class EvalRequest:
    """A request as a user makes it.

    Attributes:
        data: source of the samples, see ``DataSource``
        metric: ``FILE.py:NAME`` of a function; empty for none
        samples: most samples; None for all
        reference: one of ``REFERENCES``
        ranges: whether the ranges of quantized values are observed
    """

    data: str
    metric: str = ""
    samples: int | None = None
    reference: str = REFERENCES[0]
    ranges: bool = False


def evaluation_job(
    sessions: Sequence[Session],
    request: EvalRequest,
    how: RunJob | None = None,
    names: Sequence[str] = (),
) -> EvalJob:
    """Return the job that evaluates the programs of sessions.

    Args:
        sessions: the variants
        request: data set, metric and reference
        how: how programs are run, on one thread by default; data files and libraries are used
            besides those of a session
        names: of the variants; those of the sessions by default

    Raises: EvalRequestError if a session has no program, or the reference is not known
    """
    how = how or RunJob("")
    method = how.method or evaluated_method(sessions[0])
    how = replace(how, method=method)
    runs = tuple(variant_job(session, how) for session in sessions)
    return EvalJob(
        distinct(names or [session.name for session in sessions]),
        runs,
        absolute(request.data),
        chosen_reference(sessions, method, request.reference),
        absolute(request.metric) if request.metric else "",
        request.samples,
        request.ranges,
    )


def has_program(session: Session) -> bool:
    """Return whether a session has a program that can be run."""
    return any(one.kind in _PROGRAMS for one in session.files)


def variant_job(session: Session, how: RunJob) -> RunJob:
    """Return how the program of a session is run.

    Args:
        session: with a program
        how: the options; its data files and libraries are added to

    Raises: EvalRequestError without a program
    """
    paths = {
        kind: [str(Path(one.path).absolute()) for one in session.files if one.kind == kind]
        for kind in ("pte", "bpte", "ptd", "etrecord")
    }
    programs = paths["pte"] or paths["bpte"]
    if not programs:
        raise EvalRequestError(f"{session.name} has no program (.pte) to run")
    return replace(
        how,
        program=programs[0],
        record=next(iter(paths["etrecord"]), ""),
        data_files=tuple(dict.fromkeys((*paths["ptd"], *how.data_files))),
        libraries=tuple(dict.fromkeys((*_libraries(session), *how.libraries))),
    )


def _libraries(session: Session) -> tuple[str, ...]:
    try:
        return needed_libraries(session_recipe(session).recipe.job, session)
    except RecipeError:
        return ()


def evaluated_method(session: Session) -> str:
    """Return the method that is run if none is chosen."""
    return default_method(session_methods(session))


def workspace_name(key: str, session: Session) -> str:
    """Return the name of a variant as a workspace and the window show it: ``B model``."""
    return f"{key} {session.name}"


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Return names, numbered where they are equal."""
    return tuple(
        f"{name} {names[: place + 1].count(name)}" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    )


def chosen_reference(sessions: Sequence[Session], method: str, requested: str) -> EvalReference:
    """Return the reference of the outputs.

    Args:
        sessions: the variants
        method: of the programs
        requested: one of ``REFERENCES``

    Raises: EvalRequestError if it is not known
    """
    notes: list[str] = []
    if requested in ("auto", "float"):
        found = [float_program(session, method) for session in sessions]
        known = sorted((one for one in found if isinstance(one, ProgramSource)), key=_runs_code)
        if known:
            return _of_program(known[0], notes)
        notes += [one for one in found if isinstance(one, str)][:1]
        if requested == "float":
            raise EvalRequestError(notes[0])
    recorded = None if requested == "first" else recorded_program(sessions[0], method)
    if recorded is not None:
        return _of_program(recorded, notes)
    if requested == "recorded":
        raise EvalRequestError(f"{sessions[0].name} has no recorded program of {method}")
    if len(sessions) == 1:
        more = notes[0] if notes else "it is the only variant"
        raise EvalRequestError(f"nothing to compare {sessions[0].name} with: {more}")
    return EvalReference(f"the first variant, {sessions[0].name}", None, 0, tuple(notes))


def _runs_code(found: ProgramSource) -> bool:
    """Return whether code of the user has to run: a recorded program is there already."""
    return found.source.kind is SourceKind.PYTHON


def _of_program(found: ProgramSource, notes: Sequence[str]) -> EvalReference:
    return EvalReference(
        found.words, found.source, -1, (*notes, *((found.note,) if found.note else ()))
    )
