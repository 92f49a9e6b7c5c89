"""Events inside XNNPACK delegates: those of the same program agree, those of another are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.check.session import BELONG, DO_NOT_BELONG, check_session
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.join.kernels import kernels_against
from inspector.join.links import link_block
from inspector.trace.blocks import trace_blocks
from tests.inspector.sessions import DATA, folders, label, session

SPECIAL = DATA / "corpus/special"


@pytest.mark.parametrize("folder", folders("model.pte", "run.etdp"), ids=label)
def test_own_trace_agrees_in_every_delegate_call(folder: Path) -> None:
    loaded = session(folder)
    program = loaded.program
    assert program is not None
    for block in trace_blocks(loaded.dumps).blocks:
        method = link_block(loaded, block).method
        if method is not None:
            agree, against = kernels_against(program, program.plan(method), block)
            assert against == ""
            inner = any(block.delegate_id(event) is not None for event in range(len(block)))
            assert agree > 0 or not inner or "mm_" in folder.name


def test_quantized_program_does_not_belong_to_the_trace_of_the_plain_one() -> None:
    own = session(SPECIAL / "xnnpack_int8_static").files
    trace = next(
        file for file in session(SPECIAL / "xnnpack_two_delegates").files if file.kind == "etdump"
    )
    program = next(file for file in own if file.kind == "pte")
    found = check_session(Session("mix", (*own, trace)))
    assert found.verdict == DO_NOT_BELONG
    assert "quantized" in found.mismatch
    assert {program.path, trace.path} <= {*found.mismatch.replace(":", "").split()}


def test_trace_with_other_products_does_not_belong() -> None:
    program = session(DATA / "extra/inline_delegate").files[0]
    trace = next(
        file for file in session(DATA / "extra/two_methods_xnnpack").files if file.kind == "etdump"
    )
    found = check_session(Session("mix", (program, trace)))
    assert found.verdict == DO_NOT_BELONG
    assert "matrix products" in found.mismatch


def test_quantized_record_alone_does_not_belong_to_the_trace_of_the_plain_one() -> None:
    own = session(SPECIAL / "xnnpack_int8_static").files
    record = next(file for file in own if file.kind == "etrecord")
    trace = next(
        file for file in session(SPECIAL / "xnnpack_two_delegates").files if file.kind == "etdump"
    )
    found = check_session(Session("mix", (record, trace)))
    assert found.verdict == DO_NOT_BELONG
    assert "of quantized values" in found.mismatch


@pytest.mark.parametrize("name", ["xnnpack_dynamic_quantised", "xnnpack_8da4w"])
@pytest.mark.parametrize("plain", [False, True])
def test_kernels_of_floats_contradict_a_quantized_record(
    tmp_path: Path, name: str, plain: bool
) -> None:
    folder = DATA / "extra" / name
    data = (folder / "run.etdp").read_bytes()
    types = (b"(NC, QDU8, F32, QC8W)", b"(NC, QDU8, F32, QB4W)")
    assert any(text in data for text in types)
    for text in types if plain else ():
        data = data.replace(text, b"(NC,  F32, F32,  F32)")
    (tmp_path / "run.etdp").write_bytes(data)
    found = check_session(load_session([folder / "model.etrecord", tmp_path / "run.etdp"]))
    assert found.verdict == (DO_NOT_BELONG if plain else BELONG)
    assert ("of quantized values" in found.mismatch) is plain
