"""What we compile runs on the stock runtime and gives what eager gives."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch import nn

from compiler import to_edge
from tests.compiler.compare import (
    assert_equal,
    calls_of,
    eager_outputs,
    exported,
    flat,
    module_of,
)
from tests.compiler.programs import EVERY, SAMPLES
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow

# Not integers: the stock kernel of the remainder is wrong, so that ours is made of others.
EQUAL = ("conv_bn", "layer_norm", "pools", "softmax", "mobile_net", "res_net")
# The stock lowering decomposes while views are still views, so it copies more and batches more.
FEWER = ("attention", "gru", "lstm", "transformer")


@pytest.mark.interop
@pytest.mark.parametrize("name", EVERY)
def test_program_on_the_stock_runtime_equals_eager(name: str, stock: Stock) -> None:
    sample = EVERY[name]
    module = module_of(sample)
    wanted = eager_outputs(module, calls_of(sample))
    buffer = to_edge(exported(sample, module)).to_executorch().buffer
    found = stock.run(buffer, [("forward", flat(inputs)) for inputs in calls_of(sample)])
    assert_equal(found, wanted, sample.tolerance)


@pytest.mark.interop
def test_several_methods_run_beside_constants_on_the_stock_runtime(stock: Stock) -> None:
    shared = module_of(SAMPLES["linear"])
    image, rows = torch.randn(3, 5), torch.randn(2, 5)
    methods = {
        "forward": torch.export.export(shared, (image,)),
        "again": torch.export.export(nn.Sequential(shared, nn.ReLU()), (rows,)),
    }
    constants = {"get_size": 5, "get_names": ["a", "b"], "get_table": torch.arange(3)}
    program = to_edge(methods, constants).to_executorch()
    found = stock.run(
        program.buffer,
        [("forward", (image,)), ("again", (rows,)), *((name, ()) for name in constants)],
    )
    assert program.methods == {"forward", "again"}
    assert program.config_methods == set(constants)
    wanted = [[shared(image)], [shared(rows).relu()], [5], ["a", "b"], [torch.arange(3)]]
    assert_equal(found, wanted, 1e-5)


@pytest.mark.interop
@pytest.mark.parametrize("name", [*EQUAL, *FEWER])
def test_edge_operators_are_those_of_the_stock_lowering_or_fewer(name: str, stock: Stock) -> None:
    sample = EVERY[name]
    program = exported(sample, module_of(sample))
    ours: Counter[str] = Counter(
        node.target.__name__
        for node in to_edge(program).exported_program().graph.nodes
        if hasattr(node.target, "_schema")
    )
    theirs = stock.about("operators", program)
    if name in EQUAL:
        assert ours == theirs
    assert ours.total() <= sum(theirs.values())


@pytest.mark.interop
@pytest.mark.parametrize("name", ["gru", "mobile_net", "res_net", "transformer"])
def test_memory_plan_is_no_larger_than_the_stock_plan(name: str, stock: Stock) -> None:
    sample = EVERY[name]
    program = exported(sample, module_of(sample))
    plan = to_edge(program).to_executorch().memory_plans["forward"]
    assert plan.lower_bound <= plan.nbytes <= stock.about("arena", program)["forward"]
