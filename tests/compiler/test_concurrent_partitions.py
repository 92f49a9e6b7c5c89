"""Partitions of a backend that allows it are lowered several at a time, and each only once."""

from __future__ import annotations

import threading
from typing import Any, final

import pytest
import torch
from torch import nn

import compiler
from compiler import (
    BackendDetails,
    CompileSpec,
    DelegationSpec,
    PreprocessResult,
    to_backend,
    to_edge_transform_and_lower,
)
from tests.compiler.delegation import ByNode, edge, exported, payloads

_PARTITIONS = 6


def _chain(x: torch.Tensor) -> torch.Tensor:
    for _ in range(_PARTITIONS):
        x = torch.cat([x.relu(), x])
    return x


def _names(program: Any) -> list[str]:
    return [n.name for n in program.graph.nodes if n.op == "call_function"]


@final
class PairBackend(BackendDetails):
    """Waits until a second partition is being lowered too."""

    concurrent = True
    meeting = threading.Barrier(2, timeout=20)

    @staticmethod
    def preprocess(edge_program: Any, compile_specs: list[CompileSpec]) -> PreprocessResult:
        del compile_specs
        PairBackend.meeting.wait()
        return PreprocessResult(" ".join(_names(edge_program)).encode())


@final
class FailingBackend(BackendDetails):
    """Fails on every partition."""

    concurrent = True

    @staticmethod
    def preprocess(edge_program: Any, compile_specs: list[CompileSpec]) -> PreprocessResult:
        del compile_specs
        raise ValueError(*_names(edge_program))


@final
class OneAtATimeBackend(BackendDetails):
    """Allows no second partition beside one, as backends do that say nothing."""

    lock = threading.Lock()

    @staticmethod
    def preprocess(edge_program: Any, compile_specs: list[CompileSpec]) -> PreprocessResult:
        del compile_specs
        if not OneAtATimeBackend.lock.acquire(blocking=False):
            raise RuntimeError("two at once")
        try:
            threading.Event().wait(0.01)
        finally:
            OneAtATimeBackend.lock.release()
        return PreprocessResult(" ".join(_names(edge_program)).encode())


def _relus(backend: str) -> ByNode:
    tag = {f"t{place}": DelegationSpec(backend, []) for place in range(_PARTITIONS)}
    return ByNode(
        lambda n: f"t{(n.name.split('_')[3:] or ['0'])[0]}" if "relu" in n.name else None, **tag
    )


@pytest.mark.parametrize("backend", ["PairBackend", "OneAtATimeBackend"])
@pytest.mark.parametrize("single", [False, True])
def test_results_keep_the_order_of_the_partitions(backend: str, single: bool) -> None:
    manager = edge(_chain, torch.ones(2))
    if single:
        program = to_backend(manager.exported_program(), _relus(backend))
        modules: Any = [m for _, m in program.graph_module.named_children()]
        found = [m.processed_bytes.decode() for m in modules]
    else:
        found = payloads(manager.to_backend(_relus(backend)))
    expected = ["aten_relu_default", *(f"aten_relu_default_{i}" for i in range(1, _PARTITIONS))]
    assert found == expected


def test_first_of_several_partitions_that_fail_is_the_one_named() -> None:
    with pytest.raises(compiler.BackendError, match=r"failed on partition t0 \(aten_relu_default"):
        edge(_chain, torch.ones(2)).to_backend(_relus("FailingBackend"))


@pytest.mark.parametrize("others", [0, 1])
def test_partitioner_looks_once_at_a_program_with_operators_it_preserves(others: int) -> None:
    class Counting(ByNode):
        asked = 0

        def ops_to_not_decompose(self, ep: Any) -> Any:
            return [torch.ops.aten.linear.default], None

        def partition(self, exported_program: Any) -> Any:
            self.asked += 1
            return super().partition(exported_program)

    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
    program = exported(net, torch.randn(1, 3))
    take = Counting(lambda n: "t" if n.name.endswith("linear_default") else None)
    rest = [ByNode(lambda n: "r" if "relu" in n.name else None) for _ in range(others)]
    manager = to_edge_transform_and_lower(program, partitioner=[take, *rest])
    # asked a second time after the linear layer that it leaves was decomposed, not for lowering
    assert take.asked == 2
    outcomes = [(v.operator, v.outcome.value) for v in manager.verdicts["forward"]]
    assert ("aten.linear.default", "decomposed_away") in outcomes
    assert [op for op, outcome in outcomes if outcome == "delegated"] == (
        ["aten.linear.default", *["aten.relu.default"][:others]]
    )
    assert len(outcomes) == len({(v.node, v.partitioner) for v in manager.verdicts["forward"]})
