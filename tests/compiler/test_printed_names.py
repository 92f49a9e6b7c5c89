"""Operators of edge programs are printed, and answer questions, as in programs of stock."""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
import json
import pickle
import re
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import export
from torch.testing import FileCheck

from compiler import ops, to_edge
from tests.tools.forked import run_stock

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


SHOWN = {"code": _code, "readable": _readable, "graph": _graph}


def _compared() -> dict[str, Any]:
    """Return what ours and stock's print; the package is imported here, in a process of its own."""
    stock: Any = importlib.import_module("executorch.exir")
    ours = to_edge(_program()).exported_program().graph_module
    theirs = stock.to_edge(_program()).exported_program().graph_module
    shown = {
        name: [sorted(_NAME.findall(show(one))) for one in (ours, theirs)]
        for name, show in SHOWN.items()
    }
    targets = [sorted(set(_TARGET.findall(str(one.graph)))) for one in (ours, theirs)]
    called = len([node for node in ours.graph.nodes if hasattr(node.target, "_schema")])
    return {"shown": shown, "targets": targets, "called": called}


@pytest.mark.interop
def test_printed_names_equal_stocks() -> None:
    line = "import json; from tests.compiler import test_printed_names as t"
    done = run_stock(["-c", f"{line}; print(json.dumps(t._compared()))"])
    found = json.loads(done.stdout.splitlines()[-1])
    for ours, theirs in found["shown"].values():
        assert set(ours) == set(theirs)
        assert len(ours) == found["called"]
    assert found["targets"][0] == found["targets"][1] != []


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
