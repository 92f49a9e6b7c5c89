"""Arguments that the stock kernels refuse or die of, and sizes that are known by a formula."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F  # noqa: N812  torch's own habit

from compiler import UnsupportedError, to_edge
from tests.compiler.compare import assert_equal, calls_of, eager_outputs, exported, flat, module_of
from tests.compiler.programs import Sample, of
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow

IMAGE = torch.linspace(-1, 1, 120).reshape(2, 3, 4, 5)
NUMBER, NOTHING = torch.tensor(2.0), torch.zeros(2, 0, 4)
SQUARE = torch.linspace(-1, 1, 96).reshape(2, 3, 4, 4)
ROWS = torch.export.Dim("rows", min=3, max=9)


def _pads(x: torch.Tensor) -> Any:
    return (
        F.pad(x, (-1, 2), value=3.0),
        F.pad(x, (-1, -1, 2, -2)),
        F.pad(x, (0, -2)),
        F.pad(x.int(), (2, -3), value=7),
    )


def _pads_what_was_cut(x: torch.Tensor) -> Any:
    return F.pad(x[1:], (0, 0, -1, 3)), F.pad(x, (0, 0, 2, -1)) * 2


def _without_dimensions(x: torch.Tensor) -> Any:
    whole = x.int()
    return x.cumsum(0), whole.cumsum(0), x.sum(0), x.sum(-1, True), x.logsumexp(0), whole.sum(0)


def _without_elements(x: torch.Tensor) -> Any:
    none = torch.zeros(0, dtype=torch.int64)
    extremes = x.amax(-1), x.amin(0, True), x.int().amax((0, 2))
    return x.log_softmax(1), x.half().log_softmax(-1), x.index_select(1, none), *extremes


def _cut(x: torch.Tensor) -> Any:
    later = x.t()[:, 1:]
    return later.flip(0), later.sum(1), later.reshape(-1), later.cumsum(0), later.softmax(1)


def _powers(x: torch.Tensor) -> Any:
    return x * x.shape[0] ** 2, x.new_zeros(x.shape[0] ** 2), x.shape[0] ** 3


def _dynamic(forward: Any) -> Sample:
    calls = tuple((torch.arange(rows * 4.0).reshape(rows, 4),) for rows in (3, 9, 4))
    shapes = (({0: ROWS},),)
    return of(forward, torch.ones(5, 4), further=calls, dynamic=shapes, tolerance=1e-4)


SAMPLES: dict[str, Sample] = {
    "cut": _dynamic(_cut),
    "exp2": of(lambda x: (x.exp2(), x.int().exp2()), IMAGE * 3),
    "folded": of(lambda x: F.fold(F.unfold(x, 2, stride=2), (4, 4), 2, stride=2), SQUARE),
    "pads": of(_pads, IMAGE),
    "pads_dynamic": _dynamic(_pads_what_was_cut),
    "powers": _dynamic(_powers),
    "without_dimensions": of(_without_dimensions, NUMBER),
    "without_elements": of(_without_elements, NOTHING),
}


@pytest.mark.interop
@pytest.mark.parametrize("name", SAMPLES)
def test_program_on_the_stock_runtime_equals_eager(name: str, stock: Stock) -> None:
    sample = SAMPLES[name]
    module = module_of(sample)
    wanted = eager_outputs(module, calls_of(sample))
    buffer = to_edge(exported(sample, module)).to_executorch().buffer
    found = stock.run(buffer, [("forward", flat(inputs)) for inputs in calls_of(sample)])
    assert_equal(found, wanted, sample.tolerance)


def test_operator_that_would_fix_a_size_is_refused_and_the_program_given_is_as_before() -> None:
    half = torch.export.Dim("half", min=1, max=5)
    module = module_of(of(lambda x: x.split(2)[0]))
    program = torch.export.export(module, (torch.ones(4, 3),), dynamic_shapes=(({0: 2 * half},),))
    before = str(program)
    for _ in range(2):
        with pytest.raises(UnsupportedError, match=r"aten\.split\.Tensor.* would always be 2"):
            to_edge(program)
    assert str(program) == before


@pytest.mark.parametrize("forward", [lambda x: F.pad(x, (1, 2)), lambda x: x.cumsum(0)])
def test_core_operator_with_usual_arguments_stays_whole(forward: Any) -> None:
    sample = of(forward, IMAGE)
    graph = to_edge(exported(sample, module_of(sample))).exported_program().graph
    assert len([node for node in graph.nodes if node.op == "call_function"]) == 1


def test_sizes_are_read_first_so_that_no_input_is_kept_for_them() -> None:
    sample = _dynamic(lambda x: x.relu().exp().reshape(x.shape[0], 2, 2).reshape(-1, 2))
    graph = to_edge(exported(sample, module_of(sample))).exported_program().graph
    calls = [node for node in graph.nodes if node.op == "call_function"]
    plans = to_edge(exported(sample, module_of(sample))).to_executorch().executorch_program
    assert sum(plans.execution_plan[0].non_const_buffer_sizes) == 2 * 9 * 4 * 4  # one in, one out
    reads = [place for place, node in enumerate(calls) if "sym_size" in str(node.target)]
    assert reads == [0]


@pytest.mark.interop
def test_example_cut_out_of_another_tensor_stands_for_a_whole_one(stock: Stock) -> None:
    rows = torch.arange(24.0).reshape(4, 6)
    for example in (rows[::2, 1:4], rows[:2, :1].expand(2, 3)):
        module = module_of(of(lambda x: (x * 2, x.sum(0), x.t(), x.reshape(-1))))
        program = torch.export.export(module, (example,))
        whole = (torch.tensor([[1.0, 5.0, -2.0], [0.5, 7.0, 3.0]]),)
        found = stock.run(to_edge(program).to_executorch().buffer, [("forward", whole)])
        assert_equal(found, eager_outputs(module, [whole]), 1e-5)


def test_writes_that_torch_cannot_take_out_are_one_error() -> None:
    def written(x: torch.Tensor) -> torch.Tensor:
        branch = lambda a: a.clone().add_(torch.tensor([1.0, 2.0]))  # noqa: E731
        return torch.cond(x.sum() > 0, branch, lambda a: a.cos(), (x,))

    program = torch.export.export(module_of(of(written)), (torch.ones(2),))
    with pytest.raises(UnsupportedError, match="cannot functionalize the writes"):
        to_edge(program)
