"""Which of several methods is shown first: one that ran, one that computes, ``forward``."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from compiler import to_edge_transform_and_lower
from inspector.files.load import load_session
from inspector.profile.methods import first_method
from runtime import EventTracer, Runtime

pytestmark = pytest.mark.slow
INPUTS = (torch.ones(2, 4),)


class _Layers(torch.nn.Module):
    def __init__(self, count: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(count)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


@pytest.mark.parametrize(
    ("methods", "runs", "first"),
    [
        (("decode", "forward"), (), "forward"),
        (("decode", "forward"), ("decode",), "decode"),
        (("decode", "forward"), ("decode", "forward"), "forward"),
        (("decode", "prefill"), ("prefill",), "prefill"),
        (("decode", "prefill"), (), "decode"),
    ],
)
def test_the_method_that_ran_is_shown_first(
    tmp_path: Path, methods: tuple[str, ...], runs: tuple[str, ...], first: str
) -> None:
    graphs = {
        name: torch.export.export(_Layers(count).eval(), INPUTS)
        for count, name in enumerate(methods, 1)
    }
    constants = {"a_size": 3, "get_bos_id": 1}  # methods, too, before all others by name
    made = to_edge_transform_and_lower(graphs, constant_methods=constants).to_executorch()
    (tmp_path / "model.pte").write_bytes(bytes(made.buffer))
    tracer = EventTracer()
    program = Runtime.get().load_program(tmp_path / "model.pte", tracer=tracer)
    for name in runs:
        program.load_method(name).execute(INPUTS)
    if runs:
        tracer.write(tmp_path / "run.etdp")
    session = load_session([str(tmp_path)], strict=True)
    assert {*methods, *constants} == {*session.methods}
    assert first_method(session) == first
