"""Passes and users that change graphs in place: inputs, held programs, results, no values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import ExportedProgram, export
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument

from compiler import EdgeProgramManager, ExportPass, PassManager, PassResult, ops, to_edge
from compiler.passes.base import PassError
from runtime.api import Runtime
from tests.compiler.programs import Apply
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow

aten: Any = ops.edge.aten


class Net(nn.Module):
    """Two inputs and two calls."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(a) * b


def _inputs() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(2, 3), torch.randn(2, 3)


def _edge() -> EdgeProgramManager:
    return to_edge(export(Net(), _inputs(), strict=True))


def _buffer(manager: EdgeProgramManager) -> bytes:
    return bytes(manager.to_executorch().buffer)


def _run(buffer: bytes) -> torch.Tensor:
    return Runtime().load_program(buffer).load_method("forward").execute([*_inputs()])[0]


def _inserted_behind(name: str, *, with_meta: bool) -> Callable[[torch.fx.GraphModule], Any]:
    """Return a pass that negates an input right behind its placeholder."""

    def negate(module: torch.fx.GraphModule) -> Any:
        (node,) = [n for n in module.graph.nodes if n.name == name]
        with module.graph.inserting_after(node):
            new = module.graph.call_function(aten.neg.default, (node,))
        if with_meta:
            new.meta = node.meta.copy()
        node.replace_all_uses_with(new, lambda user: user is not new)
        return PassResult(module, True)

    return negate


@pytest.mark.interop
@pytest.mark.parametrize("with_meta", [True, False])
@pytest.mark.parametrize("name", ["a", "b"])
def test_pass_that_inserts_behind_a_placeholder_is_taken(
    name: str, with_meta: bool, stock: Stock
) -> None:
    manager = _edge().transform([_inserted_behind(name, with_meta=with_meta)])
    kinds = [node.op for node in manager.exported_program().graph.nodes]
    assert kinds[:2] == ["placeholder"] * 2
    a, b = _inputs()
    wanted = torch.relu(-a) * b if name == "a" else torch.relu(a) * -b
    buffer = _buffer(manager)
    torch.testing.assert_close(_run(buffer), wanted)
    torch.testing.assert_close(stock.run(buffer, [("forward", (a, b))])[0][0], wanted)


class Scaling(ExportPass):
    """Multiplies the last product with a weight that it adds to the program it holds."""

    def __init__(self, program: ExportedProgram, kind: InputKind) -> None:
        super().__init__()
        self.exported_program, self.kind = program, kind

    def call(self, graph_module: torch.fx.GraphModule) -> Any:
        program: Any = self.exported_program
        assert graph_module is program.graph_module
        graph = graph_module.graph
        first, last = next(iter(graph.nodes)), graph.output_node().args[0][0]
        held = program.constants if self.kind == InputKind.CONSTANT_TENSOR else program.state_dict
        value = torch.full((3,), 2.5)
        held["scale"] = nn.Parameter(value) if self.kind == InputKind.PARAMETER else value
        with graph.inserting_before(first):
            scale = graph.placeholder("c_scale")
        scale.meta["val"] = first.meta["val"].fake_mode.from_tensor(value)
        with graph.inserting_after(last):
            new = graph.call_function(aten.mul.Tensor, (last, scale))
        last.replace_all_uses_with(new, lambda user: user is not new)
        spec = InputSpec(self.kind, TensorArgument(name="c_scale"), "scale", persistent=True)
        program.graph_signature.input_specs.insert(0, spec)
        program.graph_signature.replace_all_uses(last.name, new.name)
        return PassResult(graph_module, True)


@pytest.mark.parametrize("as_manager", [False, True])
@pytest.mark.parametrize("kind", [InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR])
def test_pass_that_holds_the_program_adds_a_weight_to_it(kind: InputKind, as_manager: bool) -> None:
    manager = _edge()
    given = Scaling(manager.exported_program(), kind)
    made = manager.transform(PassManager([given]) if as_manager else [given])
    a, b = _inputs()
    wanted = torch.relu(a) * b * 2.5
    torch.testing.assert_close(_run(_buffer(made)), wanted)
    # The program that the pass holds was changed by it, as with the stock compiler.
    torch.testing.assert_close(_run(_buffer(manager)), wanted)
    assert made.exported_program().graph is not manager.exported_program().graph


def test_two_passes_that_hold_the_program_see_each_others_changes() -> None:
    manager = _edge()
    seen: list[int] = []

    def counting(module: torch.fx.GraphModule, program: Any = None) -> Any:
        seen.append(len(manager.exported_program().graph_signature.input_specs))
        assert manager.exported_program().graph_module is module
        return PassResult(module, False)

    passes = [counting, Scaling(manager.exported_program(), InputKind.BUFFER), counting]
    manager.transform(passes)
    assert seen == [2, 3]


@pytest.mark.parametrize("fails", [False, True])
def test_pass_that_does_not_hold_the_program_leaves_it_as_it_was(fails: bool) -> None:
    manager = _edge()
    before = str(manager.exported_program().graph), [*manager.exported_program().state_dict]

    def change(module: torch.fx.GraphModule) -> Any:
        _inserted_behind("a", with_meta=True)(module)
        if fails:
            raise ValueError("no")

    if fails:
        with pytest.raises(PassError, match="no"):
            manager.transform([change])
    else:
        manager.transform([change])
    after = str(manager.exported_program().graph), [*manager.exported_program().state_dict]
    assert after == before


def _replaced(module: torch.fx.GraphModule, make: Callable[[Any, Any], Any]) -> None:
    graph = module.graph
    (old,) = [node for node in graph.nodes if node.target is aten.relu.default]
    with graph.inserting_after(old):
        new = make(graph, old.args[0])
    old.replace_all_uses_with(new)
    graph.erase_node(old)
    module.recompile()


def _two(graph: torch.fx.Graph, x: Any) -> Any:
    first = graph.call_function(aten.abs.default, (x,))
    with graph.inserting_after(first):
        return graph.call_function(aten.exp.default, (first,))


_CHANGES: dict[str, tuple[Any, Callable[[torch.Tensor], torch.Tensor]]] = {
    "one call": (lambda g, x: g.call_function(aten.abs.default, (x,)), torch.abs),
    "two calls": (_two, lambda a: a.abs().exp()),
    "another dtype": (
        lambda g, x: g.call_function(aten.gt.Scalar, (x, 0.0)),
        lambda a: a > 0,
    ),
    "another shape": (
        lambda g, x: g.call_function(aten.sum.dim_IntList, (x, [1], True)),
        lambda a: a.sum(1, keepdim=True),
    ),
}


@pytest.mark.interop
@pytest.mark.parametrize("through", ["to_executorch", "transform"])
@pytest.mark.parametrize("name", _CHANGES)
def test_graph_changed_by_hand_without_values_is_compiled(
    name: str, through: str, stock: Stock
) -> None:
    make, function = _CHANGES[name]
    manager = _edge()
    _replaced(manager.exported_program().graph_module, make)
    buffer = _buffer(manager.transform([]) if through == "transform" else manager)
    a, b = _inputs()
    torch.testing.assert_close(_run(buffer), function(a) * b)
    torch.testing.assert_close(stock.run(buffer, [("forward", (a, b))])[0][0], function(a) * b)


def test_call_added_by_hand_that_cannot_take_its_arguments_is_named() -> None:
    manager = _edge()
    _replaced(
        manager.exported_program().graph_module,
        lambda g, x: g.call_function(aten.mm.default, (x, x)),
    )
    with pytest.raises(PassError, match=r"aten\.mm\.default does not accept its arguments"):
        manager.to_executorch()


class MaxByParts(ExportPass):
    """Makes the results of a maximum by two operators and returns them as a tuple or list."""

    def __init__(self, kind: type) -> None:
        super().__init__()
        self.kind = kind

    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        if op is not aten.max.dim:
            return super().call_operator(op, args, kwargs, meta)
        values = super().call_operator(aten.amax.default, (args[0], [args[1]]), {}, meta)
        places = super().call_operator(aten.argmax.default, (args[0], args[1]), {}, meta)
        return self.kind((values, places))


@pytest.mark.parametrize("kind", [tuple, list])
@pytest.mark.parametrize("first", [True, False])
def test_results_of_an_operator_may_be_returned_one_by_one(kind: type, first: bool) -> None:
    def function(x: torch.Tensor) -> Any:
        values, places = torch.max(x, 1)
        return values + 1 if first else (places, values)

    x = torch.arange(12.0).reshape(3, 4).flip(1)
    manager = to_edge(export(Apply(function), (x,))).transform([MaxByParts(kind)])
    targets = {node.target for node in manager.exported_program().graph.nodes}
    assert not {aten.max.dim, operator.getitem} & targets
    wanted = function(x)
    found = manager.to_executorch().exported_program().module()(x)
    assert all(map(torch.equal, [wanted] if first else wanted, [found] if first else found))
