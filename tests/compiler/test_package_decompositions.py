"""Operators that are kernels here, of which the package and its vendors know the parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import pad

from compiler import to_edge_transform_and_lower
from compiler.edge.decompositions import PACKAGE_DECOMPOSES
from compiler.partition.rules import PartitionRules
from compiler.partition.run_partitioner import is_of_package
from compiler.partition.steered import SteeredPartitioner
from runtime import Runtime
from tests.compiler.delegation import ByNode, calls, exported


def _pad(mode: str, *sizes: int) -> Callable[[Tensor], Tensor]:
    return lambda x: pad(x, sizes, mode=mode)


def _written(x: Tensor) -> Tensor:
    y = x.clone()
    y[1] = 2.0
    return y


CASES: dict[str, tuple[Callable[[Tensor], Tensor], tuple[int, ...], str]] = {
    "reflection_pad1d": (_pad("reflect", 1, 2), (2, 3, 6), "aten.index.Tensor"),
    "reflection_pad2d": (_pad("reflect", 1, 2, 0, 1), (1, 3, 6, 6), "aten.index.Tensor"),
    "reflection_pad3d": (_pad("reflect", 1, 0, 1, 1, 2, 1), (1, 2, 4, 4, 4), "aten.index.Tensor"),
    "replication_pad2d": (_pad("replicate", 1, 2, 0, 1), (1, 3, 6, 6), "aten.index.Tensor"),
    "replication_pad3d": (
        _pad("replicate", 1, 0, 1, 1, 2, 1),
        (1, 2, 4, 4, 4),
        "aten.index.Tensor",
    ),
    "select_scatter": (
        lambda x: torch.select_scatter(x, x[:, 1] * 2, 1, 0),
        (2, 3, 4),
        "aten.where.self",
    ),
    "select_scatter of a write": (_written, (4, 3), "aten.where.self"),
}


class Vendor(ByNode):
    """A partitioner of the package that takes operators by name."""

    is_of_package = True

    def __init__(self, *names: str) -> None:
        super().__init__(
            lambda node: "tag" if getattr(node.target, "__name__", "") in names else ""
        )


def calls_of(node: torch.fx.Node) -> str:
    return getattr(node.target, "__name__", "")


def _lowered(case: str, *partitioners: Any) -> tuple[Any, list[str]]:
    function, sizes, _ = CASES[case]
    program = exported(function, torch.randn(*sizes), strict=False)
    manager = to_edge_transform_and_lower(program, partitioner=[*partitioners])
    return manager, calls(manager.exported_program())


@pytest.mark.parametrize("case", CASES)
def test_each_is_one_kernel_without_a_vendor(case: str) -> None:
    whole = f"aten.{case.split()[0]}.default"
    assert whole.replace(".default", "") in {
        str(op).rpartition(".")[0] for op in PACKAGE_DECOMPOSES
    }
    assert whole in _lowered(case)[1]
    assert whole in _lowered(case, ByNode(lambda _: None))[1]  # one of ours


@pytest.mark.parametrize("case", CASES)
def test_a_vendor_that_takes_the_result_has_the_parts(case: str) -> None:
    *_, result = CASES[case]
    _, found = _lowered(case, Vendor(result))
    assert "executorch_call_delegate" in found
    assert f"aten.{case.split()[0]}.default" not in found
    assert result not in found


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "taken", [(), ("aten.arange.start_step", "aten.clamp.default", "aten.eq.Scalar")]
)
def test_what_no_vendor_takes_stays_one_kernel(case: str, taken: tuple[str, ...]) -> None:
    """Also where it would take indices that it reads: the values are those of torch."""
    manager, found = _lowered(case, Vendor(*taken))
    assert f"aten.{case.split()[0]}.default" in found
    assert "executorch_call_delegate" not in found
    function, sizes, _ = CASES[case]
    x = torch.randn(*sizes)
    method = Runtime.get().load_program(manager.to_executorch().buffer).load_method("forward")
    assert torch.equal(method.execute([x.clone()])[0], function(x))


@pytest.mark.parametrize("case", CASES)
def test_a_vendor_that_wants_it_whole_has_it_whole(case: str) -> None:
    class Whole(Vendor):
        def ops_to_not_decompose(self, ep: Any) -> tuple[list[Any], Any]:
            del ep
            return [*PACKAGE_DECOMPOSES], None

    name = f"aten.{case.split()[0]}.default"
    _, found = _lowered(case, Whole(name))
    assert "executorch_call_delegate" in found
    assert name not in found
    assert CASES[case][2] not in found


@pytest.mark.parametrize("case", CASES)
def test_a_vendor_that_takes_it_as_it_is_has_it_whole(case: str) -> None:
    """Though it would take the parts, which it may get wrong, and did not ask for it."""
    name = f"aten.{case.split()[0]}.default"
    taken: list[str] = []
    vendor = Vendor(name, CASES[case][2])
    choose = vendor.choose
    vendor.choose = lambda node: taken.append(calls_of(node)) or choose(node)
    _, found = _lowered(case, vendor)
    assert "executorch_call_delegate" in found
    assert name not in found
    assert name in taken
    assert CASES[case][2] not in taken


@pytest.mark.parametrize("case", CASES)
def test_a_vendor_behind_one_of_ours_and_under_rules(case: str) -> None:
    *_, result = CASES[case]
    ruled = SteeredPartitioner(Vendor(result), PartitionRules())
    assert is_of_package(ruled)
    _, found = _lowered(case, ByNode(lambda _: None), ruled)
    assert result not in found
    denied = SteeredPartitioner(Vendor(result), PartitionRules(deny_ops=(result,)))
    _, found = _lowered(case, denied)
    assert f"aten.{case.split()[0]}.default" in found
