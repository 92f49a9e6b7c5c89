"""Neighbours that run as one call: convolution, batch norm, residual sum and activation.

Batch norms are folded into the weights, pictures go through channels last, and weights are laid out
once as the kernels want them. Only what hands on NaN as the single kernels do is fused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch

from runtime.execution.binding import Parts
from runtime.execution.fused.dataflow import Flow, Tensor
from runtime.execution.fused.matmul import PackedBudget, has_packed_products
from runtime.memory.release import give_back_constant
from runtime.program.values import ValueTable

_torch: Any = torch
_mkldnn: Any = torch.ops.mkldnn
_CONVOLUTION = "aten::convolution.out"
_NORM = "aten::_native_batch_norm_legit_no_training.out"
_LAST = torch.channels_last
Function = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Fused:
    """Instructions that run as one call.

    Attributes:
        end: the instruction behind them
        out: number of the tensor that the last one writes
        run: returns its contents
    """

    end: int
    out: int
    run: Callable[[], torch.Tensor]


@dataclass(slots=True)
class _Layer:
    """A convolution and what follows it so far."""

    values: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor | None
    geometry: tuple[list[int], list[int], list[int], int]
    other: torch.Tensor | None = None
    attribute: str = "none"
    after: Function | None = None


class Fuser:
    """Finds neighbours that one call can run.

    Args:
        flow: who reads and writes what
        table: the values
        budget: of memory, shared with other packed weights
    """

    def __init__(self, flow: Flow, table: ValueTable, budget: PackedBudget) -> None:
        self._flow = flow
        self._table = table
        self._budget = budget
        self._has_kernels = _torch.backends.mkldnn.is_available() and all(
            hasattr(_mkldnn, name)
            for name in ("_convolution_pointwise", "_reorder_convolution_weight")
        )
        self._has_products = has_packed_products()

    def at(self, place: int) -> Fused | None:
        """Return what begins with an instruction, None where nothing does."""
        parts = self._parts(place)
        if parts is None or parts.kernel.name != _CONVOLUTION or not self._has_kernels:
            return None
        layer = self._layer(parts)
        if layer is None:
            return None
        out, end = parts.args[9], place + 1
        for follow in (self._norm, self._sum, self._hard_swish, self._bounds):
            found = follow(layer, out, end)
            if found is not None:
                end, out = found
        return Fused(end, out, self._bound(layer))

    def _parts(self, place: int) -> Parts | None:
        steps = self._flow.steps
        return steps[place].parts if place < len(steps) else None

    def _named(self, place: int, name: str) -> Parts | None:
        parts = self._parts(place)
        if parts is None or parts.make is None or parts.kernel.name != name:
            return None
        return parts if parts.make.fixed else None

    def _layer(self, parts: Parts) -> _Layer | None:
        if parts.make is None or not parts.make.fixed:
            return None
        values, weight, bias, stride, padding, dilation, transposed, _, groups = (
            parts.make.current()[0]
        )
        plain = (
            values.dim() == 4 and values.dtype is torch.float32 and weight.dtype is torch.float32
        )
        known = self._constant(parts.args[1]) and (bias is None or self._constant(parts.args[2]))
        if transposed or not plain or not known or not self._flow.static(parts.args[0]):
            return None
        if (
            not self._flow.static(parts.args[9])
            or len(padding) != 2
            or (bias is not None and (bias.dtype is not torch.float32))
        ):
            return None
        geometry = (list(padding), _pair(stride), _pair(dilation), groups)
        return _Layer(values, weight, bias, geometry)

    def _constant(self, index: int) -> bool:
        tensor = self._flow.tensors.get(index)
        return tensor is not None and tensor.slot.constant

    def _only(self, index: int, *places: int) -> bool:
        """Return whether a value is read by these instructions and by nobody else."""
        tensor = self._flow.tensors.get(index)
        if tensor is None or tensor.fixed or tensor.state or tensor.names:
            return False
        return [*dict.fromkeys(tensor.reads)] == list(places) and self._flow.static(index)

    def _norm(self, layer: _Layer, out: int, at: int) -> tuple[int, int] | None:
        parts = self._named(at, _NORM)
        if parts is None or parts.args[0] != out or not self._only(out, at):
            return None
        unused = all(self._unused(self._flow.tensors[i]) for i in parts.args[8:10])
        if not unused or not all(
            self._constant(index) or self._table.items[index] is None for index in parts.args[1:5]
        ):
            return None
        assert parts.make is not None
        _, weight, bias, mean, variance, _, epsilon = parts.make.current()[0]
        if any(v is not None and v.dtype is not torch.float32 for v in (weight, bias, mean)):
            return None
        scale = torch.rsqrt(variance + epsilon) * (1.0 if weight is None else weight)
        shift = (0.0 if bias is None else bias) - mean * scale
        layer.weight = layer.weight * scale.reshape(-1, 1, 1, 1)
        layer.bias = shift if layer.bias is None else layer.bias * scale + shift
        return at + 1, parts.args[7]

    def _unused(self, tensor: Tensor) -> bool:
        return not (tensor.reads or tensor.fixed or tensor.names)

    def _sum(self, layer: _Layer, out: int, at: int) -> tuple[int, int] | None:
        parts = self._named(at, "aten::add.out")
        if parts is None or not self._only(out, at) or self._table.items[parts.args[2]] != 1:
            return None
        left, right, target = parts.args[0], parts.args[1], parts.args[3]
        other = right if left == out else left
        if left == right or out not in (left, right) or not self._flow.static(other):
            return None
        mine, theirs = self._table.items[out], self._table.items[other]
        sizes = [self._flow.tensors[index].slot.sizes for index in (out, other, target)]
        if theirs.dtype is not mine.dtype or len(set(sizes)) != 1:
            return None
        if self._flow.tensors[target].slot.tensor.dtype is not mine.dtype:
            return None
        layer.other = theirs
        return at + 1, target

    def _bounds(self, layer: _Layer, out: int, at: int) -> tuple[int, int] | None:
        if layer.after is not None or layer.attribute != "none":
            return None
        relu = self._named(at, "aten::relu.out")
        if relu is not None and relu.args[0] == out and self._only(out, at):
            layer.after = _torch.relu_
            return at + 1, relu.args[1]
        found = self._clamped(out, at)
        if found is None or not self._only(out, at):
            return None
        low, high, end, target = found
        layer.after = lambda tensor: tensor.clamp_(low, high)
        return end, target

    def _clamped(self, out: int, at: int) -> tuple[float | None, float | None, int, int] | None:
        """Return bounds, next instruction and result of a clamp, or of two with a bound each."""
        parts = self._named(at, "aten::clamp.out") or self._named(at, "aten::hardtanh.out")
        if parts is None or parts.args[0] != out:
            return None
        low, high, target = *(self._table.items[i] for i in parts.args[1:3]), parts.args[3]
        second = self._named(at + 1, "aten::clamp.out")
        if second is not None and high is None and second.args[0] == target:
            first, last = (self._table.items[i] for i in second.args[1:3])
            if first is None and self._only(target, at + 1):
                return low, last, at + 2, second.args[3]
        return low, high, at + 1, target

    def _hard_swish(self, layer: _Layer, out: int, at: int) -> tuple[int, int] | None:
        """X * clamp(x + 3, 0, 6) / 6, one instruction for each sign."""
        shifted = self._with_number(at, "add", out, 3.0)
        clamped = None if shifted is None else self._clamped(shifted, at + 1)
        if layer.other is not None or shifted is None or clamped is None:
            return None
        low, high, end, bounded = clamped
        product = self._named(end, "aten::mul.out")
        if product is None or {*product.args[:2]} != {out, bounded} or (low, high) != (0, 6):
            return None
        divided = self._with_number(end + 1, "div", product.args[2], 6.0)
        alone = (
            self._only(out, at, end)
            and self._only(shifted, at + 1)
            and self._only(bounded, end)
            and self._only(product.args[2], end + 1)
        )
        if divided is None or not alone:
            return None
        layer.attribute = "hardswish"
        return end + 2, divided

    def _with_number(self, at: int, name: str, left: int, wanted: float) -> int | None:
        """Return the result of an instruction on a value and a number, None for any other."""
        for full in (f"aten::{name}.out", f"aten::{name}.Scalar_out"):
            parts = self._named(at, full)
            if parts is None or parts.args[0] != left:
                continue
            number = self._table.items[parts.args[1]]
            if isinstance(number, torch.Tensor):
                if not self._constant(parts.args[1]) or number.numel() != 1 or number.dim():
                    return None
                number = number.item()
            alpha = self._table.items[parts.args[2]] if name == "add" else 1
            target = parts.args[3 if name == "add" else 2]
            fits = self._flow.tensors[target].slot.tensor.dtype is torch.float32
            return target if number == wanted and alpha == 1 and fits else None
        return None

    def _bound(self, layer: _Layer) -> Callable[[], torch.Tensor]:
        if _is_product(layer):
            return _product(layer)
        if _is_pixelwise(layer) and self._has_products and self._budget.take(layer.weight.nbytes):
            return _pixelwise(layer)
        weight = layer.weight.contiguous(memory_format=_LAST)
        padding, stride, dilation, groups = layer.geometry
        if self._budget.take(weight.nbytes):
            shape = list(layer.values.shape)
            weight = cast(
                "torch.Tensor",
                _mkldnn._reorder_convolution_weight(
                    weight, padding, stride, dilation, groups, shape
                ),
            )
            give_back_constant(layer.weight)
        bias = None if layer.bias is None else layer.bias.contiguous()
        values, other, after = layer.values, layer.other, layer.after
        where = (padding, stride, dilation, groups)
        one: Any = _mkldnn._convolution_pointwise.default
        two: Any = _mkldnn._convolution_pointwise.binary if other is not None else None

        def run() -> torch.Tensor:
            shown = values.contiguous(memory_format=_LAST)
            if other is None:
                made = one(shown, weight, bias, *where, layer.attribute, [], "")
            else:
                added = other.contiguous(memory_format=_LAST)
                made = two(shown, added, weight, bias, *where, "add", 1.0, None, [], None)
            return made if after is None else after(made)

        return run


def _is_product(layer: _Layer) -> bool:
    """Return whether a convolution is one product of a row of each picture, as in a gate."""
    padding, _, _, groups = layer.geometry
    single = all(size == 1 for size in (*layer.values.shape[2:], *layer.weight.shape[2:]))
    return single and groups == 1 and not any(padding) and layer.other is None


def _product(layer: _Layer) -> Callable[[], torch.Tensor]:
    """Return the call of a product: 2 to 6 us, where a convolution takes 25."""
    values, bias, after = layer.values, layer.bias, layer.after
    rows, inputs = values.shape[:2]
    outputs = layer.weight.shape[0]
    weight = layer.weight.reshape(outputs, inputs).t()
    if layer.attribute == "hardswish":
        after = _torch._C._nn.hardswish_

    def run() -> torch.Tensor:
        shown = values.reshape(rows, inputs)
        made = torch.mm(shown, weight) if bias is None else torch.addmm(bias, shown, weight)
        made = made.view(rows, outputs, 1, 1)
        return made if after is None else after(made)

    return run


def _is_pixelwise(layer: _Layer) -> bool:
    """Return whether a convolution looks at each pixel alone."""
    padding, stride, _, groups = layer.geometry
    plain = stride == [1, 1] and groups == 1 and not any(padding) and layer.other is None
    return plain and all(size == 1 for size in layer.weight.shape[2:])


def _pixelwise(layer: _Layer) -> Callable[[], torch.Tensor]:
    """Return the call of a product with packed weights: 5 to 8 us less than a convolution."""
    values, after, attribute = layer.values, layer.after, layer.attribute
    plain = layer.weight.reshape(layer.weight.shape[:2]).contiguous()
    pixels = values.numel() // values.shape[1]
    weight = cast("torch.Tensor", _mkldnn._reorder_linear_weight(plain, pixels))
    give_back_constant(layer.weight)
    bias = None if layer.bias is None else layer.bias.contiguous()
    call: Any = _mkldnn._linear_pointwise.default

    def run() -> torch.Tensor:
        shown = values.contiguous(memory_format=_LAST).permute(0, 2, 3, 1)
        made = call(shown, weight, bias, attribute, [], None).permute(0, 3, 1, 2)
        return made if after is None else after(made)

    return run


def _pair(numbers: list[int]) -> list[int]:
    return [*numbers] * 2 if len(numbers) == 1 else [*numbers]
