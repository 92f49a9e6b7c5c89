"""Near twins: one architecture with other weights or widths, weights in several files."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inspector.check.session import BELONG, DO_NOT_BELONG, check_session
from inspector.files.payloads import delegate_payload
from inspector.files.session import LoadedFile, Session
from inspector.join.kernels import foreign_kernels
from inspector.numerics.tensors import stored_tensors
from schema.etrecord import RecordFile
from schema.flat_tensor import FlatTensor
from schema.program import ProgramFile, decode
from schema.program import model as m
from tests.inspector.sessions import DATA, folders, label, session

SPLIT = DATA / "extra/external_split"
TWINS = [
    DATA / "extra/deep_mlp",
    DATA / "extra/kv_cache",
    DATA / "corpus/v1.5.1/convnet_portable",
    DATA / "corpus/v1.5.1/convnet_xnnpack",
    DATA / "extra/xnnpack_split",
]
TRACED = [
    DATA / "corpus/v1.5.1" / name
    for name in ("convnet_portable", "convnet_xnnpack", "mm_portable", "tinygpt_xnnpack")
] + [DATA / "extra/lstm_portable", DATA / "extra/kv_cache", DATA / "extra/no_constants"]


def _file(folder: Path, kind: str) -> LoadedFile:
    return next(file for file in session(folder).files if file.kind == kind)


def _verdict(*files: LoadedFile) -> tuple[str, str]:
    found = check_session(Session("mix", files))
    return found.verdict, found.mismatch


def _as_file(file: LoadedFile, artifact: Any) -> LoadedFile:
    return replace(file, artifact=artifact)


def _negated(file: LoadedFile) -> LoadedFile:
    """Return the program with the sign of every stored float turned over: trained otherwise."""
    data = bytearray(file.data)
    program = file.artifact
    assert isinstance(program, ProgramFile)
    blobs = [one.data for one in stored_tensors(Session("alone", (file,)), "forward")]
    plan = program.plan("forward")
    for index in range(len(plan.delegates)):
        blobs += [one.data for one in delegate_payload(program, plan, index).constants]
    for blob in {bytes(blob) for blob in blobs if blob}:
        start = bytes(data).find(blob)
        for at in range(start + 3, start + len(blob), 4):
            data[at] ^= 0x80 if any(data[at - 3 : at + 1]) else 0
    return _as_file(file, decode(memoryview(bytes(data)), file=file.path))


@pytest.mark.parametrize("folder", TWINS, ids=label)
def test_program_with_other_weights_than_the_record_is_found_out(folder: Path) -> None:
    program, record = _file(folder, "pte"), _file(folder, "etrecord")
    assert _verdict(program, record) == (BELONG, "")
    verdict, mismatch = _verdict(_negated(program), record)
    assert verdict == DO_NOT_BELONG
    assert "the values of" in mismatch


@pytest.mark.parametrize("folder", [TWINS[0], TWINS[2]], ids=label)
def test_program_of_another_width_than_the_record_is_found_out(folder: Path) -> None:
    program, record = _file(folder, "pte"), _file(folder, "etrecord")
    verdict, mismatch = _verdict(_as_file(program, _wider(program.artifact)), record)
    assert verdict == DO_NOT_BELONG
    assert "the program plans" in mismatch


def _wider(program: Any) -> ProgramFile:
    plan = program.plans[0]
    boundary = {*plan.inputs, *plan.outputs}
    values = tuple(
        replace(value, val=replace(value.val, sizes=(*value.val.sizes[:-1], 77)))
        if isinstance(value.val, m.Tensor) and value.val.sizes and index not in boundary
        else value
        for index, value in enumerate(plan.values)
    )
    changed = (replace(plan, values=values),)
    return replace(program, table=replace(program.table, execution_plan=changed))


@pytest.mark.parametrize(
    "names",
    [
        names
        for count in (2, 3, 4)
        for names in itertools.combinations(
            ("model.pte", "model.etrecord", "shared.ptd", "head.ptd"), count
        )
        if names != ("shared.ptd", "head.ptd")
    ],
    ids=",".join,
)
def test_weights_in_two_files_belong_with_any_of_the_others(names: tuple[str, ...]) -> None:
    files = tuple(file for file in session(SPLIT).files if Path(file.path).name in names)
    assert len(files) == len(names)
    assert _verdict(*files) == (BELONG, "")


def test_data_with_other_numbers_than_the_record_is_found_out() -> None:
    record, data = _file(SPLIT, "etrecord"), _file(SPLIT, "ptd")
    assert isinstance(record.artifact, RecordFile)
    assert isinstance(data.artifact, FlatTensor)
    entry = data.artifact.entries[0]
    other = replace(entry, data=memoryview(bytes(255 - byte for byte in entry.data)))
    changed = replace(data.artifact, entries=(other, *data.artifact.entries[1:]))
    verdict, mismatch = _verdict(record, _as_file(data, changed))
    assert verdict == DO_NOT_BELONG
    assert "different values" in mismatch


def test_data_that_lacks_one_tensor_and_has_a_foreign_one_is_found_out() -> None:
    program, data = _file(SPLIT, "pte"), _file(SPLIT, "ptd")
    assert isinstance(data.artifact, FlatTensor)
    first, *rest = data.artifact.entries
    changed = replace(data.artifact, entries=(replace(first, key="another.weight"), *rest))
    verdict, mismatch = _verdict(program, _as_file(data, changed))
    assert verdict == DO_NOT_BELONG
    assert "no such key" in mismatch


@pytest.mark.parametrize(
    ("one", "other"), list(itertools.permutations(TRACED, 2)), ids=lambda path: path.name
)
def test_record_with_the_trace_of_another_model_is_found_out(one: Path, other: Path) -> None:
    verdict, _ = _verdict(_file(one, "etrecord"), _file(other, "etdump"))
    assert verdict == DO_NOT_BELONG


def test_quantized_kernels_contradict_a_record_without_quantization() -> None:
    trace = _file(DATA / "extra/xnnpack_dynamic_quantised", "etdump")
    quantized = _file(DATA / "extra/xnnpack_dynamic_quantised", "etrecord")
    plain = _file(DATA / "corpus/v1.5.1/mm_xnnpack", "etrecord")
    assert _verdict(quantized, trace)[0] == BELONG
    assert _verdict(plain, trace)[0] == DO_NOT_BELONG


@pytest.mark.parametrize(
    ("backend", "name", "wrong"),
    [
        ("VulkanBackend", "Convolution (NHWC, F32) IGEMM #1", True),
        ("XnnpackBackend", "Convolution (NHWC, F32) IGEMM #1", False),
        ("VulkanBackend", "conv2d_packed_0", False),
    ],
)
def test_kernels_of_one_backend_contradict_another(backend: str, name: str, wrong: bool) -> None:
    assert bool(foreign_kernels(backend, [name])) is wrong


def test_every_record_has_the_weights_of_its_program() -> None:
    pairs = [(_file(path, "pte"), _file(path, "etrecord")) for path in folders("model.etrecord")]
    assert [one.path for one, other in pairs if _verdict(one, other)[0] != BELONG] == []
