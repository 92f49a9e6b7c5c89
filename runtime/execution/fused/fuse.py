"""Fused instructions: convolution, batch norm, residual add and activation as one call.

Batch norms are folded into the weights, images go through channels last, and weights are packed
once for the kernels. Only patterns that propagate NaN as the single kernels do are fused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch

from runtime.execution.binding import BoundKernel
from runtime.execution.fused.dataflow import Dataflow, TensorUse
from runtime.execution.fused.matmul import PackedBudget, has_packed_matmul
from runtime.memory.release import release_constant
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
        end: index of the instruction after the last one
        out: value index of the tensor that the last one writes
        run: returns its contents
    """

    end: int
    out: int
    run: Callable[[], torch.Tensor]


@dataclass(slots=True)
class _Layer:
    """A convolution and the instructions fused into it so far."""

    values: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor | None
    geometry: tuple[list[int], list[int], list[int], int]
    other: torch.Tensor | None = None
    attribute: str = "none"
    after: Function | None = None


class Fuser:
    """Finds instructions that one call can run.

    Args:
        flow: reads and writes of each tensor
        table: the values
        budget: memory for packed weights, shared with other operators
    """

    def __init__(self, flow: Dataflow, table: ValueTable, budget: PackedBudget) -> None:
        self._flow = flow
        self._table = table
        self._budget = budget
        self._has_kernels = _torch.backends.mkldnn.is_available() and all(
            hasattr(_mkldnn, name)
            for name in ("_convolution_pointwise", "_reorder_convolution_weight")
        )
        self._has_matmul = has_packed_matmul()

    def at(self, place: int) -> Fused | None:
        """Return the fused call that begins at an instruction, None if no pattern matches."""
        bound = self._parts(place)
        if bound is None or bound.kernel.name != _CONVOLUTION or not self._has_kernels:
            return None
        layer = self._layer(bound)
        if layer is None:
            return None
        out, end = bound.args[9], place + 1
        for follow in (self._batch_norm, self._add, self._hard_swish, self._activation):
            found = follow(layer, out, end)
            if found is not None:
                end, out = found
        return Fused(end, out, self._bound(layer))

    def _parts(self, place: int) -> BoundKernel | None:
        instructions = self._flow.instructions
        return instructions[place].bound if place < len(instructions) else None

    def _named(self, place: int, name: str) -> BoundKernel | None:
        bound = self._parts(place)
        if bound is None or bound.arguments is None or bound.kernel.name != name:
            return None
        return bound if bound.arguments.fixed else None

    def _layer(self, bound: BoundKernel) -> _Layer | None:
        if bound.arguments is None or not bound.arguments.fixed:
            return None
        values, weight, bias, stride, padding, dilation, transposed, _, groups = (
            bound.arguments.current()[0]
        )
        plain = (
            values.dim() == 4 and values.dtype is torch.float32 and weight.dtype is torch.float32
        )
        known = self._constant(bound.args[1]) and (bias is None or self._constant(bound.args[2]))
        if transposed or not plain or not known or not self._flow.static(bound.args[0]):
            return None
        if (
            not self._flow.static(bound.args[9])
            or len(padding) != 2
            or (bias is not None and (bias.dtype is not torch.float32))
        ):
            return None
        geometry = (list(padding), _pair(stride), _pair(dilation), groups)
        return _Layer(values, weight, bias, geometry)

    def _constant(self, index: int) -> bool:
        tensor = self._flow.tensors.get(index)
        return tensor is not None and tensor.slot.constant

    def _is_only_read_by(self, index: int, *places: int) -> bool:
        """Return whether a value is read by these instructions and by no other."""
        tensor = self._flow.tensors.get(index)
        if tensor is None or tensor.pinned or tensor.state or tensor.aliases:
            return False
        return [*dict.fromkeys(tensor.reads)] == list(places) and self._flow.static(index)

    def _batch_norm(self, layer: _Layer, out: int, at: int) -> tuple[int, int] | None:
        bound = self._named(at, _NORM)
        if bound is None or bound.args[0] != out or not self._is_only_read_by(out, at):
            return None
        unused = all(self._unused(self._flow.tensors[i]) for i in bound.args[8:10])
        if not unused or not all(
            self._constant(index) or self._table.items[index] is None for index in bound.args[1:5]
        ):
            return None
        assert bound.arguments is not None
        _, weight, bias, mean, variance, _, epsilon = bound.arguments.current()[0]
        if any(v is not None and v.dtype is not torch.float32 for v in (weight, bias, mean)):
            return None
        scale = torch.rsqrt(variance + epsilon) * (1.0 if weight is None else weight)
        shift = (0.0 if bias is None else bias) - mean * scale
        layer.weight = layer.weight * scale.reshape(-1, 1, 1, 1)
        layer.bias = shift if layer.bias is None else layer.bias * scale + shift
        return at + 1, bound.args[7]

    def _unused(self, tensor: TensorUse) -> bool:
        return not (tensor.reads or tensor.pinned or tensor.aliases)

    def _add(self, layer: _Layer, out: int, at: int) -> tuple[int, int] | None:
        bound = self._named(at, "aten::add.out")
        if (
            bound is None
            or not self._is_only_read_by(out, at)
            or self._table.items[bound.args[2]] != 1
        ):
            return None
        left, right, target = bound.args[0], bound.args[1], bound.args[3]
        other = right if left == out else left
        if left == right or out not in (left, right) or not self._flow.static(other):
            return None
        own_tensor, other_tensor = self._table.items[out], self._table.items[other]
        sizes = [self._flow.tensors[index].slot.sizes for index in (out, other, target)]
        if other_tensor.dtype is not own_tensor.dtype or len(set(sizes)) != 1:
            return None
        if self._flow.tensors[target].slot.tensor.dtype is not own_tensor.dtype:
            return None
        layer.other = other_tensor
        return at + 1, target

    def _activation(self, layer: _Layer, out: int, at: int) -> tuple[int, int] | None:
        if layer.after is not None or layer.attribute != "none":
            return None
        relu = self._named(at, "aten::relu.out")
        if relu is not None and relu.args[0] == out and self._is_only_read_by(out, at):
            layer.after = _torch.relu_
            return at + 1, relu.args[1]
        found = self._clamped(out, at)
        if found is None or not self._is_only_read_by(out, at):
            return None
        low, high, end, target = found
        layer.after = lambda tensor: tensor.clamp_(low, high)
        return end, target

    def _clamped(self, out: int, at: int) -> tuple[float | None, float | None, int, int] | None:
        """Return bounds, next instruction and result of a clamp, or of two with one bound each."""
        bound = self._named(at, "aten::clamp.out") or self._named(at, "aten::hardtanh.out")
        if bound is None or bound.args[0] != out:
            return None
        low, high, target = *(self._table.items[i] for i in bound.args[1:3]), bound.args[3]
        second = self._named(at + 1, "aten::clamp.out")
        if second is not None and high is None and second.args[0] == target:
            first, last = (self._table.items[i] for i in second.args[1:3])
            if first is None and self._is_only_read_by(target, at + 1):
                return low, last, at + 2, second.args[3]
        return low, high, at + 1, target

    def _hard_swish(self, layer: _Layer, out: int, at: int) -> tuple[int, int] | None:
        """Fuse x * clamp(x + 3, 0, 6) / 6, four instructions."""
        shifted = self._with_scalar(at, "add", out, 3.0)
        clamped = None if shifted is None else self._clamped(shifted, at + 1)
        if layer.other is not None or shifted is None or clamped is None:
            return None
        low, high, end, bounded = clamped
        product = self._named(end, "aten::mul.out")
        if product is None or {*product.args[:2]} != {out, bounded} or (low, high) != (0, 6):
            return None
        divided = self._with_scalar(end + 1, "div", product.args[2], 6.0)
        alone = (
            self._is_only_read_by(out, at, end)
            and self._is_only_read_by(shifted, at + 1)
            and self._is_only_read_by(bounded, end)
            and self._is_only_read_by(product.args[2], end + 1)
        )
        if divided is None or not alone:
            return None
        layer.attribute = "hardswish"
        return end + 2, divided

    def _with_scalar(self, at: int, name: str, left: int, requested: float) -> int | None:
        """Return the result of an instruction that applies a given scalar to a value, else None."""
        for full in (f"aten::{name}.out", f"aten::{name}.Scalar_out"):
            bound = self._named(at, full)
            if bound is None or bound.args[0] != left:
                continue
            scalar = self._table.items[bound.args[1]]
            if isinstance(scalar, torch.Tensor):
                if not self._constant(bound.args[1]) or scalar.numel() != 1 or scalar.dim():
                    return None
                scalar = scalar.item()
            alpha = self._table.items[bound.args[2]] if name == "add" else 1
            target = bound.args[3 if name == "add" else 2]
            fits = self._flow.tensors[target].slot.tensor.dtype is torch.float32
            return target if scalar == requested and alpha == 1 and fits else None
        return None

    def _bound(self, layer: _Layer) -> Callable[[], torch.Tensor]:
        if _is_matmul(layer):
            return _matmul(layer)
        if _is_pointwise(layer) and self._has_matmul and self._budget.take(layer.weight.nbytes):
            return _pointwise(layer)
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
            release_constant(layer.weight)
        bias = None if layer.bias is None else layer.bias.contiguous()
        values, other, after = layer.values, layer.other, layer.after
        where = (padding, stride, dilation, groups)
        one: Any = _mkldnn._convolution_pointwise.default
        two: Any = _mkldnn._convolution_pointwise.binary if other is not None else None

        def run() -> torch.Tensor:
            image = values.contiguous(memory_format=_LAST)
            if other is None:
                result = one(image, weight, bias, *where, layer.attribute, [], "")
            else:
                added = other.contiguous(memory_format=_LAST)
                result = two(image, added, weight, bias, *where, "add", 1.0, None, [], None)
            return result if after is None else after(result)

        return run


def _is_matmul(layer: _Layer) -> bool:
    """Return whether a convolution is a matmul of one row per image, as in squeeze-and-excite."""
    padding, _, _, groups = layer.geometry
    single = all(size == 1 for size in (*layer.values.shape[2:], *layer.weight.shape[2:]))
    return single and groups == 1 and not any(padding) and layer.other is None


def _matmul(layer: _Layer) -> Callable[[], torch.Tensor]:
    """Return the call of a matmul: 2 to 6 us, where a convolution takes 25."""
    values, bias, after = layer.values, layer.bias, layer.after
    rows, inputs = values.shape[:2]
    outputs = layer.weight.shape[0]
    weight = layer.weight.reshape(outputs, inputs).t()
    if layer.attribute == "hardswish":
        after = _torch._C._nn.hardswish_

    def run() -> torch.Tensor:
        image = values.reshape(rows, inputs)
        result = torch.mm(image, weight) if bias is None else torch.addmm(bias, image, weight)
        result = result.view(rows, outputs, 1, 1)
        return result if after is None else after(result)

    return run


def _is_pointwise(layer: _Layer) -> bool:
    """Return whether a convolution is pointwise (1x1)."""
    padding, stride, _, groups = layer.geometry
    plain = stride == [1, 1] and groups == 1 and not any(padding) and layer.other is None
    return plain and all(size == 1 for size in layer.weight.shape[2:])


def _pointwise(layer: _Layer) -> Callable[[], torch.Tensor]:
    """Return the call of a matmul with packed weights: 5 to 8 us less than a convolution."""
    values, after, attribute = layer.values, layer.after, layer.attribute
    plain = layer.weight.reshape(layer.weight.shape[:2]).contiguous()
    pixels = values.numel() // values.shape[1]
    weight = cast("torch.Tensor", _mkldnn._reorder_linear_weight(plain, pixels))
    release_constant(layer.weight)
    bias = None if layer.bias is None else layer.bias.contiguous()
    call: Any = _mkldnn._linear_pointwise.default

    def run() -> torch.Tensor:
        image = values.contiguous(memory_format=_LAST).permute(0, 2, 3, 1)
        result = call(image, weight, bias, attribute, [], None).permute(0, 3, 1, 2)
        return result if after is None else after(result)

    return run


def _pair(sizes: list[int]) -> list[int]:
    return [*sizes] * 2 if len(sizes) == 1 else [*sizes]
