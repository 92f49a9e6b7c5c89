"""What we compile runs on the stock runtime and gives what eager gives."""

from __future__ import annotations

import pytest

from compiler import to_edge
from tests.compiler.compare import (
    assert_equal,
    calls_of,
    eager_outputs,
    exported,
    flat,
    module_of,
)
from tests.compiler.programs import SAMPLES
from tests.compiler.stock import Stock


@pytest.mark.interop
@pytest.mark.parametrize("name", SAMPLES)
def test_program_on_the_stock_runtime_equals_eager(name: str, stock: Stock) -> None:
    sample = SAMPLES[name]
    module = module_of(sample)
    wanted = eager_outputs(module, calls_of(sample))
    buffer = to_edge(exported(sample, module)).to_executorch().buffer
    found = stock.run(buffer, [("forward", flat(inputs)) for inputs in calls_of(sample)])
    assert_equal(found, wanted, sample.tolerance)
