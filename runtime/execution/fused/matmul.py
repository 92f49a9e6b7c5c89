"""Matmuls with constant weights, which are packed once for torch's oneDNN kernels."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, cast

import torch

from runtime.execution.binding import BoundKernel
from runtime.execution.fused.dataflow import Dataflow
from runtime.memory.release import release_constant
from runtime.program.values import ValueTable

_mkldnn: Any = torch.ops.mkldnn
# Elements of weights from which packing pays: its call costs 10 us more.
_FEWEST = 1 << 12
_ADDMM, _MM, _LINEAR = "aten::addmm.out", "aten::mm.out", "aten::linear.out"


@dataclass(slots=True)
class PackedBudget:
    """Memory that packed weights may still take.

    Attributes:
        left: remaining bytes
    """

    left: int = 1 << 30

    def take(self, size: int) -> bool:
        """Return whether that many bytes remain, and reserve them."""
        if size > self.left:
            return False
        self.left -= size
        return True


@dataclass(frozen=True, slots=True)
class _Operands:
    """Operands of a matmul, and the value index of each."""

    values: torch.Tensor
    weight: torch.Tensor  # (outputs, inputs)
    bias: torch.Tensor | None
    values_at: int
    weight_at: int
    bias_at: int = -1


class _Packed:
    """Weights that are packed at the first call."""

    def __init__(self, weight: torch.Tensor, rows: int) -> None:
        self._weight = weight
        self._rows = rows
        self._packed_weight: torch.Tensor | None = None

    def __call__(self) -> torch.Tensor:
        if self._packed_weight is None:
            with torch.no_grad():
                plain = self._weight.contiguous()
                self._packed_weight = cast(
                    "torch.Tensor", _mkldnn._reorder_linear_weight(plain, self._rows)
                )
            release_constant(self._weight)  # the original is not read again
        return self._packed_weight


def has_packed_matmul() -> bool:
    """Return whether torch was built with packed matmul kernels."""
    return torch.backends.mkldnn.is_available() and all(
        hasattr(_mkldnn, name) for name in ("_linear_pointwise", "_reorder_linear_weight")
    )


class PackedMatmuls:
    """Finds matmuls that packed weights speed up, threefold on some processors.

    Args:
        flow: reads and writes of each tensor
        table: the values
        budget: memory for packed weights, shared with other operators
    """

    def __init__(self, flow: Dataflow, table: ValueTable, budget: PackedBudget) -> None:
        self._flow = flow
        self._table = table
        self._budget = budget
        self._packed: dict[tuple[Any, ...], _Packed] = {}
        self._has_kernels = has_packed_matmul()

    def at(self, bound: BoundKernel, known: Collection[int]) -> Callable[[], torch.Tensor] | None:
        """Return a call that computes a matmul, None if the plain kernel is faster.

        Args:
            bound: the kernel of the instruction
            known: value indices of tensors that are constant in every run
        """
        arguments = bound.arguments
        if not self._has_kernels or arguments is None or not arguments.fixed:
            return None
        layer = _layer(bound, *arguments.current())
        if layer is None or not self._is_supported(bound, layer, known):
            return None
        rows = layer.values.numel() // layer.weight.shape[1]
        packed = self._pack(layer.weight, rows)
        if packed is None:
            return None
        values, bias, call = layer.values, layer.bias, _mkldnn._linear_pointwise.default
        return lambda: call(values, packed(), bias, "none", [], None)

    def _is_supported(self, bound: BoundKernel, layer: _Operands, known: Collection[int]) -> bool:
        tensors = (layer.values, layer.weight, layer.bias)
        if any(t is not None and t.dtype is not torch.float32 for t in tensors):
            return False
        outputs, inputs = layer.weight.shape
        if layer.weight.numel() < _FEWEST or layer.values.numel() == 0 or inputs == 0:
            return False
        if layer.bias is not None and (
            layer.bias.shape != (outputs,) or not self._is_constant(layer.bias_at, known)
        ):
            return False
        out = bound.args[len(bound.kernel.inputs)]
        return self._is_constant(layer.weight_at, known) and all(
            map(self._flow.static, (layer.values_at, out))
        )

    def _is_constant(self, index: int, known: Collection[int]) -> bool:
        tensor = self._flow.tensors.get(index)
        return tensor is not None and (tensor.slot.constant or index in known)

    def _pack(self, weight: torch.Tensor, rows: int) -> Callable[[], torch.Tensor] | None:
        """Return the packed weights, shared by instructions; packed at the first untraced call.

        A method that is only traced never packs them.
        """
        key = (weight.data_ptr(), weight.shape, weight.stride(), rows)
        if key not in self._packed:
            if not self._budget.take(weight.nbytes):
                return None
            self._packed[key] = _Packed(weight.detach(), rows)
        return self._packed[key]


def _layer(bound: BoundKernel, given: list[Any], named: dict[str, Any]) -> _Operands | None:
    args, name = bound.args, bound.kernel.name
    if name == _LINEAR and len(given) == 3:
        return _Operands(given[0], given[1], given[2], args[0], args[1], args[2])
    if name == _MM:
        return _Operands(given[0], given[1].t(), None, args[0], args[1])
    plain = all(named.get(key, 1) == 1 for key in ("alpha", "beta"))
    if name == _ADDMM and plain and all(scalar == 1 for scalar in given[3:]):
        return _Operands(given[1], given[2].t(), given[0], args[1], args[2], args[0])
    return None
