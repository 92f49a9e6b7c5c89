"""Previews of partitioners whose backend is of another package or interpreter are sent as ours."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import torch

from compiler.backends.demo import AddMulPartitionerDemo
from compiler.interface.stock_objects import BackendOf, ForeignId
from compiler.pipeline.preview import previewed
from inspector.jobs.preview import MethodPreview
from inspector.worker.previewing import _method

BACKEND = "BackendWithCompilerDemo"


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.mm(x, x) + x.sin()


@pytest.mark.parametrize(
    "name",
    [BACKEND, ForeignId(BACKEND), BackendOf.named(BACKEND, object())],
    ids=lambda one: type(one).__name__,
)
def test_backend_of_a_partition_is_a_plain_name(name: Any) -> None:
    partitioner = AddMulPartitionerDemo()
    partitioner.delegation_spec = type(partitioner.delegation_spec)(name, [])
    program = torch.export.export(Net(), (torch.ones(2, 2),), strict=True)
    found = previewed({"forward": program}, partitioner=[partitioner])["forward"]
    sent = msgspec.json.encode(_method(found, ["demo"]))
    shown = msgspec.json.decode(sent, type=MethodPreview)
    assert {one.backend for one in shown.partitions} == {BACKEND}
    assert {node.name for node in shown.nodes if node.partition is not None} == {
        "aten_mm_default",
        "aten_add_tensor",
    }
