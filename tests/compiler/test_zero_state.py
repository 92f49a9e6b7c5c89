"""Initial bytes of buffers that are written: left out where all are zero and a config says so."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from compiler import ExecutorchBackendConfig, MemoryPlanningPass, to_edge
from runtime import Runtime
from schema.program import decode
from tests.tools.forked import run_stock

pytestmark = pytest.mark.slow
SCRIPT = """
import json, sys, torch
from executorch.runtime import Runtime
program = Runtime.get().load_program(sys.argv[1])
method = program.load_method("forward")
values = [float(method.execute([torch.full((256,), one)])[0]) for one in (1.0, 2.0)]
open(sys.argv[2], "w").write(json.dumps(values))
"""


class Sums(torch.nn.Module):
    """Adds its inputs up in a buffer that begins with one value."""

    def __init__(self, first: float, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.register_buffer("total", torch.full((256,), first, dtype=dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x.to(self.total.dtype))
        return self.total.sum().float()


def program(first: float, dtype: torch.dtype = torch.float32, *, stored: bool) -> bytes:
    exported = torch.export.export(Sums(first, dtype).eval(), (torch.ones(256),))
    config = ExecutorchBackendConfig(store_zero_state=stored)
    return bytes(to_edge(exported).to_executorch(config).buffer)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int8], ids=str)
@pytest.mark.parametrize("first", [0.0, 3.0])
def test_only_zeros_are_left_out_and_every_load_begins_with_them(
    first: float, dtype: torch.dtype
) -> None:
    whole, short = (program(first, dtype, stored=stored) for stored in (True, False))
    saved = len(whole) - len(short)
    assert saved == 0 if first else saved >= 256 * dtype.itemsize
    for data in (whole, short, short):
        method = Runtime.get().load_program(data).load_method("forward")
        sums = [float(method.execute([torch.full((256,), one)])[0]) for one in (1.0, 2.0)]
        assert sums == [256 * (first + 1), 256 * (first + 3)]


class TwoSums(torch.nn.Module):
    """Two buffers that begin alike and are written apart."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = Sums(3.0), Sums(3.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.one(x) - self.other(2 * x)


@pytest.mark.interop
def test_equal_bytes_of_states_are_stored_once(tmp_path: Path) -> None:
    exported = torch.export.export(TwoSums().eval(), (torch.ones(256),))
    config = ExecutorchBackendConfig(
        memory_planning_pass=MemoryPlanningPass(share_mutable_buffers=True)
    )
    data = bytes(to_edge({"forward": exported, "again": exported}).to_executorch(config).buffer)
    table = decode(data).table
    (states,) = table.mutable_data_segments or ()
    assert len(states.offsets) == 2  # the first entry is empty
    assert table.segments[states.segment_index].size == 4 * 256
    method = Runtime.get().load_program(data).load_method("forward")
    differences = [float(method.execute([torch.full((256,), one)])[0]) for one in (1.0, 2.0)]
    assert differences == [-256.0, -768.0]
    path = tmp_path / "model.pte"
    path.write_bytes(data)
    run_stock(["-c", SCRIPT, path, tmp_path / "values.json"])
    assert (tmp_path / "values.json").read_text() == "[-256.0, -768.0]"


@pytest.mark.interop
def test_the_stock_runtime_begins_with_zeros(tmp_path: Path) -> None:
    path = tmp_path / "model.pte"
    path.write_bytes(program(0.0, stored=False))
    run_stock(["-c", SCRIPT, path, tmp_path / "values.json"])
    assert (tmp_path / "values.json").read_text() == "[256.0, 768.0]"
