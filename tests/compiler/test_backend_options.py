"""Options of emission: what each does, and the one sentence for what cannot be done."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from compiler import (
    CompileSpec,
    ConstraintBasedSymShapeEvalPass,
    DynamicMemoryPlanningMode,
    ExecutorchBackendConfig,
    HintBasedSymShapeEvalPass,
    MemoryPlanningPass,
    PropagateDeviceConfig,
    ToOutVarPass,
    UnsupportedError,
    to_backend,
    to_edge,
)
from compiler.backends.demo import ExecutorBackend
from schema import program as pte

pytestmark = pytest.mark.slow


class Rows(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x.sin(), x]) * 2


def _edge(most: int = 9) -> Any:
    rows = {0: torch.export.Dim("rows", min=2, max=most)}
    return to_edge(torch.export.export(Rows(), (torch.randn(4, 5),), dynamic_shapes=(rows,)))


def _sizes(**options: Any) -> set[tuple[int, ...]]:
    program = _edge().to_executorch(ExecutorchBackendConfig(**options))
    values = [value.val for value in pte.decode(program.buffer).plan("forward").values]
    return {v.sizes for v in values if isinstance(v, pte.model.Tensor) and len(v.sizes) == 2}


def test_upper_bounds_come_from_ranges_or_from_the_example() -> None:
    ranges, example = {(9, 5), (18, 5)}, {(4, 5), (8, 5)}
    assert _sizes() == ranges
    assert _sizes(sym_shape_eval_pass=ConstraintBasedSymShapeEvalPass()) == ranges
    assert _sizes(sym_shape_eval_pass=HintBasedSymShapeEvalPass()) == example
    hinted = {"forward": HintBasedSymShapeEvalPass()}
    assert _sizes(sym_shape_eval_pass=hinted) == example
    assert _sizes(sym_shape_eval_pass={"other": HintBasedSymShapeEvalPass()}) == ranges


@pytest.mark.parametrize(
    "options",
    [
        {"dynamic_memory_planning_mode": DynamicMemoryPlanningMode.UPPER_BOUND},
        {"to_out_var_pass": ToOutVarPass(ignore_to_out_var_failure=True)},
        {"enable_non_cpu_memory_planning": False},
        {
            "propagate_device_config": PropagateDeviceConfig(skip_h2d_for_method_inputs=True),
            "memory_planning_pass": MemoryPlanningPass(alloc_graph_input=False),
        },
    ],
)
def test_documented_options_are_taken(options: dict[str, Any]) -> None:
    assert _edge().to_executorch(ExecutorchBackendConfig(**options)).buffer


class OwnOutVar(ToOutVarPass):
    def call(self, graph_module: Any) -> Any:
        raise AssertionError("never run")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"dynamic_memory_planning_mode": DynamicMemoryPlanningMode.SYMBOLIC},
            "planned at upper bounds",
        ),
        ({"to_out_var_pass": OwnOutVar()}, "OwnOutVar is not run"),
        ({"sym_shape_eval_pass": OwnOutVar()}, "OwnOutVar is not run; upper bounds come from"),
    ],
)
def test_option_that_cannot_be_met_is_one_sentence(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ExecutorchBackendConfig(**options)


def test_delegate_of_another_device_is_refused_unless_it_gets_memory_of_the_host() -> None:
    class Outer(nn.Module):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x)

    inputs = (torch.randn(2, 3),)
    edge = to_edge(torch.export.export(nn.Sequential(nn.ReLU()), inputs)).exported_program()
    for device, refused in ((b"cuda:0", True), (b"cpu", False)):
        inner = to_backend(ExecutorBackend.__name__, edge, [CompileSpec("target_device", device)])
        manager = to_edge(torch.export.export(Outer(inner), inputs))
        if refused:
            with pytest.raises(UnsupportedError, match=r"ExecutorBackend needs .* of cuda:0"):
                manager.to_executorch()
        assert manager.to_executorch(
            ExecutorchBackendConfig(enable_non_cpu_memory_planning=not refused)
        ).buffer
