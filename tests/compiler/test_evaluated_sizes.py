"""Specs have the sizes that the chosen pass evaluates; sizes of custom operators keep ranges."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.export import Dim, export

from compiler import (
    ConstraintBasedSymShapeEvalPass,
    HintBasedSymShapeEvalPass,
    SpecPropPass,
    to_edge,
)
from compiler.errors import UnboundedShapeError

_TORCH: Any = torch


class Mixed(torch.nn.Module):
    """Results that grow with either size, a list of two, and one that is fixed."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        halves = torch.split(x, 2, dim=1)
        return [x.t().repeat(2, 1) + 1, halves[0] * 2, halves[1] * 3, y.sum()]


def _specs(passes: list[Any]) -> Any:
    n, m = Dim("n", min=2, max=10), Dim("m", max=12)
    given = (torch.ones(5, 4), torch.ones(3))
    program = export(Mixed(), given, dynamic_shapes=({0: n}, {0: m}))
    made = to_edge(program).transform(passes).exported_program()
    return next(node for node in reversed(made.graph.nodes) if node.op == "output").meta["spec"]


@pytest.mark.parametrize(
    ("chosen", "rows"), [(HintBasedSymShapeEvalPass, 5), (ConstraintBasedSymShapeEvalPass, 10)]
)
def test_pass_writes_sizes_into_specs(chosen: Any, rows: int) -> None:
    specs = _specs([SpecPropPass(), chosen()])
    assert [spec.shape for spec in specs] == [[8, rows], [rows, 2], [rows, 2], []]
    assert [tuple(spec.stride) for spec in specs] == [(rows, 1), (2, 1), (2, 1), ()]
    assert [spec.is_upper_bound_tensor for spec in specs] == [True, True, True, False]


def test_size_without_maximum_is_named() -> None:
    program = export(Mixed(), (torch.ones(5, 4), torch.ones(3)), dynamic_shapes=({0: Dim.AUTO}, {}))
    edge = to_edge(program).transform([SpecPropPass()]).exported_program()
    HintBasedSymShapeEvalPass()(edge.graph_module)
    with pytest.raises(UnboundedShapeError, match="set a max for its Dim"):
        ConstraintBasedSymShapeEvalPass()(edge.graph_module)


@pytest.fixture
def chosen_rows() -> Iterator[Any]:
    library = torch.library.Library("sized_by_data", "DEF")
    library.define("rows(Tensor x) -> Tensor")
    library.define("halves(Tensor x) -> Tensor[]")
    library.impl("rows", lambda x: x[x > 0], "CPU")
    library.impl("halves", lambda x: [x[x > 0], x[x <= 0]], "CPU")

    @torch.library.register_fake("sized_by_data::rows", lib=library)
    def _rows(x: torch.Tensor) -> torch.Tensor:
        return x.new_empty((torch.library.get_ctx().new_dynamic_size(),))

    @torch.library.register_fake("sized_by_data::halves", lib=library)
    def _halves(x: torch.Tensor) -> list[torch.Tensor]:
        return [_rows(x), _rows(x)]

    yield torch.ops.sized_by_data
    library._destroy()


def test_sizes_of_custom_operators_keep_their_symbols_and_ranges(chosen_rows: Any) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
            found = [chosen_rows.rows(x), chosen_rows.rows(y), *chosen_rows.halves(x)]
            for tensor, most in zip(found, (3, 5, 7, 9), strict=True):
                _TORCH._check(tensor.shape[0] <= most)
            return found[0] + 1, found[1] + 1, found[2] + 1, found[3] * 2

    x, y = torch.tensor([1.0, -1.0, 2.0, 3.0]), torch.tensor([-1.0, -1.0, 2.0, -3.0])
    program = export(Model(), (x, y))
    edge = to_edge(program).exported_program()
    shown = [str(node.meta["val"]) for node in edge.graph.nodes if node.op == "output"]
    symbols = re.findall(r"size=\((\w+),\)", shown[0])
    assert symbols == ["u0", "u1", "u2", "u3"]
    module = SpecPropPass()(edge.graph_module).graph_module
    output = next(node for node in reversed(module.graph.nodes) if node.op == "output")
    assert [spec.shape for spec in output.meta["spec"]] == [[3], [5], [7], [9]]
    for result, expected in zip(edge.module()(x, y), program.module()(x, y), strict=True):
        assert torch.equal(result, expected)
