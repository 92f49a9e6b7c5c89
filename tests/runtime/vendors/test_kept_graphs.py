"""Payloads that only hardware runs: the graph that the compiler kept in the record runs instead."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from inspector.files.load import load_session
from runtime import ErrorCode, ExecutionError, Program, Runtime
from runtime.delegates.interface import BackendRegistry
from runtime.kernels.registry import KernelRegistry
from runtime.program.loading import decode_program, read
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


def test_a_record_without_that_graph_stands_in_and_says_so() -> None:
    """Its compiler copies nodes into the partitions that read them: handles are in several."""
    copies = PROGRAM.with_name("ethosu_copies_int8.pte")
    record = etrecord.decode(copies.with_suffix(".etrecord").read_bytes())
    inputs, expected = torch.load(copies.with_suffix(".pt"))
    method: Any = Runtime().load_program(copies).load_method("forward", emulate=record)
    assert {one.origin for one in method.measurements} == {ValueOrigin.EMULATED}
    for _ in range(2):
        assert all(map(torch.equal, method.execute(inputs), expected))
    missing = Program(decode_program(*read(copies)), KernelRegistry(), BackendRegistry({}))
    method = missing.load_method("forward", emulate=record)
    assert all(map(torch.equal, method.execute(inputs), expected))


def test_a_record_that_cannot_stand_in_is_told_beside_the_first_cause() -> None:
    copies = PROGRAM.with_name("ethosu_copies_int8.pte")
    words = "no record has the TOSA graph.*emulated by its record: the record does not fit"
    with pytest.raises(ExecutionError, match=words) as refused:
        Runtime().load_program(copies).load_method("forward", emulate=_record())
    assert refused.value.code == ErrorCode.NotSupported
