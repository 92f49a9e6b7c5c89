"""What our compiler writes, our runtime runs as eager does: both halves of the stack together."""

from __future__ import annotations

import pytest

from compiler import to_edge
from runtime import Runtime
from tests.compiler import control_flow
from tests.compiler.compare import (
    assert_equal,
    calls_of,
    eager_outputs,
    exported,
    flat,
    module_of,
)
from tests.compiler.programs import EVERY
from tests.runtime.test_fused import assert_same_runs

pytestmark = pytest.mark.slow

ALL = {**EVERY, **{f"flow_{name}": sample for name, sample in control_flow.SAMPLES.items()}}
SLICE = (*sorted(ALL)[::4], "lstm", "mobile_net")  # for time; all of them did when this was written


@pytest.mark.parametrize("name", sorted({*SLICE}))
def test_compiled_program_equals_eager(name: str) -> None:
    sample = ALL[name]
    module = module_of(sample)
    wanted = eager_outputs(module, calls_of(sample))
    buffer = to_edge(exported(sample, module)).to_executorch().buffer
    program, other = (Runtime.get().load_program(buffer) for _ in range(2))
    method = program.load_method("forward")
    calls = [flat(inputs) for inputs in calls_of(sample)]
    found = [method.execute(inputs) for inputs in calls]
    assert_equal(found, wanted, sample.tolerance)
    assert_same_runs(other, program, "forward", calls * 3)
