"""An index of nearly equal values is right where it is the recorded one, whatever they round to."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from compiler import to_edge
from inspector.files.load import load_session
from inspector.numerics.replay.analysis import Options, analyse_gap
from inspector.numerics.report import Row
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


def _run(folder: Path, kind: str, x: torch.Tensor) -> bytes:
    """Compile and run with values; return the debug buffer."""
    edge = to_edge(torch.export.export(Choice(kind), (x,), strict=True), generate_etrecord=True)
    made = edge.to_executorch()
    made.save(str(folder / "model.pte"))
    made.get_etrecord().save(str(folder / "model.etrecord"))
    program = Runtime.get().load_program(
        str(folder / "model.pte"), enable_etdump=True, debug_buffer_size=1
    )
    program.load_method("forward").execute([x])
    program.write_etdump_result_to_file(str(folder / "run.etdp"), str(folder / "run.debug"))
    return (folder / "run.debug").read_bytes()


def _first(folder: Path, data: bytes) -> Row | None:
    (folder / "run.debug").write_bytes(data)
    (run,) = analyse_gap(load_session([str(folder / one) for one in FILES]), Options()).runs
    return run.first_divergence()


@pytest.mark.parametrize("kind", ["argmax", "topk"])
@pytest.mark.parametrize("wrong", [False, True])
def test_recorded_index_of_nearly_equal_values_is_no_divergence(
    tmp_path: Path, wrong: bool, kind: str
) -> None:
    x = torch.tensor([0.25, 1.0, 1.0 - 2**-24])
    data = _run(tmp_path, kind, x)
    sums = (x * 2).numpy().tobytes()
    rounded = torch.tensor([0.5, 2.0, 2.0 + 2**-22]).numpy().tobytes()
    assert data.count(sums) == 1
    data = data.replace(sums, rounded)
    if wrong:
        index = b"\1" + bytes(7)
        assert index in data
        data = data.replace(index, bytes(8))
    found = _first(tmp_path, data)
    assert (found is not None and kind in found.operator) is wrong


@pytest.mark.parametrize(
    ("kind", "recorded", "logged", "right"),
    [
        ("argmax", (1,), (2,), True),
        ("argmax", (1,), (0,), False),
        ("topk", (1, 2), (2, 1), True),
        ("topk", (1, 2), (1, 0), False),
        ("topk", (1, 2), (7, 1), False),  # beyond the elements
    ],
)
def test_index_of_an_element_that_is_as_large_is_no_divergence(
    tmp_path: Path, kind: str, recorded: tuple[int, ...], logged: tuple[int, ...], right: bool
) -> None:
    data = _run(tmp_path, kind, torch.tensor([0.25, 1.0, 1.0]))
    before, after = (torch.tensor(one).numpy().tobytes() for one in (recorded, logged))
    assert before in data
    found = _first(tmp_path, data.replace(before, after))
    assert (found is None) is right
    if found is not None:
        assert kind in found.operator
