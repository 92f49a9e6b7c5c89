"""How much logged values take, beside what our runtime logs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.files.load import load_session
from inspector.memory.logged import INTERMEDIATE, OUTPUTS, logged_bytes
from inspector.worker.inputs import generated_inputs
from runtime import DebugLevel, EventTracer, Runtime
from tests.inspector.sessions import DATA

PROGRAMS = ("convnet_portable", "convnet_xnnpack", "tinygpt_xnnpack", "mm_portable")


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("level", [OUTPUTS, INTERMEDIATE])
def test_size_is_that_of_what_a_run_logs(name: str, level: str, tmp_path: Path) -> None:
    path = DATA / "corpus/v1.5.1" / name / "model.pte"
    program = load_session([str(path)]).program
    assert program is not None
    tracer = EventTracer(DebugLevel[level.upper()])
    method = Runtime.get().load_program(path, tracer=tracer).load_method("forward")
    with torch.no_grad():
        method.execute(generated_inputs(program.plan("forward"), "ones", 0))
    tracer.write(tmp_path / "run.etdp", tmp_path / "run.debug")
    written = (tmp_path / "run.debug").stat().st_size
    found, whole = logged_bytes(program, "forward", level)
    assert whole
    assert 0 <= found - written < 64  # the last tensor is not padded


def test_unread_payloads_and_loops_bound_from_below() -> None:
    folder = DATA / "corpus/special/control_flow"
    program = load_session([str(folder / "model.pte")]).program
    assert program is not None
    size, whole = logged_bytes(program, program.plans[0].name, INTERMEDIATE)
    assert (size > 0, whole) == (True, False)
