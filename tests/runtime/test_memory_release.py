"""Memory that runs no longer need goes back to the machine, and what was in it comes back."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import pytest
import torch

from compiler import to_edge
from runtime import DebugLevel, EventTracer, Runtime
from runtime.memory.planned import new_buffer
from runtime.memory.release import (
    can_be_read,
    release_constant,
    release_idle_pages,
    track_buffer,
    track_file,
)
from runtime.program import loading
from runtime.untyped import from_buffer
from tests.runtime.samples import assert_close

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives pages back"),
]
PAGE = mmap.PAGESIZE


class _Tied(torch.nn.Module):
    """Reads its table as rows and as a product's weight, which is laid out ahead."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(300, 64)
        self.first = torch.nn.Linear(64, 512)
        self.second = torch.nn.Linear(512, 64, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.second(torch.relu(self.first(self.table(tokens)))))
        return x @ self.table.weight.t()


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """Note how much is given back, by what it is."""
    found: dict[str, list[int]] = {"constant": [], "idle": []}

    def constant(tensor: torch.Tensor) -> int:
        found["constant"].append(release_constant(tensor))
        return found["constant"][-1]

    def idle(address: int, nbytes: int) -> int:
        found["idle"].append(release_idle_pages(address, nbytes))
        return found["idle"][-1]

    monkeypatch.setattr("runtime.execution.fused.matmul.release_constant", constant)
    monkeypatch.setattr("runtime.execution.fused.fused_run.release_idle_pages", idle)
    return found


def test_weights_laid_out_ahead_leave_their_pages_and_outputs_stay(
    given: dict[str, list[int]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(loading, "_MAPPED_FROM", 1)
    torch.manual_seed(0)
    model, tokens = _Tied().eval(), torch.randint(0, 300, (700,))
    path = tmp_path / "model.pte"
    path.write_bytes(to_edge(torch.export.export(model, (tokens,))).to_executorch().buffer)
    tracer = EventTracer(DebugLevel.INTERMEDIATE)
    method = Runtime().load_program(path, tracer=tracer).load_method("forward")
    wanted = [model(tokens).detach()]
    for traced in (False, False, True, False, True, False, False):
        method.tracer = tracer if traced else None
        assert_close(method.execute([tokens]), wanted)
    packed = sum(p.nbytes for p in model.parameters() if p.dim() == 2)
    assert packed - 3 * 2 * PAGE <= sum(given["constant"]) <= packed
    largest = 700 * 512 * 4  # between the layers
    assert sum(given["idle"]) >= 3 * (largest - 2 * PAGE)  # after each run with a trace again
    assert path.read_bytes()[:8]


def test_only_whole_pages_of_known_maps_are_given_back(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(range(256)) * (PAGE // 64))  # four pages
    with path.open("rb") as stream:
        region = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
    tensor = from_buffer(region, torch.uint8, 4 * PAGE)
    assert release_constant(tensor) == 0
    track_file(region)
    before = tensor.clone()
    assert release_constant(tensor) == 4 * PAGE
    assert torch.equal(tensor, before)
    assert release_constant(tensor[1:-1]) == 2 * PAGE
    assert release_constant(tensor[1:PAGE]) == 0
    assert release_constant(tensor.view(2, -1).t()) == 4 * PAGE
    assert release_constant(tensor[::2]) == 0
    assert release_idle_pages(tensor.data_ptr(), 4 * PAGE) == 0
    assert release_constant(torch.zeros(4 * PAGE)) == 0


@pytest.mark.parametrize("flags", [mmap.MAP_SHARED, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS])
def test_idle_pages_of_an_arena_are_zeros_afterwards(flags: int) -> None:
    buffer = track_buffer(mmap.mmap(-1, 4 * PAGE, flags=flags))
    held = from_buffer(buffer, torch.uint8, 4 * PAGE)
    held.fill_(7)
    assert release_idle_pages(held.data_ptr() + 1, 3 * PAGE) == 2 * PAGE
    assert held.view(4, -1).amax(1).tolist() == [7, 0, 0, 7]
    assert release_constant(held) == 0


@pytest.mark.parametrize(
    ("address", "nbytes", "further", "readable"),
    [
        (0, 100, 128, True),
        (PAGE - 200, 100, 100, True),
        (PAGE - 200, 100, 101, False),
        (0, PAGE, 1, False),
    ],
)
def test_what_follows_is_readable_in_the_same_page_only(
    address: int, nbytes: int, further: int, readable: bool
) -> None:
    page = 1000 * PAGE  # an address that is nobody's arena
    assert can_be_read(page + address, nbytes, further) is readable


def test_what_follows_is_readable_within_an_arena() -> None:
    buffer = new_buffer(3 * PAGE)
    assert buffer is not None
    start = from_buffer(buffer, torch.uint8, 1).data_ptr()
    assert can_be_read(start, PAGE, 128)
    assert can_be_read(start + PAGE, 2 * PAGE - 128, 128)
    assert not can_be_read(start + PAGE, 2 * PAGE, 128)
