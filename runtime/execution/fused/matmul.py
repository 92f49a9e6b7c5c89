"""Products with constant weights, which are laid out once as torch's packed kernels want them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, cast

import torch

from runtime.execution.binding import Parts
from runtime.execution.fused.dataflow import Flow
from runtime.memory.release import give_back_constant
from runtime.program.values import ValueTable

_mkldnn: Any = torch.ops.mkldnn
_FEWEST = (
    1 << 12
)  # elements of weights; a call of a packed kernel costs 10 us more than a plain one
_ADDMM, _MM, _LINEAR = "aten::addmm.out", "aten::mm.out", "aten::linear.out"


@dataclass(slots=True)
class PackedBudget:
    """How much memory packed weights may still take.

    Attributes:
        left: bytes
    """

    left: int = 1 << 30

    def take(self, size: int) -> bool:
        """Return whether there is room, and take it."""
        if size > self.left:
            return False
        self.left -= size
        return True


@dataclass(frozen=True, slots=True)
class _Layer:
    """Operands of a product, and where each is among the arguments."""

    values: torch.Tensor
    weight: torch.Tensor  # (outputs, inputs)
    bias: torch.Tensor | None
    values_at: int
    weight_at: int
    bias_at: int = -1


class _Packed:
    """Weights that are laid out at the first call."""

    def __init__(self, weight: torch.Tensor, rows: int) -> None:
        self._weight = weight
        self._rows = rows
        self._made: torch.Tensor | None = None

    def __call__(self) -> torch.Tensor:
        if self._made is None:
            with torch.no_grad():
                plain = self._weight.contiguous()
                self._made = cast("torch.Tensor", _mkldnn._reorder_linear_weight(plain, self._rows))
            give_back_constant(self._weight)  # what the file holds is not read again
        return self._made


def has_packed_products() -> bool:
    """Return whether torch was built with packed kernels of products."""
    return torch.backends.mkldnn.is_available() and all(
        hasattr(_mkldnn, name) for name in ("_linear_pointwise", "_reorder_linear_weight")
    )


class Products:
    """Finds products that packed weights speed up: to a third of the time on some processors.

    Args:
        flow: who reads and writes what
        table: the values
        budget: of memory, shared with other packed weights
    """

    def __init__(self, flow: Flow, table: ValueTable, budget: PackedBudget) -> None:
        self._flow = flow
        self._table = table
        self._budget = budget
        self._packed: dict[tuple[Any, ...], _Packed] = {}
        self._has_kernels = has_packed_products()

    def at(self, parts: Parts, known: Collection[int]) -> Callable[[], torch.Tensor] | None:
        """Return a call that computes a product, None where the plain kernel is to do it.

        Args:
            parts: of the instruction
            known: numbers of the tensors that are the same in every run
        """
        make = parts.make
        if not self._has_kernels or make is None or not make.fixed:
            return None
        layer = _layer(parts, *make.current())
        if layer is None or not self._fits(parts, layer, known):
            return None
        rows = layer.values.numel() // layer.weight.shape[1]
        packed = self._pack(layer.weight, rows)
        if packed is None:
            return None
        values, bias, call = layer.values, layer.bias, _mkldnn._linear_pointwise.default
        return lambda: call(values, packed(), bias, "none", [], None)

    def _fits(self, parts: Parts, layer: _Layer, known: Collection[int]) -> bool:
        tensors = (layer.values, layer.weight, layer.bias)
        if any(t is not None and t.dtype is not torch.float32 for t in tensors):
            return False
        outputs, inputs = layer.weight.shape
        if layer.weight.numel() < _FEWEST or layer.values.numel() == 0 or inputs == 0:
            return False
        if layer.bias is not None and (
            layer.bias.shape != (outputs,) or not self._same(layer.bias_at, known)
        ):
            return False
        out = parts.args[len(parts.kernel.inputs)]
        return self._same(layer.weight_at, known) and all(
            map(self._flow.static, (layer.values_at, out))
        )

    def _same(self, index: int, known: Collection[int]) -> bool:
        tensor = self._flow.tensors.get(index)
        return tensor is not None and (tensor.slot.constant or index in known)

    def _pack(self, weight: torch.Tensor, rows: int) -> Callable[[], torch.Tensor] | None:
        """Return what lays weights out when they are first wanted; those of two instructions once.

        Methods that are only ever traced never want them.
        """
        key = (weight.data_ptr(), weight.shape, weight.stride(), rows)
        if key not in self._packed:
            if not self._budget.take(weight.nbytes):
                return None
            self._packed[key] = _Packed(weight.detach(), rows)
        return self._packed[key]


def _layer(parts: Parts, given: list[Any], named: dict[str, Any]) -> _Layer | None:
    args, name = parts.args, parts.kernel.name
    if name == _LINEAR and len(given) == 3:
        return _Layer(given[0], given[1], given[2], args[0], args[1], args[2])
    if name == _MM:
        return _Layer(given[0], given[1].t(), None, args[0], args[1])
    plain = all(named.get(key, 1) == 1 for key in ("alpha", "beta"))
    if name == _ADDMM and plain and all(number == 1 for number in given[3:]):
        return _Layer(given[1], given[2].t(), given[0], args[1], args[2], args[0])
    return None
