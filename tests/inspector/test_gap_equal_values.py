"""An index of nearly equal values is right where it is the recorded one, whatever they round to."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from compiler import to_edge
from inspector.files.load import load_session
from inspector.numerics.replay.analysis import Options, analyse_gap
from runtime import Runtime

FILES = "model.pte", "model.etrecord", "run.etdp", "run.debug"


class Choice(torch.nn.Module):
    """A sum, and which of its elements is the largest."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + x
        return torch.argmax(y) if self.kind == "argmax" else torch.topk(y, 2)[1]


@pytest.mark.parametrize("kind", ["argmax", "topk"])
@pytest.mark.parametrize("wrong", [False, True])
def test_recorded_index_of_nearly_equal_values_is_no_divergence(
    tmp_path: Path, wrong: bool, kind: str
) -> None:
    inputs = (torch.tensor([0.25, 1.0, 1.0 - 2**-24]),)
    edge = to_edge(torch.export.export(Choice(kind), inputs, strict=True), generate_etrecord=True)
    made = edge.to_executorch()
    made.save(str(tmp_path / "model.pte"))
    made.get_etrecord().save(str(tmp_path / "model.etrecord"))
    program = Runtime.get().load_program(
        str(tmp_path / "model.pte"), enable_etdump=True, debug_buffer_size=1
    )
    program.load_method("forward").execute([*inputs])
    program.write_etdump_result_to_file(str(tmp_path / "run.etdp"), str(tmp_path / "run.debug"))
    logged = tmp_path / "run.debug"
    data = logged.read_bytes()
    sums = (inputs[0] * 2).numpy().tobytes()
    rounded = torch.tensor([0.5, 2.0, 2.0 + 2**-22]).numpy().tobytes()
    assert data.count(sums) == 1
    data = data.replace(sums, rounded)
    if wrong:
        index = b"\1" + bytes(7)
        assert index in data
        data = data.replace(index, bytes(8))
    logged.write_bytes(data)
    (run,) = analyse_gap(load_session([str(tmp_path / one) for one in FILES]), Options()).runs
    found = run.first_divergence()
    assert (found is not None and kind in found.operator) is wrong
