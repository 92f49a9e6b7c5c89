"""A file names operators that only compute: none that loads code, or reads or writes files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from runtime.backends.native import bind
from runtime.emulation.calls import graph_of
from runtime.errors import ExecutionError
from runtime.kernels.named_by_files import operator_of_file
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind


@pytest.mark.parametrize(
    "target",
    [
        "aten.save.default",
        "aten.from_file.default",
        "aten._print.default",
        "aten.warn.default",
        "aten.format.default",
        "load_library.__func__.__call__",
        "import_module.__func__.__call__",
        "import_module.__self__.import_module",
        "debugprims.load_tensor.default",
        "profiler._record_function_enter.default",
        "c10d.barrier.default",
        "aten.add.missing",
        "aten.add",
        "aten",
        "",
        "os.path.join",
    ],
)
def test_operators_with_other_effects_are_not_found(target: str) -> None:
    assert operator_of_file(target) is None
    node = GraphNode("bad", NodeKind.CALL, target, (Argument("", ("x",)),), ("y",))
    graph = Graph("hostile", (node,), {"x": GraphValue("x"), "y": GraphValue("y")}, ("x",), ("y",))
    assert bind(node, graph) is None
    with pytest.raises(ExecutionError, match="only computes"):
        graph_of(graph, {})


@pytest.mark.parametrize(
    "target",
    [
        "aten.add.Tensor",
        "aten.einsum.default",
        "aten.div.Tensor_mode",
        "aten.conv2d.padding",
        "aten.gelu.default",
        "aten.sym_size.int",
        "aten.searchsorted.Tensor",
        "quantized_decomposed.quantize_per_tensor.default",
        "prims.convert_element_type.default",
    ],
)
def test_operators_that_compute_are_found(target: str) -> None:
    found = operator_of_file(target)
    assert found is not None
    assert str(found) == target


def test_operators_of_libraries_are_found_whatever_they_take(tmp_path: Path) -> None:
    library = torch.library.Library("named_by_files", "DEF")
    library.define("scaled(Tensor x, str table) -> Tensor")
    library.impl("scaled", lambda x, table: x * len(table), "CPU")
    found = operator_of_file("named_by_files.scaled.default")
    assert found is not None
    assert found(torch.ones(2), "abc").tolist() == [3.0, 3.0]
    library._destroy()
