"""Buffers that one method writes and others read: shared state is a constant of no method."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from compiler import (
    ExecutorchBackendConfig,
    MemoryPlanningPass,
    to_edge,
    to_edge_transform_and_lower,
)
from compiler.backends.xnnpack import XnnpackPartitioner
from compiler.edge.written_buffers import written_buffers
from compiler.passes.table import standard_pass
from runtime import Runtime

pytestmark = pytest.mark.slow

Z = torch.arange(8.0)
CONFIG = ExecutorchBackendConfig(
    memory_planning_pass=MemoryPlanningPass(share_mutable_buffers=True)
)
FOLDING = ExecutorchBackendConfig(
    memory_planning_pass=MemoryPlanningPass(share_mutable_buffers=True),
    do_quant_fusion_and_const_prop=True,
)


def _assigned(state: torch.Tensor, z: torch.Tensor) -> None:
    state[2:4] = z[:2]


def _of_reshaped_rows(state: torch.Tensor, z: torch.Tensor) -> None:
    state.reshape(2, 4).select(0, 1).copy_(z[:4])


WRITES: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "add": lambda state, z: state.add_(z),
    "copied": lambda state, z: state.copy_(z * 2),
    "of a view": lambda state, z: state.view(4, 2)[1:].t().mul_(0).add_(z[:6].view(2, 3)),
    "assigned": _assigned,
    "of rows": _of_reshaped_rows,
    "at indices": lambda state, z: state.index_put_((torch.tensor([1, 3]),), z[:2]),
}
READS: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "scaled": lambda state, z: state * 2 + z,
    "as it is": lambda state, z: (z + 1, state),
    "as a weight": lambda state, z: nn.functional.linear(z.view(1, 8), state.view(1, 8) / 4),
    "normed": lambda state, z: z * (state / (state.norm() + 1)).exp(),
}


class Part(nn.Module):
    """A method of a module with a buffer and a weight of one size."""

    state: torch.Tensor

    def __init__(self, of: Callable[[torch.Tensor, torch.Tensor], Any], *, writes: bool) -> None:
        super().__init__()
        self.of, self.writes = of, writes
        self.register_buffer("state", torch.ones(8))
        self.weight = nn.Parameter(torch.full((8,), 0.5))

    def forward(self, z: torch.Tensor) -> Any:
        found = self.of(self.state, z * self.weight.exp())
        return self.state.sum() if self.writes else found


def _methods(write: str, read: str) -> dict[str, torch.export.ExportedProgram]:
    parts = {"write": Part(WRITES[write], writes=True), "read": Part(READS[read], writes=False)}
    return {name: torch.export.export(part, (Z,)) for name, part in parts.items()}


def _lowered(how: str, programs: dict[str, torch.export.ExportedProgram]) -> bytes:
    if how == "plain":
        return to_edge(programs).to_executorch(CONFIG).buffer
    if how == "passes":
        edge = to_edge(programs).transform([standard_pass("constant_folding")])
        return edge.to_executorch(FOLDING).buffer
    partitioner = [XnnpackPartitioner()] if how == "xnnpack" else []
    edge = to_edge_transform_and_lower(programs, partitioner=partitioner)
    return edge.to_executorch(CONFIG).buffer


@pytest.mark.parametrize(
    ("write", "read", "how"),
    [
        *((write, "scaled", "folded") for write in WRITES),
        *(("add", read, how) for read in READS for how in ("plain", "passes", "xnnpack")),
    ],
)
def test_method_that_only_reads_shared_state_sees_what_others_wrote(
    write: str, read: str, how: str
) -> None:
    programs = _methods(write, read)
    program = Runtime.get().load_program(_lowered(how, programs))
    methods = {name: program.load_method(name) for name in programs}
    state, weight = torch.ones(8), torch.full((8,), 0.5).exp()
    for _ in range(2):
        WRITES[write](state, Z * weight)
        methods["write"].execute((Z,))
        wanted = READS[read](state, Z * weight)
        found = methods["read"].execute((Z,))
        for one, other in zip(found, [wanted] if len(found) == 1 else wanted, strict=True):
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("write", WRITES)
def test_written_buffers_are_those_of_the_functional_program(write: str) -> None:
    programs = _methods(write, "scaled")
    assert written_buffers(programs["write"]) == {"state"}
    assert written_buffers(programs["read"]) == set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, about itself
        functional = programs["write"].run_decompositions({})
    assert set(functional.graph_signature.buffers_to_mutate.values()) == {"state"}
    assert written_buffers(functional) == {"state"}


def test_state_of_one_method_is_folded_as_before() -> None:
    edge = to_edge_transform_and_lower({"read": _methods("add", "scaled")["read"]})
    names = {str(node.target) for node in edge.exported_program("read").graph.nodes}
    assert "state" not in "".join(names)
    assert not any("b_state" in node.name for node in edge.exported_program("read").graph.nodes)
