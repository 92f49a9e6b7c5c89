"""Payloads that only hardware runs: the graph that the compiler kept in the record runs instead."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from inspector.files.load import load_session
from runtime import ErrorCode, ExecutionError, Runtime
from schema import etrecord
from schema.origins import ValueOrigin
from tests.architecture.tree import ROOT

PROGRAM = ROOT / "tests/data/backends/ethosu_m1_int8.pte"


def _record() -> etrecord.RecordFile:
    return etrecord.decode(PROGRAM.with_suffix(".etrecord").read_bytes())


def test_a_command_stream_runs_as_the_graph_in_its_record() -> None:
    inputs, expected = torch.load(PROGRAM.with_suffix(".pt"))
    program = Runtime().load_program(PROGRAM)
    method: Any = program.load_method("forward", emulate=_record())
    assert all(map(torch.equal, method.execute(inputs), expected))
    assert {one.origin for one in method.measurements} == {ValueOrigin.INTERPRETED}


def test_a_command_stream_runs_node_by_node() -> None:
    inputs, _ = torch.load(PROGRAM.with_suffix(".pt"))
    method: Any = Runtime().load_program(PROGRAM).load_method("forward", emulate=_record())
    method.set_inputs(inputs)
    method.step()  # quantizes the input
    steps = method.step_into()
    assert [node.kind for node in steps.nodes if node.outputs].count("CONV2D") == 2
    steps.run_to(len(steps.nodes))
    steps.finish()


def test_without_its_record_it_is_refused_with_the_reason() -> None:
    with pytest.raises(ExecutionError, match="no record has the TOSA graph") as refused:
        Runtime().load_program(PROGRAM).load_method("forward")
    assert refused.value.code == ErrorCode.NotSupported
    assert "etscope compile SOURCE --partitioner ethos-u" in refused.value.remedy
    assert "--guard" not in str(refused.value)


def test_the_record_has_the_files_of_the_vendors_tools() -> None:
    opened = load_session([PROGRAM, PROGRAM.with_suffix(".etrecord")])
    assert opened.program is not None
    assert opened.record is not None
    (delegate,) = opened.program.plans[0].delegates
    kept = opened.record.kept(opened.program.delegate_data(delegate))
    assert sorted(name.rpartition(".")[2] for name in kept) == ["csv", "csv", "tosa", "xml"]
    other = memoryview(b"another payload")
    assert opened.record.kept(other) == {}
