"""Memory of packed weights in huge pages, where the system gives them on request."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from compiler import to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from runtime import Runtime
from runtime.memory import huge_pages
from runtime.memory.huge_pages import new_memory_in_huge_pages, private_memory, without
from tests.runtime.samples import assert_close

_MIB = 1 << 20
_SWITCH = Path("/sys/kernel/mm/transparent_hugepage/enabled")
on_request = pytest.mark.skipif(
    sys.platform != "linux" or not _SWITCH.exists() or "[never]" in _SWITCH.read_text(),
    reason="the system gives no huge pages",
)
spans = st.lists(st.integers(0, 60), max_size=12, unique=True).map(
    lambda edges: list(zip(sorted(edges)[::2], sorted(edges)[1::2], strict=False))
)


@given(spans, spans)
def test_parts_of_ranges_that_others_leave(
    ranges: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    def numbers(found: list[tuple[int, int]]) -> set[int]:
        return {number for low, high in found for number in range(low, high)}

    left = without(ranges, others)
    assert numbers(left) == numbers(ranges) - numbers(others)
    assert left == sorted(left)
    assert all(low < high for low, high in left)


def _huge(address: int) -> int:
    """Return the KiB of huge pages in the mapping of an address."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = line.split()[0]
        if "-" in head and not head.endswith(":"):
            low, high = (int(part, 16) for part in head.split("-"))
            inside = low <= address < high
        elif inside and head == "AnonHugePages:":
            return int(line.split()[1])
    return 0


@on_request
@pytest.mark.parametrize("expected", [0, 16 * _MIB])
def test_new_memory_is_in_huge_pages_and_keeps_its_contents(expected: int) -> None:
    with new_memory_in_huge_pages(expected):
        region = mmap.mmap(-1, 16 * _MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        region[:] = b"weights." * (2 * _MIB)
    tensor = torch.frombuffer(region, dtype=torch.uint8)
    assert bytes(region[-8:]) == b"weights."
    assert (_huge(tensor.data_ptr()) > 0) == (expected > 0)
    del tensor
    region.close()


def test_a_system_that_tells_nothing_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(huge_pages, "_MAPS", tmp_path / "none")
    assert private_memory() == []
    with new_memory_in_huge_pages(16 * _MIB):
        pass
    monkeypatch.setattr(sys, "platform", "darwin")
    assert private_memory() == []


@pytest.mark.slow
def test_a_large_layer_gives_the_same_with_and_without_huge_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module, x = torch.nn.Linear(2048, 1536).eval(), torch.randn(1, 2048)
    exported = torch.export.export(module, (x,))
    lowered = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    buffer = bytes(lowered.to_executorch().buffer)
    found = Runtime.get().load_program(buffer).load_method("forward").execute([x])
    monkeypatch.setattr(huge_pages, "_LEAST", 1 << 60)
    other = Runtime.get().load_program(buffer).load_method("forward").execute([x])
    assert torch.equal(found[0], other[0])
    with torch.no_grad():
        assert_close(found, [module(x)], 1e-5)
