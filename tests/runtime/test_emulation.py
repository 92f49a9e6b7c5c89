"""Partitions of backends that are not here, run by the graphs in the program's record."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from runtime import DebugLevel, ErrorCode, EventTracer, ExecutionError, Program, Runtime
from runtime.delegates.interface import BackendRegistry
from runtime.kernels.registry import KernelRegistry
from runtime.program.loading import decode_program, load_data_files, read
from schema import etdump, etrecord
from schema.etrecord import lowered_modules
from tests.runtime.samples import assert_close, folder, inputs_of

pytestmark = pytest.mark.slow

# By how much the real partitions may differ: those round activations to 8 bits on their own.
SESSIONS = {
    "corpus/special/xnnpack_int8_static": 1e-3,
    "corpus/special/xnnpack_two_delegates": 1e-5,
    "corpus/v1.0.1/convnet_xnnpack": 1e-5,
    "corpus/v1.0.1/mm_xnnpack": 1e-5,
    "corpus/v1.5.1/convnet_xnnpack": 1e-5,
    "corpus/v1.5.1/mm_xnnpack": 1e-5,
    "corpus/v1.5.1/tinygpt_xnnpack": 1e-4,
    "extra/inline_delegate": 1e-5,
    "extra/two_methods_xnnpack": 1e-5,
    "extra/xnnpack_8da4w": 2e-2,
    "extra/xnnpack_dynamic_quantised": 2e-2,
    "extra/xnnpack_split": 1e-5,
}


def without_backends(name: str, tracer: EventTracer | None = None) -> Program:
    file = decode_program(*read(folder(name) / "model.pte"))
    data = load_data_files(sorted(folder(name).glob("*.ptd")))
    return Program(file, KernelRegistry(), BackendRegistry({}), data_files=data, tracer=tracer)


def record_of(name: str) -> etrecord.RecordFile:
    return etrecord.decode((folder(name) / "model.etrecord").read_bytes())


@pytest.mark.parametrize("name", SESSIONS)
def test_partitions_emulated_by_their_record_equal_the_backend(name: str) -> None:
    program = without_backends(name)
    known = Runtime.get().load_program(
        folder(name) / "model.pte", data_path=sorted(folder(name).glob("*.ptd"))
    )
    for method_name in sorted(program.method_names):
        method = program.load_method(method_name, emulate=record_of(name))
        inputs = inputs_of(method.metadata)
        wanted = known.load_method(method_name, engine="torch").execute(inputs)
        for _ in range(3):
            assert_close(method.execute(inputs), wanted, SESSIONS[name])
        assert {entry.engine for entry in method.measurements} == {"emulated"}


def test_trace_of_emulated_partition_names_its_nodes(tmp_path: Path) -> None:
    tracer = EventTracer(DebugLevel.INTERMEDIATE)
    name = "corpus/special/xnnpack_two_delegates"
    method = without_backends(name, tracer).load_method("forward", emulate=record_of(name))
    method.execute(inputs_of(method.metadata))
    tracer.write(tmp_path / "run.etdp")
    run = etdump.decode((tmp_path / "run.etdp").read_bytes()).run_data[-1]
    inner = [e.delegate_id_str for e in run.events if isinstance(e, etdump.ProfileEvent)]
    graph = record_of(name).edge_graph("forward")
    assert graph is not None
    own = [node.name for part in lowered_modules(graph).values() for node in part.original.nodes]
    assert [each for each in inner if each] == [each for each in own if each in inner]
    assert len([each for each in inner if each]) == 5


@pytest.mark.parametrize(
    ("name", "record", "words"),
    [
        ("corpus/v1.5.1/mm_xnnpack", "", "load with the ETRecord of this program"),
        ("corpus/v1.5.1/mm_xnnpack", "corpus/v1.5.1/mm_portable", "does not fit the program"),
        ("corpus/v1.0.1/tinygpt_xnnpack", "corpus/v1.0.1/tinygpt_xnnpack", "not distinguishable"),
        ("extra/two_methods_xnnpack", "corpus/v1.5.1/mm_xnnpack", "no edge graph"),
    ],
)
def test_emulation_that_is_not_certain_is_refused(name: str, record: str, words: str) -> None:
    program = without_backends(name)
    with pytest.raises(ExecutionError, match=words) as raised:
        program.load_method(
            min(program.method_names), emulate=record_of(record) if record else None
        )
    assert raised.value.code in (ErrorCode.NotFound, ErrorCode.NotSupported)


def test_emulated_state_of_torch_is_left_alone() -> None:
    name = "corpus/v1.5.1/mm_xnnpack"
    method = without_backends(name).load_method("forward", emulate=record_of(name))
    inputs = inputs_of(method.metadata)
    before = [value.clone() for value in inputs]
    method.execute(inputs)
    assert all(map(torch.equal, inputs, before))
