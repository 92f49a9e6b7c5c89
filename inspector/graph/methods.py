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


def shared_methods(sessions: Sequence[Session]) -> tuple[str, ...]:
    """Return the methods that compute in all of several sessions, in the order of the first."""
    names = [session_methods(session) for session in sessions]
    return tuple(one for one in (names[0] if names else ()) if all(one in each for each in names))


def method_to_run(sessions: Sequence[Session], chosen: str = "") -> str:
    """Return the method that is run of all sessions, the chosen one if it can be.

    Empty where they share none: times and errors of different methods are not compared.
    """
    shared = shared_methods(sessions)
    return chosen if chosen in shared else default_method(shared) if shared else ""
