"""Bundled programs: made, read back, run and verified."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from runtime import ErrorCode, ExecutionError, Runtime
from runtime.bundled import (
    BundledProgram,
    MethodTestCase,
    MethodTestSuite,
    deserialize_from_flatbuffer_to_bundled_program,
    serialize_from_bundled_program_to_flatbuffer,
)
from runtime.compat import portable_lib
from runtime.verify import (
    compare_outputs,
    get_program_data,
    is_bundled_program,
    load_bundled_input,
    verify_method_outputs,
)
from schema import bundled, etdump
from schema.errors import FormatError
from tests.runtime.samples import folder, inputs_of, load

pytestmark = pytest.mark.slow

MODEL = folder("corpus/v1.5.1/mm_portable") / "model.pte"


def _cases(count: int = 3, wrong: bool = False) -> list[MethodTestCase]:
    program = Runtime.get().load_program(MODEL)
    made = []
    for seed in range(count):
        inputs = inputs_of(program.metadata("forward"), seed)
        outputs = program.load_method("forward").execute(inputs)
        if wrong:
            outputs[0].view(-1)[0] += 1
        made.append(MethodTestCase(inputs, outputs))
    return made


def _bundle(wrong: bool = False) -> bytes:
    suite = MethodTestSuite("forward", _cases(wrong=wrong))
    return serialize_from_bundled_program_to_flatbuffer(
        BundledProgram(None, [suite], pte_file_path=MODEL)
    )


def test_tables_come_back_from_the_bytes() -> None:
    suite = MethodTestSuite("forward", _cases(wrong=False))
    made = BundledProgram(None, [suite], pte_file_path=MODEL)
    data = serialize_from_bundled_program_to_flatbuffer(made)
    found = deserialize_from_flatbuffer_to_bundled_program(data)
    assert found == made.serialize_to_schema()
    assert found.program == MODEL.read_bytes()
    with pytest.raises(FormatError):
        deserialize_from_flatbuffer_to_bundled_program(b"no program")


def test_bundle_runs_and_passes() -> None:
    bundle = portable_lib._load_bundled_program_from_buffer(_bundle())
    module = portable_lib._load_for_executorch_from_bundled_program(bundle)
    for case in range(3):
        found = module.verify_result_with_bundled_expected_output(bundle, "forward", case)
        assert found.passed
        assert found.compared
        assert found.stats[0].max_abs_error == 0


def test_bundle_with_a_wrong_element_says_how_many_and_how_far() -> None:
    bundle = portable_lib._load_bundled_program_from_buffer(_bundle(wrong=True))
    module = portable_lib._load_for_executorch_from_bundled_program(bundle)
    with pytest.raises(ExecutionError, match="output data mismatched the expected one: 1 of"):
        module.verify_result_with_bundled_expected_output(bundle, "forward", 0)
    found = module.verify_result_with_bundled_expected_output(bundle, "forward", 0, atol=2.0)
    assert found.stats[0].max_abs_error == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("name", ["extra/bundled_two_suites"])
def test_stock_bundle_passes_and_its_cases_are_in_the_trace(name: str, tmp_path: Path) -> None:
    path = folder(name) / "model.bpte"
    file = bundled.decode(path.read_bytes())
    program = Runtime.get().load_program(path, enable_etdump=True)
    ran = 0
    for suite in file.method_test_suites:
        method = program.load_method(suite.method_name)
        for index in range(len(suite.test_cases)):
            load_bundled_input(method, file, index)
            method.run()
            assert verify_method_outputs(method, file, index, rtol=1e-4, atol=1e-6).passed
            ran += 1
    program.write_etdump_result_to_file(tmp_path / "a.etdp")
    dump = etdump.decode((tmp_path / "a.etdp").read_bytes())
    runs = [run.bundled_input_index for run in dump.run_data if run.name == "Execute"]
    assert len(runs) == ran
    assert set(runs) == set(range(max(len(s.test_cases) for s in file.method_test_suites)))


def test_cases_that_do_not_fit_are_refused_with_the_documented_texts() -> None:
    wrong = [inp.to(torch.int32) for inp in _cases(1)[0].inputs]
    with pytest.raises(
        AssertionError, match=r"dtype shall be torch.float32, but now is torch.int32"
    ):
        BundledProgram(None, [MethodTestSuite("forward", [MethodTestCase(wrong)])], MODEL)
    with pytest.raises(AssertionError, match=r"but {'other'} does not include"):
        BundledProgram(None, [MethodTestSuite("other", [])], MODEL)
    with pytest.raises(AssertionError, match="number of input in each bundled set"):
        BundledProgram(None, [MethodTestSuite("forward", [MethodTestCase([])])], MODEL)
    with pytest.raises(AssertionError, match="should not be in null type"):
        MethodTestCase([None])
    with pytest.raises(RuntimeError, match="neither"):
        BundledProgram(None, [])


def test_numbers_among_outputs_are_compared_too() -> None:
    program = load("extra/bool_and_int")
    inputs = inputs_of(program.metadata("forward"))
    outputs = program.load_method("forward").execute(inputs)
    data = serialize_from_bundled_program_to_flatbuffer(
        BundledProgram(
            None,
            [MethodTestSuite("forward", [MethodTestCase(inputs, outputs)])],
            folder("extra/bool_and_int") / "model.pte",
        )
    )
    method = Runtime.get().load_program(data).load_method("forward")
    file = bundled.decode(data)
    load_bundled_input(method, file, 0)
    method.run()
    found = verify_method_outputs(method, file, 0)
    assert [entry.elements for entry in found.stats] == [10, 2, 3, 1]
    assert found.passed


def test_compare_counts_nan_and_infinity() -> None:
    expected = torch.tensor([float("nan"), float("inf"), 1.0, 0.0])
    actual = torch.tensor([float("nan"), float("inf"), 1.5, 0.25])
    (stats,) = compare_outputs([actual], [expected])
    assert stats.mismatched == 2
    (same,) = compare_outputs([expected], [expected])
    assert same.mismatched == 0


def test_program_of_a_bundle_is_taken_out_of_file_bytes_or_stream(tmp_path: Path) -> None:
    made = _bundle()
    path = tmp_path / "model.bpte"
    path.write_bytes(made)
    wanted = MODEL.read_bytes()
    for data in (made, bytearray(made), memoryview(made), path, str(path), io.BytesIO(made)):
        assert bytes(get_program_data(data)) == wanted
    for data in (made, path):
        assert is_bundled_program(data)
    assert bytes(get_program_data(wanted)) == wanted
    assert bytes(get_program_data(MODEL)) == wanted
    assert not is_bundled_program(MODEL)
    outputs = Runtime.get().load_program(get_program_data(made)).load_method("forward")
    assert outputs.metadata.num_outputs() == 1


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda data: b"", ErrorCode.NotSupported),
        (lambda data: b"PK\x03\x04 an archive", ErrorCode.NotSupported),
        (lambda data: data[:4] + b"XX08" + data[8:], ErrorCode.NotSupported),
        (lambda data: data[:40], ErrorCode.InvalidProgram),
    ],
)
def test_bytes_without_a_program_are_an_error(
    change: Callable[[bytes], bytes], code: ErrorCode
) -> None:
    with pytest.raises(ExecutionError) as caught:
        get_program_data(change(_bundle()))
    assert caught.value.code is code
