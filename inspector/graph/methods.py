"""Methods of a program: those that compute, and the one that is meant where none is named."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.files.session import FORWARD, Session
from schema.program import model as m


def computing_methods(plans: Sequence[m.ExecutionPlan]) -> tuple[str, ...]:
    """Return the names of methods that take inputs, of all if none does.

    The others return constants, such as the sizes that the runner of a language model asks for.
    """
    with_inputs = tuple(plan.name for plan in plans if plan.inputs)
    return with_inputs or tuple(plan.name for plan in plans)


def session_methods(session: Session) -> tuple[str, ...]:
    """Return the names of the methods of a session that compute."""
    program = session.program
    return session.methods if program is None else computing_methods(program.plans)


def default_method(names: Sequence[str]) -> str:
    """Return the method that is meant if none is chosen: ``forward``, else the first."""
    return FORWARD if FORWARD in names or not names else names[0]
