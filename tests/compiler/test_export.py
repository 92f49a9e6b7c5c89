"""The front end: modules in, exported programs out, errors at the user's own line."""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

import compiler
from compiler import ExportError, TrainingModeWarning, export, ops, to_edge

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)  # torch logs every failed trace
    yield
    logging.disable(logging.NOTSET)


class Nested(nn.Module):
    def forward(self, pair: Any, *, table: Any, scale: float = 2.0) -> Any:
        first, (second, third) = pair
        return {"sum": first + second * scale, "rest": [third + table["bias"], scale]}


class Sum(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


def test_nested_inputs_and_outputs_flatten_and_come_back() -> None:
    x = torch.randn(3)
    kwargs = {"table": {"bias": x}, "scale": 3.0}
    program = export(Nested().eval(), ((x, (x, x)),), kwargs)
    manager = to_edge(program)
    found = manager.exported_program().module()((x, (x, x)), **kwargs)
    assert found["sum"].allclose(x * 4)
    assert found["rest"][1] == 3.0
    assert manager.to_executorch().buffer


def test_shared_dynamic_dimension_guards_inputs() -> None:
    size = Dim("rows", min=1, max=10)
    shapes = {"x": {0: size}, "y": {0: size}}
    program = export(Sum().eval(), (torch.ones(3, 3), torch.ones(3, 3)), dynamic_shapes=shapes)
    module: Any = program.module()
    assert module(torch.ones(2, 3), torch.ones(2, 3)).shape == (2, 3)
    with pytest.raises(AssertionError, match=r"<= 10|Guard failed"):
        module(torch.ones(15, 3), torch.ones(15, 3))
    with pytest.raises(AssertionError, match="Guard failed"):
        module(torch.ones(3, 3), torch.ones(2, 3))
    plan = to_edge(program).to_executorch().memory_plans["forward"]
    small = {"x": {0: Dim("rows", min=1, max=5)}, "y": {0: Dim("rows", min=1, max=5)}}
    fewer = export(Sum().eval(), (torch.ones(3, 3), torch.ones(3, 3)), dynamic_shapes=small)
    assert to_edge(fewer).to_executorch().memory_plans["forward"].nbytes < plan.nbytes


class Branch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda v: v + 1, lambda v: v * 2, (x,))


def test_dynamic_size_stays_after_exports_of_other_sizes() -> None:
    for rows in (2, 4, 3):
        export(Branch().eval(), (torch.ones(rows, 3),))
    for rows in (3, 2, 5):
        shapes = ({0: Dim("rows", min=2, max=9)},)
        program = export(Branch().eval(), (torch.ones(rows, 3),), dynamic_shapes=shapes)
        assert [str(size)[0] for size in last_value(program).shape] == ["s", "3"]
        assert to_edge(program).exported_program().module()(torch.ones(7, 3)).shape == (7, 3)


def last_value(program: Any) -> Any:
    return list(program.graph.nodes)[-1].args[0][0].meta["val"]


def test_dimension_that_is_a_formula_of_another_is_kept() -> None:
    half = Dim("half", min=2, max=8)

    class Halves(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x.reshape(-1, 2).sum(1) + y

    program = export(
        Halves().eval(),
        (torch.ones(8), torch.ones(4)),
        dynamic_shapes=({0: 2 * half}, {0: half}),
    )
    assert program.module()(torch.ones(12), torch.ones(6)).shape == (6,)
    assert to_edge(program).to_executorch().buffer


def test_exported_program_is_exported_again_after_an_edit() -> None:
    first = export(nn.Sequential(nn.Linear(3, 2), nn.ReLU()).eval(), (torch.randn(1, 3),))
    module: Any = first.module()
    for node in module.graph.nodes:
        if node.target is torch.ops.aten.relu.default:
            node.target = torch.ops.aten.sigmoid.default
    module.recompile()
    second = export(module, (torch.randn(1, 3),))
    targets = [n.target for n in to_edge(second).exported_program().graph.nodes]
    assert ops.edge.aten.sigmoid.default in targets
    assert len(list(export(first, (torch.randn(1, 3),)).graph.nodes)) == len(first.graph.nodes)


def test_training_mode_warns_and_names_the_layers() -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5), nn.BatchNorm1d(2))
    with pytest.warns(TrainingModeWarning, match="Sequential is in training mode; it .* 1, 2"):
        export(module, (torch.randn(4, 2),))
    assert module.training
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        export(module.eval(), (torch.randn(4, 2),))
        export(nn.Linear(2, 2).train(), (torch.randn(4, 2),))  # computes the same in both modes


class Branches(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:  # the line
            return x
        return -x


class Opens(nn.Module):
    def forward(self, x: Any) -> Any:
        return open(x)  # the line


class Multiplies(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)  # the line


class Views(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:  # the line
        return x.view(6, 1)


def _line(module: nn.Module) -> str:
    lines, first = inspect.getsourcelines(type(module))
    (found,) = (first + at for at, line in enumerate(lines) if "# the line" in line)
    return f"test_export.py:{found}"


_rows = Dim("rows", min=1, max=10)


@pytest.mark.parametrize(
    ("module", "options", "reason"),
    [
        (Branches(), {}, "GuardOnDataDependentSymNode: Could not guard"),
        (Opens(), {}, "TypeError: expected str"),
        (Opens(), {"strict": True}, "open"),
        (Multiplies(), {}, "must have same reduction dim"),
        (Views(), {"dynamic_shapes": ({0: _rows},)}, "specialized it to be a constant"),
        (Views(), {"dynamic_shapes": {"z": {0: _rows}}}, r"must be the arg names \['x'\]"),
    ],
)
def test_error_has_reason_and_the_line_of_the_user(module: Any, options: Any, reason: str) -> None:
    with pytest.raises(ExportError, match=reason) as caught:
        export(module.eval(), (torch.randn(3, 2),), **options)
    assert caught.value.line.endswith(_line(module))
    assert _line(module) in str(caught.value)
    assert "torch.export" not in str(caught.value).split(" at ")[-1]


def test_input_that_does_not_match_is_said() -> None:
    with pytest.raises(ExportError, match="missing a required argument: 'y'"):
        export(Sum().eval(), (torch.randn(2),))
    with pytest.raises(ExportError, match=r"expected a tuple of example inputs, found Tensor"):
        export(Sum().eval(), torch.randn(2))
    with pytest.raises(ExportError, match=r"expected a torch.nn.Module, found function"):
        export(lambda x: x, (torch.randn(2),))


def test_contexts_around_the_export_are_honoured() -> None:
    class Attends(nn.Module):
        def forward(self, q: torch.Tensor) -> torch.Tensor:
            return nn.functional.scaled_dot_product_attention(q, q, q)

    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel([SDPBackend.MATH]), torch.no_grad():
        program = export(Attends().eval(), (torch.randn(1, 2, 3, 4),))
    graph = to_edge(program).exported_program().graph
    assert not any("scaled_dot" in str(node.target) for node in graph.nodes)


def test_source_line_of_a_layer_is_where_the_user_calls_it() -> None:
    program = export(Multiplies().eval(), (torch.randn(2, 4),))
    (node, *_) = (n for n in program.graph.nodes if n.op == "call_function")
    from compiler.errors import source_line

    assert source_line(node).endswith(_line(Multiplies()))


def test_every_documented_name_is_there() -> None:
    for name in compiler._HOME:
        assert getattr(compiler, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        compiler.nothing  # noqa: B018
    given: dict[str, Any] = {}
    exec("from compiler import *", given)
    assert compiler._HOME.keys() <= given.keys()


def test_documented_edge_graphs_of_convolution_and_linear() -> None:
    class ConvRelu(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 3, 3, padding=1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.conv(x).relu()

    def calls(module: nn.Module, *inputs: Any) -> list[Any]:
        graph = to_edge(export(module.eval(), inputs)).exported_program().graph
        return [node for node in graph.nodes if node.op == "call_function"]

    conv, relu = calls(ConvRelu(), torch.randn(1, 3, 8, 8))
    assert conv.target is ops.edge.aten.convolution.default
    assert [str(a) for a in conv.args[:3]] == ["x", "p_conv_weight", "p_conv_bias"]
    assert conv.args[3:] == ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    assert relu.name == "aten_relu_default"
    linear = calls(nn.Linear(3, 2, bias=False), torch.randn(4, 3))
    assert [n.target for n in linear] == [
        ops.edge.aten.permute_copy.default,
        ops.edge.aten.mm.default,
    ]


@pytest.mark.parametrize("op", [torch.ops.aten.view.default, torch.ops.aten.select.int])
def test_view_cannot_be_preserved_and_a_write_is_warned_of(op: Any) -> None:
    with pytest.raises(ValueError, match=r"Cannot preserve operator .* because it is a view"):
        compiler.EdgeCompileConfig(preserve_ops=[op])
    with pytest.warns(UserWarning, match="Preserving the writing operator aten.add_.Tensor"):
        compiler.EdgeCompileConfig(preserve_ops=[torch.ops.aten.add_.Tensor])


class Coder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.down, self.up = nn.Linear(4, 2), nn.Linear(2, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decode(self.encode(x), scale=1.0)

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(x)

    def decode(self, x: torch.Tensor, *, scale: float) -> torch.Tensor:
        return self.up(x) * scale

    def twice(self, x: torch.Tensor) -> torch.Tensor:
        return self.forward(self(x))


@pytest.mark.parametrize("patched", [False, True])
def test_method_of_a_module_may_call_its_forward(patched: bool) -> None:
    model, x = Coder().eval(), torch.ones(3, 4)
    if patched:  # a forward of this object alone
        model.forward = lambda x: model.encode(x) @ torch.ones(2, 4)  # type: ignore[method-assign]
    expected = model.twice(x)
    program = export(model.twice, (x,))
    torch.testing.assert_close(program.module()(x), expected)
    torch.testing.assert_close(export(model.twice, (x,)).module()(x), expected)
    torch.testing.assert_close(model.twice(x), expected)


def test_method_of_a_module_is_exported_with_the_weights_of_the_module() -> None:
    model = Coder().eval()
    program = export(model.decode, (torch.ones(3, 2),), {"scale": 2.0})
    assert {"up.weight", "up.bias"} <= set(program.state_dict)
    found = program.module()(torch.ones(3, 2), scale=2.0)
    torch.testing.assert_close(found, model.decode(torch.ones(3, 2), scale=2.0))
    methods = {"encode": export(model.encode, (torch.ones(3, 4),)), "decode": program}
    assert sorted(to_edge(methods).to_executorch().methods) == ["decode", "encode"]
    assert model(torch.ones(3, 4)).shape == (3, 4)  # the module keeps its own forward
