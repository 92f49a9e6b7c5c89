"""Bundled programs: test cases and the program inside, read, written, damaged."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schema import bundled, program
from schema.bundled import (
    BundledBool,
    BundledDouble,
    BundledFile,
    BundledInt,
    BundledSuite,
    BundledTensor,
    BundledValue,
    TestCase,
)
from schema.errors import FormatError
from tests.conftest import DATA
from tests.oracle.client import Oracle
from tests.schema.damage import all_kinds, survives
from tests.tools.forked import run_stock

FILES = sorted(DATA.rglob("*.bpte"))
TENSORS = st.builds(
    BundledTensor,
    st.integers(-128, 127),
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=4).map(tuple),
    st.binary(max_size=64).map(memoryview),
    st.lists(st.integers(0, 255), max_size=4).map(tuple),
)
VALUES = st.builds(
    BundledValue,
    st.none()
    | TENSORS
    | st.builds(BundledInt, st.integers(-(2**63), 2**63 - 1))
    | st.builds(BundledBool, st.booleans())
    | st.builds(BundledDouble, st.floats(allow_nan=False)),
)
LISTS = st.lists(VALUES, max_size=3).map(tuple)
SUITES = st.builds(
    BundledSuite,
    st.text(max_size=8),
    st.lists(st.builds(TestCase, LISTS, LISTS), max_size=3).map(tuple),
)
PROGRAMS = st.builds(
    BundledFile,
    st.lists(SUITES, max_size=3).map(tuple),
    st.binary(max_size=200).map(memoryview),
    st.integers(0, 2**32 - 1),
)


def sample() -> BundledFile:
    tensor = BundledTensor(6, (2,), memoryview(b"abcdefgh"), (0,))
    values = (tensor, BundledInt(-3), BundledBool(True), BundledDouble(0.25))
    case = TestCase(tuple(BundledValue(value) for value in values), (BundledValue(tensor),))
    suites = (BundledSuite("encode", (case, TestCase((), ()))), BundledSuite("forward", ()))
    return BundledFile(suites, memoryview(b"program bytes"))


@given(PROGRAMS)
@settings(max_examples=120, deadline=None)
def test_decode_of_encoded_bundle_gives_equal_bundle(made: BundledFile) -> None:
    assert bundled.decode(bundled.encode(made)) == made


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(DATA)))
def test_decode_of_rewritten_stock_bundle_gives_equal_bundle(path: Path) -> None:
    read = bundled.decode(path.read_bytes(), file=str(path))
    assert read.issues == ()
    assert bundled.decode(bundled.encode(read)) == read
    assert program.decode(read.program).plans


@given(PROGRAMS)
@settings(max_examples=40, deadline=None)
def test_encode_aligns_the_program_to_32_and_tensors_to_16(made: BundledFile) -> None:
    raw = bundled.encode(made)
    read = bundled.decode(raw)
    if made.program:
        assert read.program_offset % 32 == 0
        end = read.program_offset + len(made.program)
        assert raw[read.program_offset : end] == made.program
    marker = b"\xab\xcd" * 9
    tensor = BundledTensor(0, (18,), memoryview(marker), (0,))
    case = TestCase((BundledValue(tensor),))
    with_tensor = replace(made, method_test_suites=(BundledSuite("m", (case,)),))
    assert bundled.encode(with_tensor).index(marker) % 16 == 0


def test_header_fields_name_place_and_value() -> None:
    raw = bundled.encode(sample())
    root, name = bundled.header_fields(raw)
    assert (root.offset, root.size) == (0, 4)
    assert (name.offset, name.size, name.value) == (4, 4, "BP08")
    with pytest.raises(FormatError, match="b: "):
        bundled.header_fields(b"abc", file="b")


def test_tables_for_the_structure_view_read_the_same_file() -> None:
    reader, layout, base = bundled.root_table(memoryview(bundled.encode(sample())))
    root = reader.root(layout, base)
    assert root.method_test_suites == sample().method_test_suites


@pytest.mark.parametrize("data", [b"", b"BP08", b"0000BP0", b"0000ET12", b"0000BPxx", b"\0" * 64])
def test_decode_of_something_else_says_what_it_expected(data: bytes) -> None:
    assert not bundled.sniff(data)
    with pytest.raises(FormatError, match="the identifier BP08"):
        bundled.decode(data)


def test_decode_of_odd_bundle_reads_it_and_says_what_is_odd() -> None:
    tensor = BundledTensor(6, (3,), memoryview(b"abcdefgh"), (0,))
    case = TestCase((BundledValue(tensor),))
    odd = BundledFile((BundledSuite("forward", (case,)),), memoryview(b""), 7)
    read = bundled.decode(bundled.encode(odd).replace(b"BP08", b"BP09"))
    assert read == odd
    messages = " | ".join(issue.message for issue in read.issues)
    assert "BP09" in messages
    assert "schema version 7" in messages
    assert "contains no program" in messages
    assert "a tensor of 8 bytes where its shape needs 12" in messages


@pytest.mark.parametrize("seed", range(4))
def test_decode_of_damaged_bytes_refuses_or_gives_a_sound_bundle(seed: int) -> None:
    for broken in all_kinds(bundled.encode(sample()), seed, 150):
        read = survives(bundled.decode, broken)
        if read is not None:
            assert len(read.program) <= len(broken)


# --- the stock tool -----------------------------------------------------------------------


@pytest.mark.interop
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(DATA)))
def test_decode_of_stock_bundle_gives_what_the_stock_reader_gives(
    path: Path, oracle: Oracle, tmp_path: Path
) -> None:
    read = bundled.decode(path.read_bytes())
    stock = oracle.ask("bundled_program", path=path)
    assert facts(read) == stock_facts(stock)
    again = tmp_path / "again.bpte"
    again.write_bytes(bundled.encode(read))
    assert oracle.ask("bundled_program", path=again) == stock


def facts(read: BundledFile) -> list[Any]:
    return [
        [
            suite.method_name,
            [
                [
                    [value_facts(value) for value in case.inputs],
                    [value_facts(value) for value in case.expected_outputs],
                ]
                for case in suite.test_cases
            ],
        ]
        for suite in read.method_test_suites
    ]


def value_facts(value: BundledValue) -> Any:
    item = value.val
    if isinstance(item, BundledTensor):
        return [list(item.sizes), len(item.data), list(item.dim_order)]
    assert isinstance(item, BundledInt | BundledBool | BundledDouble)
    return [
        getattr(item, name) for name in ("int_val", "bool_val", "double_val") if hasattr(item, name)
    ]


def stock_facts(stock: dict[str, Any]) -> list[Any]:
    def value(item: dict[str, Any]) -> Any:
        val = item["val"]
        if val["type"] == "Tensor":
            order = val["dim_order"]
            listed = list(bytes.fromhex(order["hex"])) if isinstance(order, dict) else order
            return [val["sizes"], val["data"]["nbytes"], listed]
        return [entry for name, entry in val.items() if name != "type"]

    return [
        [
            suite["method_name"],
            [
                [
                    [value(item) for item in case["inputs"]],
                    [value(item) for item in case["expected_outputs"]],
                ]
                for case in suite["test_cases"]
            ],
        ]
        for suite in stock["method_test_suites"]
    ]


_RUN = """
import sys
from executorch.extension.pybindings import portable_lib
bundle = portable_lib._load_bundled_program_from_buffer(open(sys.argv[1], "rb").read())
module = portable_lib._load_for_executorch_from_bundled_program(bundle)
print(*sorted(module.method_names()))
for argument in sys.argv[2:]:
    method, case = argument.rsplit(":", 1)
    bundle.verify_result_with_bundled_expected_output(method, int(case), 1e-3, 1e-3)
    print("verified", argument)
"""


@pytest.mark.interop
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(DATA)))
def test_stock_runtime_verifies_every_case_of_a_bundle_that_we_wrote(
    path: Path, tmp_path: Path
) -> None:
    read = bundled.decode(path.read_bytes())
    ours = tmp_path / "ours.bpte"
    ours.write_bytes(bundled.encode(read))
    cases = [
        f"{suite.method_name}:{case}"
        for suite in read.method_test_suites
        for case in range(len(suite.test_cases))
    ]
    done = verify(ours, cases)
    assert done.returncode == 0, done.stderr[-2000:]
    methods = sorted(plan.name for plan in program.decode(read.program).plans)
    assert done.stdout.splitlines() == [" ".join(methods), *(f"verified {c}" for c in cases)]


@pytest.mark.interop
def test_stock_runtime_finds_a_wrong_expectation_in_a_bundle_that_we_wrote(
    extra: Path, tmp_path: Path
) -> None:
    read = bundled.decode((extra / "bundled_cases" / "model.bpte").read_bytes())
    suite = read.method_test_suites[0]
    case = suite.test_cases[0]
    tensor = case.expected_outputs[0].val
    assert isinstance(tensor, BundledTensor)
    wrong = replace(tensor, data=memoryview(b"\0\0\x80\x3f" * (len(tensor.data) // 4)))
    case = replace(case, expected_outputs=(BundledValue(wrong),))
    ours = tmp_path / "wrong.bpte"
    suites = (replace(suite, test_cases=(case,)),)
    ours.write_bytes(bundled.encode(replace(read, method_test_suites=suites)))
    done = verify(ours, [f"{suite.method_name}:0"])
    assert done.returncode != 0
    assert "verified" not in done.stdout


def verify(path: Path, cases: list[str]) -> subprocess.CompletedProcess[str]:
    return run_stock(["-c", _RUN, path, *cases], check=False)
