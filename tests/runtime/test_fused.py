"""Untraced runs give the same results as traced ones, whatever was fused for them."""

from __future__ import annotations

from typing import Any

import pytest

from runtime import DebugLevel, EventTracer, Program
from tests.runtime.samples import PORTABLE, assert_close, calls_of, load

pytestmark = pytest.mark.slow


def assert_same_runs(other: Program, program: Program, name: str, calls: list[list[Any]]) -> None:
    """The same calls in the same order, so that state shows; once with a trace among the others.

    The two programs must not be one: state that methods share would be counted twice.
    """
    traced, fused = other.fresh_method(name), program.fresh_method(name)
    traced.tracer = EventTracer(DebugLevel.INTERMEDIATE)
    for number, inputs in enumerate(calls):
        wanted = traced.execute(inputs)
        fused.tracer = EventTracer() if number == len(calls) - 2 else None
        assert_close(fused.execute(inputs), wanted, 2e-5)


@pytest.mark.parametrize("name", PORTABLE)
def test_sessions_run_fused_as_they_run_traced(name: str) -> None:
    program, other = load(name), load(name)
    calls = calls_of(program, rounds=4)
    for method in sorted(program.method_names):
        own = [inputs for called, inputs in calls if called == method]
        assert_same_runs(other, program, method, own)
