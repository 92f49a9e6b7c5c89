"""The made-up old files are honest: the stock runtime runs those that it still supports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.client import Oracle

pytestmark = pytest.mark.interop


@pytest.mark.parametrize(
    ("name", "original"),
    [
        ("program_header24", "convnet_portable"),
        ("program_inline_xn00", "convnet_xnnpack"),
        ("program_inline_xh00", "convnet_xnnpack"),
    ],
)
def test_old_program_on_the_stock_runtime_gives_the_outputs_of_the_original(
    oracle: Oracle, data: Path, corpus: Path, name: str, original: str
) -> None:
    old = oracle.ask("run", path=data / "old" / f"{name}.pte")
    new = oracle.ask("run", path=corpus / "v1.5.1" / original / "model.pte")
    assert old["forward"]["outputs"][0]["shape"] == [1, 10]
    assert old == new


@pytest.mark.parametrize("name", ["program_no_header", "program_no_header_delegates"])
def test_old_program_without_segments_is_a_whole_flatbuffer(
    oracle: Oracle, data: Path, name: str
) -> None:
    program = data / "old" / f"{name}.pte"
    assert b"eh00" not in program.read_bytes()[:64]
    facts = oracle.ask("program", path=program)["program"]
    assert facts["segments"] == []
    assert len(facts["execution_plan"][0]["chains"][0]["instructions"]) > 2
