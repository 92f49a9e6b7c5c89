"""A compile holds the bytes of a program as parts; weights are not joined or read back."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from compiler.emit.constants import TensorSegment
from compiler.emit.program import EmittedProgram
from inspector.cli.llm_files import read_source
from inspector.recipes.compile_job import PROGRAM
from inspector.recipes.source import Source
from inspector.toolchain.llm_recipe import llm_recipe
from inspector.worker.compile_job import compile_into
from tests.llm.configs import CUSTOM, LENGTHS, SMALL

pytestmark = pytest.mark.slow


def test_constants_are_compared_without_a_copy_of_their_size() -> None:
    first, same = (torch.arange(4 << 20, dtype=torch.float32) for _ in range(2))
    other = same.clone()
    other[3 << 20] += 1  # outside of what is sampled
    segment = TensorSegment(16)
    tracemalloc.start()
    try:
        entries = [segment.add(one) for one in (first, same, other)]
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert entries == [1, 1, 2]
    assert most < 4 << 20


def test_a_program_is_written_without_a_copy_of_its_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = {
        "base": {"model_class": "llama3", "params": SMALL},
        "model": CUSTOM,
        "export": LENGTHS,
        "backend": {"xnnpack": {"enabled": True}},
    }
    path = tmp_path / "model.yaml"
    path.write_text(yaml.safe_dump(content))
    source, out = Source(str(path)), tmp_path / "out"
    out.mkdir()
    joined: list[str] = []

    def whole(_self: Any) -> bytes:
        joined.append("buffer")
        return b""

    read = Path.read_bytes

    def noted(self: Path) -> bytes:
        joined.extend(["read"] if self.name == PROGRAM else [])
        return read(self)

    monkeypatch.setattr(EmittedProgram, "buffer", property(whole))
    monkeypatch.setattr(Path, "read_bytes", noted)
    report = compile_into(llm_recipe(source, read_source(source)), out, lambda *_, **__: None)
    assert joined == []
    assert report["memory"]["forward"]["planned_bytes"] > 0
    assert (out / PROGRAM).stat().st_size > 10_000
