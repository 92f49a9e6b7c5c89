"""Operators of a program that need a library, and the library that registers them if known."""

from __future__ import annotations

from inspector.files.session import Session
from inspector.recipes.compile_job import CompileJob, registering_code

# Namespaces whose operators every runtime provides.
_KNOWN = ("aten", "prims", "executorch_prim", "dim_order_ops", "quantized_decomposed")


def foreign_operators(session: Session) -> tuple[str, ...]:
    """Return the operators of a program that are neither torch's nor ExecuTorch's, sorted."""
    tables = session.bundled_program_table or session.program
    plans = tables.plans if tables is not None else ()
    names = {operator.full_name for plan in plans for operator in plan.operators}
    return tuple(sorted(name for name in names if name.partition("::")[0] not in _KNOWN))


def needed_libraries(job: CompileJob, session: Session) -> tuple[str, ...]:
    """Return the libraries needed to run a compiled program, empty for most programs."""
    return registering_code(job) if foreign_operators(session) else ()
