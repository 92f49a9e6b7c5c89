"""What the verifier refuses, each with operator, arguments and the user's line."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import compiler
from compiler import EdgeCompileConfig, SpecViolationError, ops, to_edge
from compiler.dialect.dtype_rules import allowed_types, dtype_rule_of
from tests.compiler.programs import Apply

pytestmark = pytest.mark.slow
_aten = ops.edge.aten
Edit = Callable[[torch.fx.GraphModule, Any], None]


@pytest.fixture(scope="module")
def manager() -> compiler.EdgeProgramManager:
    """x.relu() @ w + 1, with a weight."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.relu() @ self.weight + 1

    return to_edge(torch.export.export(Net().eval(), (torch.randn(2, 3),)))


def _relu(module: torch.fx.GraphModule) -> Any:
    (node,) = (n for n in module.graph.nodes if n.target is _aten.relu.default)
    return node


def _refused(manager: Any, edit: Edit, config: Any = None) -> str:
    def change(graph_module: torch.fx.GraphModule) -> None:
        edit(graph_module, _relu(graph_module))

    with pytest.raises(SpecViolationError) as caught:
        manager.transform([change], config)
    text = str(caught.value)
    assert text.startswith("after the pass change: ")
    return text


def _target(target: Any) -> Edit:
    def edit(module: Any, node: Any) -> None:
        node.target = target

    return edit


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (torch.ops.aten.sigmoid.default, "Operator aten.sigmoid.default is not an Edge operator"),
        (_aten.silu.default, "Operator aten::silu is not in the Core ATen opset"),
        (_aten.relu_.default, "writes in place"),
        (_aten.clone.default, "should not be used in dim_order mode"),
        (_aten._to_copy.default, "should not be used in dim_order mode"),
        (print, "print> is not an operator of edge programs"),
    ],
)
def test_operator_that_does_not_belong_is_refused(manager: Any, target: Any, reason: str) -> None:
    def edit(module: Any, node: Any) -> None:
        value = node.meta["val"]
        node.target = target
        node.meta["val"] = value

    if target is print:
        edit = _replaced_by_print
    text = _refused(manager, edit)
    assert reason in text
    assert "test_verifier.py:" in text
    if target is not print:
        assert "x: float32[2, 3]" in text


def _replaced_by_print(module: Any, node: Any) -> None:
    with module.graph.inserting_after(node):
        new = module.graph.call_function(print, ())
    new.meta = dict(node.meta)


def test_non_core_operator_is_let_through_by_configuration(manager: Any) -> None:
    allowing = EdgeCompileConfig(_core_aten_ops_exception_list=[torch.ops.aten.silu.default])
    changed = manager.transform([lambda m: _target(_aten.silu.default)(m, _relu(m))], allowing)
    assert changed.compile_config is allowing
    text = _refused(manager, _target(_aten.silu.default))
    for remedy in ("_core_aten_ops_exception_list=[torch.ops.aten.silu.default]", "no_grad"):
        assert remedy in text


def test_nothing_is_refused_without_validity_checks(manager: Any) -> None:
    unchecked = EdgeCompileConfig(_check_ir_validity=False)
    changed = manager.transform([lambda m: _target(_aten.silu.default)(m, _relu(m))], unchecked)
    assert any(n.target is _aten.silu.default for n in changed.exported_program().graph.nodes)


def test_dim_order_operator_is_refused_without_dim_order() -> None:
    config = EdgeCompileConfig(_skip_dim_order=True)
    program = torch.export.export(
        Apply(lambda x: x.to(torch.float64).clone().relu()), (torch.ones(2),)
    )
    manager = to_edge(program, compile_config=config)
    targets = [n.target for n in manager.exported_program().graph.nodes if n.op == "call_function"]
    assert targets == [_aten._to_copy.default, _aten.clone.default, _aten.relu.default]
    own = ops.edge.dim_order_ops._clone_dim_order.default
    assert "should not be used in non-dim_order mode" in _refused(manager, _target(own))


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda m, n: n.update_arg(0, _cast(m, n, torch.float64)), "mismatched dtypes"),
        (lambda m, n: _lay_out(m, n, _aten.mm.default), "supports contiguous tensors only"),
        (lambda m, n: _late_placeholder(m, n), "late"),
        (lambda m, n: _method(m, n), "call_method"),
        (lambda m, n: _module(m, n), "call_module"),
        (lambda m, n: _attribute(m, n), "the attribute inner is a Linear; only bodies"),
        (lambda m, n: _backwards(m, n), "before it is computed"),
    ],
)
def test_graph_that_is_not_well_formed_is_refused(manager: Any, edit: Edit, reason: str) -> None:
    def change(graph_module: torch.fx.GraphModule) -> None:
        edit(graph_module, _relu(graph_module))

    with pytest.raises((SpecViolationError, compiler.PassError), match=reason):
        manager.transform([change])


def _cast(module: Any, node: Any, dtype: Any) -> Any:
    """Make the sum behind mix element types: relu's result is of another one."""
    (product,) = (n for n in module.graph.nodes if n.target is _aten.mm.default)
    product.meta["val"] = product.meta["val"].to(dtype)
    return node.args[0]


def _lay_out(module: Any, node: Any, target: Any) -> None:
    node.meta["val"] = torch.empty_strided((2, 3), (1, 2), device="meta")


def _late_placeholder(module: Any, node: Any) -> None:
    with module.graph.inserting_after(node):
        new = module.graph.placeholder("late")
    new.meta = dict(node.meta)


def _method(module: Any, node: Any) -> None:
    with module.graph.inserting_after(node):
        module.graph.call_method("relu", (node,))


def _module(module: Any, node: Any) -> None:
    module.add_module("inner", nn.Linear(3, 3))
    with module.graph.inserting_after(node):
        module.graph.call_module("inner", (node,))


def _attribute(module: Any, node: Any) -> None:
    module.add_module("inner", nn.Linear(3, 3))
    with module.graph.inserting_before(node):
        module.graph.get_attr("inner")


def _backwards(module: Any, node: Any) -> None:
    next(iter(node.users)).append(node)


def test_value_that_is_missing_is_named() -> None:
    from compiler.edge.verifier import check_program

    program = to_edge(torch.export.export(Apply(torch.relu), (torch.ones(2),))).exported_program()
    node = _relu(program.graph_module)
    del node.meta["val"]
    with pytest.raises(SpecViolationError, match=r"aten\.relu.*has no `val`: node aten_relu"):
        check_program(program.graph_module, program.graph_signature, EdgeCompileConfig())


def test_placeholders_and_signature_that_differ_are_named(manager: Any) -> None:
    from compiler.edge.verifier import check_program

    program = manager.exported_program()
    signature = program.graph_signature
    lost = type(signature)(signature.input_specs[1:], signature.output_specs)
    with pytest.raises(SpecViolationError, match=r"no input of the program for .* p_weight"):
        check_program(program.graph_module, lost, EdgeCompileConfig())
    turned = type(signature)(signature.input_specs[::-1], signature.output_specs)
    with pytest.raises(SpecViolationError, match="order of the placeholders differs"):
        check_program(program.graph_module, turned, EdgeCompileConfig())


def test_all_violations_are_told_at_once(manager: Any) -> None:
    def edit(module: Any, node: Any) -> None:
        for one in module.graph.nodes:
            if one.target is _aten.relu.default:
                one.target = _aten.silu.default
            elif one.target is _aten.add.Tensor:
                one.target = torch.ops.aten.add.Tensor

    text = _refused(manager, edit)
    assert "aten::silu" in text
    assert "aten.add.Tensor is not an Edge operator" in text


def test_violation_inside_a_body_is_found() -> None:
    program = torch.export.export(
        Apply(lambda x: torch.cond(x.sum() > 0, lambda y: y.relu(), lambda y: -y, (x,))),
        (torch.ones(2),),
    )

    def change(graph_module: Any) -> None:
        for module in graph_module.modules():
            if isinstance(module, torch.fx.GraphModule):
                for node in module.graph.nodes:
                    if node.target is _aten.relu.default:
                        node.target = _aten.silu.default

    with pytest.raises(SpecViolationError, match="aten::silu is not in the Core"):
        to_edge(program).transform([change])


def test_sigmoid_has_the_documented_element_types() -> None:
    schema = _aten.sigmoid.default._schema
    whole = {torch.int32, torch.bool, torch.uint8}
    assert whole < schema.arguments[0].allowed_types
    assert torch.complex64 not in schema.arguments[0].allowed_types
    assert not whole & schema.returns[0].allowed_types
    rule = dtype_rule_of(torch.ops.aten.sigmoid.default)
    assert rule is not None
    f32, f64, i32 = torch.float32, torch.float64, torch.int32
    accepted = [(i32, f32), (f32, f32), (f64, f64)]
    assert all(rule.accepts({"self": given}, [made]) for given, made in accepted)
    refused = [(i32, i32), (f64, f32), (f32, f64)]
    assert not any(rule.accepts({"self": given}, [made]) for given, made in refused)


def test_operators_without_a_rule_allow_nothing_known() -> None:
    assert allowed_types(torch.ops.aten.native_group_norm.default) == {}
    assert _aten.native_group_norm.default._schema.arguments[0].allowed_types == frozenset()
    assert _aten.add.Tensor._schema.name == "aten::add"
    assert operator.attrgetter("is_mutable")(_aten.add.Tensor._schema) is False
