"""Operators of a program that need a library, and the library that registers them if known."""

from __future__ import annotations

from inspector.files.session import Session
from inspector.recipes.compile_job import CompileJob, registering_code

# Namespaces whose operators every runtime provides, then those that ETScope's runtime has all of.
_KNOWN = (
    *("aten", "prims", "executorch_prim", "dim_order_ops", "et_copy", "quantized_decomposed"),
    *("cadence", "cortex_m"),
)
_LLAMA = ("custom_sdpa", "custom_quantized_sdpa", "sdpa_with_kv_cache", "update_cache")
_OWN = frozenset(f"llama::{name}.out" for name in _LLAMA)  # of a namespace it has a part of


def needs_library(name: str) -> bool:
    """Return whether an operator of a program has no kernel here unless a library registers it."""
    return name.partition("::")[0] not in _KNOWN and name not in _OWN


def foreign_operators(session: Session) -> tuple[str, ...]:
    """Return the operators of a program that need a library to be run, sorted."""
    tables = session.bundled_program_table or session.program
    plans = tables.plans if tables is not None else ()
    names = {operator.full_name for plan in plans for operator in plan.operators}
    return tuple(sorted(filter(needs_library, names)))


def needed_libraries(job: CompileJob, session: Session) -> tuple[str, ...]:
    """Return the libraries needed to run a compiled program, empty for most programs."""
    return registering_code(job) if foreign_operators(session) else ()
