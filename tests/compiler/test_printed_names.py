"""Operators of edge programs are printed, and answer questions, as in programs of stock."""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import export
from torch.testing import FileCheck

from compiler import ops, to_edge

_NAME = re.compile(r"executorch_exir_dialects_edge__ops_(\w+)\(")
_TARGET = re.compile(r"target=executorch\.exir\.dialects\.edge\._ops\.([\w.]+)\]")


class Net(nn.Module):
    """Core operators, a copy with a dim order, one of several results."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 3, 3), nn.LayerNorm(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(torch.relu(self.conv(x))).to(torch.float64).clone()
        return torch.softmax(y.view(3, -1) * 2, 1)


def _program() -> Any:
    torch.manual_seed(0)
    return export(Net().eval(), (torch.randn(1, 2, 6, 6),), strict=True)


def _code(module: Any) -> str:
    return module.code


def _readable(module: Any) -> str:
    return module.print_readable(print_output=False)


def _graph(module: Any) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        module.print_readable()
    return out.getvalue()


@pytest.mark.interop
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # torch's, of the stock lowering
@pytest.mark.parametrize("show", [_code, _readable, _graph])
def test_printed_names_equal_stocks(show: Callable[[Any], str]) -> None:
    stock: Any = pytest.importorskip("executorch.exir")
    ours = to_edge(_program()).exported_program().graph_module
    theirs = stock.to_edge(_program()).exported_program().graph_module
    found = _NAME.findall(show(ours))
    assert set(found) == set(_NAME.findall(show(theirs)))
    assert len(found) == len([n for n in ours.graph.nodes if hasattr(n.target, "_schema")])
    targets = [set(_TARGET.findall(str(one.graph))) for one in (ours, theirs)]
    assert targets[0] == targets[1] != set()


def test_texts_of_file_check_find_operators_and_their_absence() -> None:
    code = to_edge(_program()).exported_program().graph_module.code
    name = "executorch_exir_dialects_edge__ops_aten_convolution_default"
    FileCheck().check_count(name, 1, exactly=True).run(code)
    with pytest.raises(RuntimeError):
        FileCheck().check_not(name).run(code)


def test_operator_answers_as_the_overload_below() -> None:
    add: Any = ops.edge.aten.add.Tensor
    aten = torch.ops.aten
    assert add._overloadpacket is aten.add
    assert add._overloadname == "Tensor"
    assert add.to_out_variant() is aten.add.out
    assert ops.edge.aten.split_copy.Tensor.to_out_variant() is aten.split_copy.Tensor_out
    assert torch.Tag.core in add.tags
    assert not add.is_view
    assert add.name() == "aten::add.Tensor"
    assert copy.deepcopy(add) is add
    assert pickle.loads(pickle.dumps(add)) is add
    with pytest.raises(AttributeError):
        _ = add.no_such_attribute
    with pytest.raises(RuntimeError, match="aten::_local_scalar_dense"):
        ops.edge.aten._local_scalar_dense.default.to_out_variant()


def test_printed_program_still_runs_and_is_copied() -> None:
    program = to_edge(_program()).exported_program()
    program.graph_module.recompile()
    x = torch.randn(1, 2, 6, 6, generator=torch.Generator().manual_seed(1))
    wanted = _program().module()(x)
    torch.testing.assert_close(program.module()(x), wanted)
    module = copy.deepcopy(program.graph_module)
    assert module.code == program.graph_module.code
