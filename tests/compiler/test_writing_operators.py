"""Custom operators that write to their arguments give what eager gives, on both runtimes."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import compiler
from compiler import EdgeProgramManager, ExecutorchBackendConfig, to_edge
from compiler.backends.xnnpack.partitioner import XnnpackPartitioner
from compiler.memory.options import MemoryPlanningPass
from compiler.passes.standard.common_subexpressions import CSEPass
from inspector.files.load import load_session
from inspector.graph.delegation import analyse_delegation
from runtime import Runtime
from schema import program as pte
from schema.program import model as m
from tests.compiler.compare import assert_equal, eager_outputs
from tests.compiler.stock import Stock
from tests.compiler.writers import CASES, Attention, Called, X, own, register

pytestmark = pytest.mark.slow


def _exported(module: nn.Module, inputs: tuple[Any, ...], dynamic: Any = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own
        return torch.export.export(module, copy.deepcopy(inputs), dynamic_shapes=dynamic)


def _kernels(buffer: bytes) -> list[str]:
    plan = pte.decode(buffer).table.execution_plan[0]
    calls = [one.instr_args for one in plan.chains[0].instructions]
    found = [plan.operators[c.op_index] for c in calls if isinstance(c, m.KernelCall)]
    return [one.name for one in found]


def _run(buffer: bytes, calls: list[tuple[Any, ...]]) -> list[list[Any]]:
    ours = Runtime()
    register(ours.operator_registry)
    method = ours.load_program(buffer).load_method("forward")
    return [[v.clone() for v in method.execute(list(copy.deepcopy(c)))] for c in calls]


@pytest.mark.parametrize("name", CASES)
def test_program_with_writing_operators_equals_eager(name: str) -> None:
    function, inputs = CASES[name]
    module = Called(function).eval()
    # The first run checks, later ones take the calls that are bound then, or graphs of them.
    calls = [tuple(value * factor - 1 for value in inputs) for factor in range(1, 9)]
    buffer = to_edge(_exported(module, inputs)).to_executorch().buffer
    assert_equal(_run(buffer, calls), eager_outputs(module, calls), 0)


def test_runs_with_calls_that_write_are_planned_as_others_unless_they_write_to_inputs() -> None:
    planned: dict[str, bool] = {}
    outside = ExecutorchBackendConfig(
        memory_planning_pass=MemoryPlanningPass(alloc_graph_input=False)
    )
    for name in ("state_through_several", "given", "state_and_intermediate", "input"):
        function, inputs = CASES[name]
        edge = to_edge(_exported(Called(function).eval(), inputs))
        buffer = edge.to_executorch(outside).buffer
        ours = Runtime()
        register(ours.operator_registry)
        method = ours.load_program(buffer).load_method("forward")
        for _ in range(4):
            found = method.execute(list(copy.deepcopy(inputs)))
        planned[name] = method._runner.plan.fused is not None
        if name in ("given", "input"):  # they have no state
            assert_equal([found], eager_outputs(Called(function).eval(), [inputs]), 0)
    assert planned == {**dict.fromkeys(planned, True), "input": False}


COPIES = {
    "intermediate": 0,
    "intermediate_without_reads": 0,
    "state": 0,
    "state_and_intermediate": 0,
    "input": 0,
    "given": 0,
    "state_is_returned": 2,  # what is handed out is not the state itself
}


@pytest.mark.parametrize("name", COPIES)
def test_values_that_nobody_reads_later_are_written_where_they_are(name: str) -> None:
    function, inputs = CASES[name]
    buffer = to_edge(_exported(Called(function), inputs)).to_executorch().buffer
    copies = [k for k in _kernels(buffer) if k in ("aten::clone", "aten::copy_")]
    assert len(copies) == COPIES[name]


def _twice(state: Any, x: Any) -> Any:
    y, z = x * 2, x * 2
    own.fill(y, 1.0)
    own.bump(z, x)
    return y, z, x * 2


def test_value_that_two_calls_write_is_copied_for_the_first() -> None:
    module = Called(_twice)
    edge = to_edge(_exported(module, (X,))).transform([CSEPass()])
    buffer = edge.to_executorch().buffer
    names = _kernels(buffer)
    assert names == [
        "aten::mul",
        "aten::clone",
        "etscope_writing::fill",
        "etscope_writing::bump",
        "aten::mul",
    ]
    assert_equal(_run(buffer, [(X,)]), eager_outputs(module, [(X,)]), 0)


class _Nothing(compiler.ExportPass):
    """Makes the graph anew, each node as it was."""


@pytest.mark.parametrize("name", ["state_through_several", "in_a_branch"])
def test_passes_leave_calls_that_write_as_they_are(name: str) -> None:
    function, inputs = CASES[name]
    module = Called(function)
    edge = to_edge(_exported(module, inputs))
    again = edge.transform([_Nothing()])
    assert _kernels(again.to_executorch().buffer) == _kernels(edge.to_executorch().buffer)
    assert_equal(_run(again.to_executorch().buffer, [inputs]), eager_outputs(module, [inputs]), 0)


def test_sizes_that_change_are_those_of_each_call() -> None:
    def padded(state: Any, x: Any) -> Any:
        y = x * 2
        own.fill(y[1:], 3.0)
        return own.bump(y, x), y

    rows = torch.export.Dim("rows", min=3, max=9)
    module = Called(padded)
    buffer = to_edge(_exported(module, (X,), (({0: rows},),))).to_executorch().buffer
    calls = [(torch.randn(count, 2),) for count in (3, 9, 4)]
    assert_equal(_run(buffer, calls), eager_outputs(module, calls), 0)


def test_program_that_torch_made_functional_before_is_taken() -> None:
    function, inputs = CASES["state_and_intermediate"]
    module = Called(function)
    program = _exported(module, inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own
        program = program.run_decompositions({})
    assert any("auto_functionalized_v2" in str(node.target) for node in program.graph.nodes)
    buffer = to_edge(program).to_executorch().buffer
    calls = [inputs, inputs]
    assert_equal(_run(buffer, calls), eager_outputs(module, calls), 0)


def _lists(state: Any, x: Any) -> Any:
    y = x * 2
    own.many([y])
    return y


def _aliases(state: Any, x: Any) -> Any:
    y = x * 2
    own.swap(y, y)
    return y


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (_lists, r"etscope_writing::many writes to a list of tensors, x: node.*\.py:"),
        (_aliases, r"etscope_writing::swap writes to one tensor through two of its.*\.py:"),
    ],
)
def test_call_that_has_no_functional_form_is_refused(
    function: Callable[..., Any], said: str
) -> None:
    program = _exported(Called(function), (X,))
    with pytest.raises(compiler.UnsupportedError, match=said):
        to_edge(program)


def test_missing_out_variant_of_a_writing_operator_is_named() -> None:
    def both(state: Any, x: Any) -> Any:
        own.unfinished(state)
        return own.both(state, x * 2)

    edge = to_edge(_exported(Called(both), (X,)))
    with pytest.raises(compiler.MissingOutVariantsError) as found:
        edge.to_executorch()
    assert found.value.operators == ("etscope_writing::unfinished",)


def _with_record() -> tuple[EdgeProgramManager, nn.Module]:
    torch.manual_seed(0)
    module = Attention().eval()
    inputs = (torch.randn(1, 3, 16), torch.tensor(0))
    rows = torch.export.Dim("rows", min=1, max=8)
    program = _exported(module, inputs, ({1: rows}, None))
    return to_edge(program, generate_etrecord=True), module


@pytest.mark.interop
def test_caches_of_the_wheel_on_the_stock_runtime_equal_eager(stock: Stock, tmp_path: Path) -> None:
    edge, module = _with_record()
    program = edge.to_executorch()
    calls = [
        (torch.randn(1, count, 16), torch.tensor(at)) for count, at in ((3, 0), (1, 3), (5, 4))
    ]
    stock.ask("load", module="executorch.extension.llm.custom_ops.custom_ops")
    found = stock.run(program.buffer, [("forward", inputs) for inputs in calls])
    assert_equal(found, eager_outputs(module, calls), 1e-5)
    assert not {"aten::copy_", "aten::clone"} & set(_kernels(program.buffer))
    record, trace = str(tmp_path / "a.etrecord"), str(tmp_path / "a")
    program.get_etrecord().save(record)
    stock.run(program.buffer, [("forward", calls[0])], trace=trace)
    joined = stock.ask("record", etrecord=record, trace=trace)
    assert "error" not in joined, joined["error"]
    calls_of = [row for row in joined["rows"] if "sdpa_with_kv_cache" in row["name"]]
    assert calls_of
    assert all("writers.py" in row["lines"][0] for row in calls_of)


@pytest.mark.interop
def test_record_with_operators_that_return_nothing_is_read_by_the_stock_tool(
    stock: Stock, tmp_path: Path
) -> None:
    function, inputs = CASES["state_through_several"]
    edge = to_edge(_exported(Called(function), inputs), generate_etrecord=True)
    record = str(tmp_path / "a.etrecord")
    edge.to_executorch().get_etrecord().save(record)
    answer = stock.ask("parsed", etrecord=record)
    assert [name for name in answer["targets"] if "auto_functionalized" in name]


@pytest.mark.parametrize("name", ["state_through_several", "view_of_old_value_is_read", "given"])
def test_operators_that_are_put_in_place_do_not_disturb_those_that_write(name: str) -> None:
    function, inputs = CASES[name]
    module = Called(function)
    edge = to_edge(_exported(module, inputs))
    config = compiler.ExecutorchBackendConfig(run_reinplace_pass=True)
    calls = [inputs, inputs]
    assert_equal(_run(edge.to_executorch(config).buffer, calls), eager_outputs(module, calls), 0)


def test_verdicts_and_tables_name_the_operators_that_write(tmp_path: Path) -> None:
    def layered(state: Any, x: Any) -> Any:
        y = x.exp() + 1
        r = own.bump(state, y)
        own.fill(y, 2.0)
        return y * 2 + r

    module = Called(layered)
    program = _exported(module, (X,))
    edge = compiler.to_edge_transform_and_lower(
        program, partitioner=[XnnpackPartitioner()], generate_etrecord=True
    )
    judged = {one.operator: one.outcome.value for one in edge.verdicts["forward"]}
    kept = {name: said for name, said in judged.items() if name.startswith("etscope_writing")}
    assert kept == dict.fromkeys(
        ("etscope_writing.bump.default", "etscope_writing.fill.default"),
        "no_rule_for_operator",
    )
    assert "delegated" in judged.values()
    record = str(tmp_path / "a.etrecord")
    edge.to_executorch().get_etrecord().save(record)
    (table,) = analyse_delegation(load_session([record]))
    counts = {row.op_type: row.non_delegated for row in table.by_operator}
    assert counts["etscope_writing_bump_default"] == counts["etscope_writing_fill_default"] == 1
    assert not [name for name in counts if "auto_functionalized" in name]
    found = _run(edge.to_executorch().buffer, [(X,), (X,)])
    assert_equal(found, eager_outputs(module, [(X,), (X,)]), 1e-5)
