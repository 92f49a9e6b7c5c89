"""Beside the exported program, a node that became several is joined by meaning or not at all."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from inspector.files.load import load_session
from inspector.numerics.replay.analysis import Options, analyse_gap
from inspector.numerics.report import RunGap
from runtime import Runtime
from tests.compiler.programs import Apply
from tests.inspector.gap_families import Case, compiled_net

pytestmark = pytest.mark.slow

X = torch.linspace(-2, 3, 3 * 4 * 6).reshape(3, 4, 6).sin()
Results = tuple[torch.Tensor, ...]

DIVIDED: dict[str, Callable[[torch.Tensor], Results]] = {
    "unbind": lambda x: x.unbind(0),
    "unbind from the end": lambda x: x.unbind(-1),
    "unbind backwards": lambda x: x.unbind(1)[::-1],
    "chunk": lambda x: x.chunk(3, 2),
    "split": lambda x: x.split(3, -1),
    "split sizes": lambda x: x.split([1, 3, 2], 2),
    "tensor_split": lambda x: x.tensor_split(4, 2),
    "hsplit": lambda x: x.hsplit((1, 3)),
    "attention": lambda x: (
        functional.scaled_dot_product_attention(*x.repeat(1, 1, 3).view(3, 4, 3, 6).unbind(2)),
    ),
}
SEVERAL: dict[str, Callable[[torch.Tensor], Results]] = {
    "var_mean": lambda x: torch.var_mean(x, -1),
    "std_mean": lambda x: torch.std_mean(x, -1),
    "aminmax": lambda x: tuple(torch.aminmax(x, dim=1)),
    "max": lambda x: tuple(x.max(1)),
    "topk": lambda x: tuple(x.topk(2)),
    "meshgrid": lambda x: torch.meshgrid(x[0, 0], x[1, 1, :4], indexing="ij"),
    "broadcast_tensors": lambda x: torch.broadcast_tensors(x[:1], x[:, :1]),
    "norms": lambda x: (
        functional.group_norm(x, 2),
        functional.layer_norm(x, (6,)),
        functional.rms_norm(x, (6,)),
    ),
    "sums": lambda x: (x.cumsum(1), x.logsumexp(1)),
}


def _gap(net: Callable[..., Any], folder: Path, backend: str) -> RunGap:
    made = compiled_net(Case(0, "", "float", backend, "torch"), Apply(net), (X,), folder)
    program = Runtime.get().load_program(
        str(made.folder / "model.pte"), enable_etdump=True, debug_buffer_size=1
    )
    program.load_method("forward", engine="torch").execute([X])
    program.write_etdump_result_to_file(str(folder / "run.etdp"), str(folder / "run.debug"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's deserialiser has its own
        options = Options(reference="exported", inputs=(X,))
        (found,) = analyse_gap(load_session([str(folder)]), options).runs
    return found


@pytest.mark.parametrize("backend", ["portable", "xnnpack"])
@pytest.mark.parametrize("name", DIVIDED)
def test_each_piece_of_a_tensor_is_compared_with_its_own(
    name: str, backend: str, tmp_path: Path
) -> None:
    def net(x: torch.Tensor) -> Results:
        pieces = DIVIDED[name](x.exp())
        return tuple(piece.sin() * (at + 1) for at, piece in enumerate(pieces))

    found = _gap(net, tmp_path, backend)
    assert found.first_divergence() is None
    taken = [row for row in found.rows if row.operator.split(".")[0].endswith(("_copy", "sin"))]
    assert any(row.compared for row in taken)


@pytest.mark.parametrize("name", SEVERAL)
def test_nodes_of_several_results_are_never_compared_with_another(
    name: str, tmp_path: Path
) -> None:
    def net(x: torch.Tensor) -> Results:
        return tuple(one * 2 if one.is_floating_point() else one for one in SEVERAL[name](x))

    found = _gap(net, tmp_path, "portable")
    assert found.first_divergence() is None
    assert any(row.compared for row in found.rows)
