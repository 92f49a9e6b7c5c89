"""The standard passes: what each removes or computes, and that results stay the same."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest
import torch
from torch import nn

import compiler
from compiler import ops, to_edge
from compiler.dialect.memory_ops import IN_PLACE_OF
from compiler.passes.standard.reinplace import reinplace_pass
from compiler.passes.table import STANDARD_PASSES, standard_pass
from schema.backends import resolve
from tests.compiler.compare import assert_equal, calls_of, eager_outputs, exported, module_of
from tests.compiler.programs import EVERY, SAMPLES, Apply

pytestmark = pytest.mark.slow
_aten = ops.edge.aten
_q = ops.edge.quantized_decomposed
_SAFE = ("constant_folding", "duplicates", "views", "dead_code", "unused_weights", "quant_fusion")


def _edge(function: Any, *inputs: Any, **options: Any) -> compiler.EdgeProgramManager:
    return to_edge(torch.export.export(Apply(function), inputs, **options))


def _targets(manager: compiler.EdgeProgramManager) -> list[Any]:
    nodes = manager.exported_program().graph.nodes
    return [node.target for node in nodes if node.op == "call_function"]


def test_table_names_one_class_in_one_file_each() -> None:
    places = list(STANDARD_PASSES.values())
    assert len(set(places)) == len(places)
    for one in places:
        assert resolve(one.place).__doc__
    with pytest.raises(KeyError, match="unknown pass 'fold'; available: constant_folding"):
        standard_pass("fold")


@pytest.mark.parametrize("name", SAMPLES)
def test_all_passes_together_keep_results_and_give_a_file(name: str) -> None:
    sample = EVERY[name]
    module = module_of(sample)
    manager = to_edge(exported(sample, module))
    wanted = eager_outputs(module, calls_of(sample))
    changed = manager.transform([standard_pass(one) for one in _SAFE])
    assert len(_targets(changed)) <= len(_targets(manager))
    for node in changed.exported_program().graph.nodes:
        if node.op == "call_function" and hasattr(node.target, "_schema"):
            assert "debug_handle" in node.meta
    assert changed.to_executorch().buffer
    found: list[list[Any]] = []
    lowered: Any = changed.exported_program().module()
    for inputs in calls_of(sample):
        results = lowered(*inputs)
        found.append(list(torch.utils._pytree.tree_leaves(results)))
    assert_equal(found, wanted, 1e-4)


class Folds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("scale", torch.randn(3))
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.count += 1
        return self.linear(x) * (self.scale.sigmoid() + 1), self.scale * 2, self.count * 2


def test_constants_are_folded_but_state_is_not() -> None:
    module = Folds().eval()
    x = torch.randn(2, 4)
    manager = to_edge(torch.export.export(module, (x,)))
    program = manager.transform([compiler.ConstantPropPass()]).exported_program()
    targets = [n.target.__name__ for n in program.graph.nodes if n.op == "call_function"]
    assert targets == [
        "aten.add.Tensor",  # of the counter
        "aten.addmm.default",
        "aten.mul.Tensor",
        "aten.mul.Tensor",
        "aten.copy.default",  # into the counter
        "dim_order_ops._clone_dim_order.default",  # of the constant that is returned
    ]
    assert sorted(program.state_dict) == ["count", "linear.bias"]
    wanted = eager_outputs(module, [(x,)])
    assert_equal([list(program.module()(x))], wanted, 1e-6)
    folded = [n for n in program.graph.nodes if n.name.startswith("_prop_tensor_constant")]
    assert all(node.meta["debug_handle"] for node in folded)
    assert "scale" in manager.exported_program().constants | manager.exported_program().state_dict


def test_random_numbers_and_skipped_operators_are_not_folded() -> None:
    manager = _edge(lambda x: x + torch.rand(3) + torch.arange(3).neg(), torch.randn(3))
    program = manager.exported_program()
    kept = compiler.constant_prop_pass(program, custom_skip_targets={_aten.neg.default})
    names = [n.name for n in kept.graph.nodes if n.op == "call_function"]
    assert any("rand" in name for name in names)
    assert "aten_neg_default" in names
    assert not any("arange" in name for name in names)
    assert compiler.constant_prop_pass(kept, {_aten.neg.default}) is kept


def test_repeated_computing_is_merged_in_graph_and_bodies() -> None:
    def function(x: Any) -> Any:
        def body(y: Any) -> Any:
            return y.sin() * y.sin()

        return torch.cond(x.sum() > 0, body, lambda y: y.neg(), (x,)), x.cos() + x.cos()

    changed = _edge(function, torch.randn(3)).transform([compiler.CSEPass()])
    modules = changed.exported_program().graph_module.modules()
    graphs = [m.graph for m in modules if isinstance(m, torch.fx.GraphModule)]
    for target in (_aten.sin.default, _aten.cos.default):
        assert sum(n.target is target for graph in graphs for n in graph.nodes) == 1


def test_random_and_unknown_operators_are_not_merged() -> None:
    manager = _edge(lambda x: x + torch.rand(3) * torch.rand(3), torch.randn(3))
    assert _targets(manager.transform([compiler.CSEPass()])) == _targets(manager)


def test_numbers_of_another_type_are_not_merged() -> None:
    manager = _edge(
        lambda x: (torch.full((2,), 1) + x, torch.full((2,), 1.0) + x, torch.full((2,), True) | x),
        torch.tensor([1, 2]),
    )
    changed = manager.transform([compiler.CSEPass()])
    assert [str(v) for v in changed.exported_program().module()(torch.tensor([1, 2]))] == [
        str(v) for v in manager.exported_program().module()(torch.tensor([1, 2]))
    ]


@pytest.mark.parametrize(
    ("function", "left"),
    [
        (lambda x: x.view(6).view(3, 2).view(2, 3).relu(), ["relu"]),
        (lambda x: x.t().t().relu(), ["relu"]),
        (lambda x: x.t().t(), ["permute_copy"]),  # a result never is an input
        (lambda x: x.unsqueeze(0).permute(2, 0, 1).permute(1, 2, 0).relu(), ["unsqueeze", "relu"]),
        (lambda x: x.unsqueeze(0).permute(2, 0, 1).permute(2, 0, 1).relu(), 3),
        (lambda x: x.expand(2, 3).relu(), ["relu"]),
        (lambda x: x[:, 0:3].relu() * x[:, 0:2].sum(), 4),
        (lambda x: x.relu().clone().neg(), ["relu", "neg"]),
        (lambda x: x.relu().view(3, 2).neg(), ["relu", "view", "neg"]),
    ],
)
def test_views_that_change_nothing_are_removed(function: Any, left: Any) -> None:
    x = torch.randn(2, 3)
    changed = _edge(function, x).transform([compiler.RemoveViewsPass()])
    targets = [target.__name__ for target in _targets(changed)]
    if isinstance(left, int):
        assert len(targets) == left
    else:
        assert len(targets) == len(left)
        assert all(part in target for part, target in zip(left, targets, strict=True))
    assert changed.exported_program().module()(x).allclose(function(x))


def test_unused_weights_leave_program_and_file() -> None:
    class Unused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Linear(3, 3), nn.Linear(300, 300)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.used(x)

    program = torch.export.export(Unused().eval(), (torch.randn(1, 3),))
    manager = to_edge(program)
    changed = manager.transform([compiler.RemoveUnusedParametersPass()])
    assert sorted(changed.exported_program().state_dict) == ["used.bias", "used.weight"]
    assert len(changed.to_executorch().buffer) < 10_000
    again = compiler.remove_unused_parameters_pass(changed.exported_program())
    assert again is changed.exported_program()


def test_dead_code_goes_where_a_pass_left_it() -> None:
    def leave(graph_module: Any) -> None:
        graph = graph_module.graph
        last = next(iter(reversed(graph.nodes)))
        with graph.inserting_before(last):
            graph.call_function(_aten.neg.default, (last.args[0][0],))

    manager = _edge(torch.relu, torch.randn(2)).transform([leave])
    assert _targets(manager) == [_aten.relu.default, _aten.neg.default]
    assert _targets(manager.transform([compiler.DeadCodePass()])) == [_aten.relu.default]


class Cache(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(4, 3))

    def forward(self, place: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        self.cache.index_put_((place,), row)
        return self.cache.sum(0)


def test_result_takes_the_memory_of_an_input_only_if_nobody_reads_it_later() -> None:
    def marks(program: Any) -> list[bool]:
        made = reinplace_pass(program)
        assert not any(IN_PLACE_OF in node.meta for node in program.graph.nodes)
        found = [n for n in made.graph.nodes if n.target is _aten.index_put.default]
        return [IN_PLACE_OF in node.meta for node in found]

    def put(x: Any) -> Any:
        return x.index_put((torch.tensor([0]),), torch.ones(1))

    def program(function: Any) -> Any:
        return _edge(function, torch.randn(4)).exported_program()

    assert marks(program(lambda x: put(x.neg()))) == [True]
    assert marks(program(put)) == [False]  # the user's input
    assert marks(program(lambda x: (y := x.neg(), put(y) + y)[1])) == [False]
    assert marks(program(lambda x: (y := x.neg(), put(y.view(2, 2).view(4)) + y)[1])) == [False]
    assert marks(program(lambda x: put(put(x.neg())))) == [True, True]
    row = torch.randn(1, 3)
    cached = to_edge(torch.export.export(Cache(), (torch.tensor([1]), row)))
    assert marks(cached.exported_program()) == [True]


def test_specs_say_upper_bounds_types_and_orders() -> None:
    size = {0: torch.export.Dim("n", min=2, max=9)}
    manager = _edge(lambda x: x.relu(), torch.randn(3, 4), dynamic_shapes=((size,),))
    program = manager.transform([compiler.SpecPropPass()]).exported_program()
    (node,) = (n for n in program.graph.nodes if n.target is _aten.relu.default)
    assert node.meta["spec"].shape == [9, 4]
    assert node.meta["spec"].shape_dynamism == 1
    assert next(iter(reversed(program.graph.nodes))).meta["spec"] == (node.meta["spec"],)


def test_out_variants_write_into_allocated_memory() -> None:
    manager = _edge(lambda x, y: (x @ y + y, x.topk(1)[0]), torch.randn(2, 2), torch.randn(2, 2))
    module = manager.exported_program().graph_module
    copied = torch.fx.GraphModule(module, torch.fx.Graph())
    copied.graph.output(copied.graph.graph_copy(module.graph, {}))
    made = compiler.ToOutVarPass()(copied).graph_module
    names = [n.target.__name__ for n in made.graph.nodes if n.op == "call_function"]
    wanted = "alloc mm.out alloc add.out alloc alloc topk.values getitem"
    assert names == wanted.split()
    first = next(n for n in made.graph.nodes if n.op == "call_function")
    assert first.args == (((2, 2), torch.float32),)


def test_missing_out_variants_are_all_named() -> None:
    with torch.library._scoped_library("passes_test", "FRAGMENT") as library:
        library.define("one(Tensor x) -> Tensor")
        library.define("two(Tensor x) -> Tensor")
        for name in ("one", "two"):
            library.impl(name, lambda x: x.clone(), "CompositeExplicitAutograd")
        manager = _edge(
            lambda x: torch.ops.passes_test.two(torch.ops.passes_test.one(x)), torch.randn(2)
        )
        with pytest.raises(compiler.CompileError, match=r"passes_test::one.*passes_test::two"):
            manager.transform([compiler.ToOutVarPass()])


def _quantized(function: Any, *inputs: Any) -> compiler.EdgeProgramManager:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, that its quantization has moved
        importlib.import_module("torch.ao.quantization.fx._decomposed")
    return _edge(function, *inputs)


def _dq(x: Any, scale: float, zero: int, dtype: Any = torch.int8) -> Any:
    low, high = (-128, 127) if dtype == torch.int8 else (0, 255)
    return torch.ops.quantized_decomposed.dequantize_per_tensor(x, scale, zero, low, high, dtype)


def _quantize(x: Any, scale: float, zero: int, dtype: Any = torch.int8) -> Any:
    low, high = (-128, 127) if dtype == torch.int8 else (0, 255)
    return torch.ops.quantized_decomposed.quantize_per_tensor(x, scale, zero, low, high, dtype)


def test_quantized_numbers_are_moved_without_dequantizing() -> None:
    x = torch.randint(-100, 100, (4, 6), dtype=torch.int8)
    manager = _quantized(lambda v: _quantize(_dq(v, 0.1, 3).view(3, 8), 0.1, 3), x)
    assert _targets(manager.transform([compiler.QuantFusionPass()])) == [_aten.view_copy.default]
    other = _quantized(lambda v: _quantize(_dq(v, 0.1, 3).view(3, 8), 0.2, 3), x)
    assert _targets(other.transform([compiler.QuantFusionPass()])) == _targets(other)


def test_each_reader_gets_its_own_dynamic_quantization() -> None:
    def function(x: Any) -> Any:
        scale, zero = torch.ops.quantized_decomposed.choose_qparams(x, -128, 127, 1e-5, torch.int8)
        q = torch.ops.quantized_decomposed
        values = q.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8)
        back = q.dequantize_per_tensor.tensor(values, scale, zero, -128, 127, torch.int8)
        return back.neg(), back.relu(), back.sin()

    _quantized(torch.relu, torch.randn(1))
    program = torch.export.export(Apply(function), (torch.randn(5),))
    module: Any = program.module()
    made = compiler.DuplicateDynamicQuantChainPass()(module)
    names = [str(n.target) for n in made.graph_module.graph.nodes if n.op == "call_function"]
    assert made.modified
    for part in ("choose_qparams", ".quantize_per_tensor", "dequantize_per_tensor"):
        assert sum(part in name for name in names) == 3
    x = torch.randn(5)
    for ours, wanted in zip(made.graph_module(x), function(x), strict=True):
        assert ours.equal(wanted)
