"""Records of flows whose passes replace operators after the graph is recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from inspector.check.pairs import program_and_record
from inspector.check.session import BELONG, DO_NOT_BELONG, check_session
from inspector.files.load import load_session
from runtime.api import Runtime
from schema.program import model as m
from tests.architecture.tree import ROOT

DATA = ROOT / "tests/data/backends"


@pytest.mark.parametrize("flow", ["cortexm_m1_int8", "cadence_m1_int8", "cadence_m1"])
def test_the_record_of_a_flow_belongs_to_its_program(flow: str) -> None:
    opened = load_session([DATA / f"{flow}.pte", DATA / f"{flow}.etrecord"])
    assert opened.program is not None
    assert opened.record is not None
    found = program_and_record(opened.program, opened.record)
    assert found.mismatch == ""
    assert found.matched > 3


@pytest.mark.parametrize(
    ("operator", "belongs"),
    [
        (("dim_order_ops::_to_dim_order_copy", "out"), True),
        (("dim_order_ops::_clone_dim_order", "out"), False),
        (("aten::tanh", "out"), False),
    ],
)
def test_copies_that_a_compiler_adds_contradict_no_stock_record(
    operator: tuple[str, str], belongs: bool
) -> None:
    """Behind a delegate with channels last they have the handle of what is copied."""
    opened = load_session([DATA / f"vulkan_sharing{end}" for end in (".pte", ".etrecord")])
    assert opened.program is not None
    assert opened.record is not None
    (plan,) = opened.program.plans
    copied = replace(plan, operators=(m.Operator(*operator), *plan.operators[1:]))
    table = replace(opened.program.table, execution_plan=(copied,))
    program = replace(opened.program, table=table)
    assert not program_and_record(opened.program, opened.record).mismatch
    assert (not program_and_record(program, opened.record).mismatch) is belongs


@pytest.mark.parametrize(
    ("called", "belongs"), [("aten::linear", True), ("aten::tanh", False), ("aten::bmm", False)]
)
def test_a_layer_that_passes_made_one_operator_is_no_other_program(
    called: str, belongs: bool
) -> None:
    """As Cadence's do; another operator with the handle of the layer is one of another program."""
    folder = ROOT / "tests/data/corpus/v1.5.1/mm_portable"
    opened = load_session([folder / f"model{end}" for end in (".pte", ".etrecord")])
    assert opened.program is not None
    assert opened.record is not None
    (plan,) = opened.program.plans
    assert plan.operators[0].name == "aten::mm"
    copied = replace(plan, operators=(m.Operator(called, "out"), *plan.operators[1:]))
    table = replace(opened.program.table, execution_plan=(copied,))
    program = replace(opened.program, table=table)
    assert (not program_and_record(program, opened.record).mismatch) is belongs


@pytest.mark.parametrize(
    ("ran", "verdict"), [("cadence_m1", BELONG), ("cadence_m1_int8", DO_NOT_BELONG)]
)
def test_trace_of_what_passes_made_belongs_to_the_record_of_its_program(
    ran: str, verdict: str, tmp_path: Path
) -> None:
    """The kernel that runs is `conv2d`, the record has `convolution`."""
    program = Runtime().load_program(DATA / f"{ran}.pte", enable_etdump=True)
    inputs, _ = torch.load(DATA / f"{ran}.pt")
    program.load_method("forward").execute(inputs)
    program.write_etdump_result_to_file(str(tmp_path / "run.etdp"))
    files = [DATA / "cadence_m1.pte", DATA / "cadence_m1.etrecord", tmp_path / "run.etdp"]
    assert check_session(load_session(files)).verdict == verdict
