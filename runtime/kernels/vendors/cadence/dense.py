"""Elementwise operators, matmuls and normalizations of programs for Cadence.

The vendor's references accumulate products of integers in float32; so do these.

Source: backends/cadence/aot/ref_implementations.py of release 1.5.1
"""

# ruff: noqa: PLR0913 - the arguments are those of the operators

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from runtime.errors import invalid_argument
from runtime.kernels.vendors.bounds import check_dtype
from runtime.kernels.vendors.quantizing import quantize_to, real

_BYTES = (torch.int8, torch.uint8)
_MOST_GATES = 4  # the operators take hidden sizes that are a multiple of it


def scalar(value: Any) -> Any:  # noqa: ANN401 - a number, or a tensor of one
    """Return a parameter as a Python number."""
    return value.flatten()[0].item() if isinstance(value, Tensor) else value


def scale_of(multiplier: int, shift: int) -> float:
    """Return the scale of results, given as a negative fixed point number and a shift."""
    if not multiplier:
        raise invalid_argument("the multiplier is zero")
    return 1.0 / (-multiplier * (1 / (1 << 31)) * (2**shift))


def of_dtypes(run: Callable[..., Tensor], *dtypes: torch.dtype) -> Callable[..., Tensor]:
    """Return an operator that checks the dtypes of its first tensors."""

    def called(*given: Any) -> Tensor:  # noqa: ANN401
        tensors = [one for one in given if isinstance(one, Tensor)]
        for place, (tensor, dtype) in enumerate(zip(tensors, dtypes, strict=False)):
            check_dtype(f"tensor {place}", tensor, dtype)
        return run(*given)

    return called


def with_numbers(run: Callable[..., Tensor], *places: int) -> Callable[..., Tensor]:
    """Return an operator whose parameters at these places may be tensors of one number."""

    def called(*given: Any) -> Tensor:  # noqa: ANN401
        return run(*[scalar(one) if at in places else one for at, one in enumerate(given)])

    return called


def binary(operation: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """Return an operator on two quantized tensors."""

    def called(
        x: Tensor,
        x_scale: float,
        x_zero: int,
        y: Tensor,
        y_scale: float,
        y_zero: int,
        scale: float,
        zero: int,
    ) -> Tensor:
        check_dtype("X", x, *_BYTES)
        check_dtype("Y", y, x.dtype)
        made = operation(real(x, x_scale, x_zero), real(y, y_scale, y_zero))
        return quantize_to(made, scale, zero, x.dtype)

    return called


def linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    x_zero: int,
    weight_zero: Tensor | int,
    multiplier: int,
    shift: int,
    zero: int,
    offset: Tensor | None = None,
) -> Tensor:
    """Return a quantized linear layer."""
    del offset
    check_dtype("src", x, torch.int8, torch.uint8, torch.int16, torch.int32)
    check_dtype("bias", bias, torch.int32)
    rows = x.reshape(-1, weight.shape[1])
    made = F.linear(rows.float() - x_zero, weight.float() - weight_zero, bias.float())
    scaled = quantize_to(made, scale_of(multiplier, shift), zero, x.dtype)
    return scaled.reshape(*x.shape[:-1], weight.shape[0])


def fully_connected(x: Tensor, *rest: Any) -> Tensor:  # noqa: ANN401
    """Return a quantized linear layer of one row."""
    if not x.dim() or x.shape[0] != 1:
        raise invalid_argument(f"a batch of {x.shape[0] if x.dim() else 0} instead of 1")
    return linear(x, *rest)


def plain_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return a linear layer."""
    return F.linear(x, weight, bias)


def matmul(
    x: Tensor,
    x_zero: int,
    y: Tensor,
    y_zero: int,
    bias: Tensor | None,
    multiplier: int,
    shift: int,
    zero: int,
    transposed: bool = False,
) -> Tensor:
    """Return a quantized matmul."""
    if bias is not None and bool((bias != 0).any()):
        raise invalid_argument("a bias other than zero")
    own = y.transpose(-1, -2) if transposed else y
    made = torch.matmul(x.float() - x_zero, own.float() - y_zero)
    return quantize_to(made, scale_of(multiplier, shift), zero, x.dtype)


def layer_norm(
    x: Tensor,
    x_scale: float,
    x_zero: int,
    normalized: Sequence[int],
    weight: Tensor,
    bias: Tensor,
    eps: float,
    scale: float,
    zero: int,
) -> Tensor:
    """Return a quantized layer norm."""
    check_dtype("X", x, *_BYTES)
    made = F.layer_norm(real(x, x_scale, x_zero), list(normalized), weight, bias, eps)
    return quantize_to(made, scale, zero, x.dtype)


def relu(x: Tensor, x_zero: int, zero: int, multiplier: int, shift: int) -> Tensor:
    """Return a quantized ReLU with another scale."""
    check_dtype("X", x, torch.int8, torch.int16, torch.uint8, torch.uint16)
    above = (x.float() - x_zero).clamp(min=0)
    return quantize_to(above, scale_of(multiplier, shift), zero, x.dtype)


def requantize(
    x: Tensor, x_scale: float, x_zero: int, scale: float, zero: int, dtype: torch.dtype
) -> Tensor:
    """Return integers of another scale and dtype."""
    return quantize_to(real(x, x_scale, x_zero), scale, zero, dtype)


def softmax(
    x: Tensor,
    mask: Tensor | None,
    dim: int,
    mask_type: int,
    pos: Tensor,
    x_scale: float,
    x_zero: int,
    scale: float,
    zero: int,
) -> Tensor:
    """Return a quantized softmax without mask."""
    del pos
    check_dtype("input", x, *_BYTES, torch.int16)
    if mask is not None or mask_type:
        raise invalid_argument("a softmax with a mask has no reference")
    return quantize_to(torch.softmax(real(x, x_scale, x_zero), dim), scale, zero, x.dtype)


def real_softmax(x: Tensor, dim: int, half_to_float: bool | None = None) -> Tensor:
    """Return a softmax of float32."""
    check_dtype("input", x, torch.float32)
    if half_to_float:
        raise invalid_argument("half_to_float")
    return torch.softmax(x, dim)


def weight_only_linear(
    x: Tensor, weight: Tensor, w_scale: float, bias: Tensor, b_scale: float
) -> Tensor:
    """Return a linear layer of real values with int8 weights [input, output]."""
    check_dtype("weight", weight, torch.int8)
    if x.dim() > 1 and x.shape[-2] != 1:
        raise invalid_argument(f"{x.shape[-2]} rows instead of 1")
    return F.linear(x.float(), weight.T.contiguous().float() * w_scale, bias.float() * b_scale)


def weight_only_gru(
    inputs: Tensor,
    hidden: Tensor,
    weights_inputs: Tensor,
    i_scale: float,
    weights_hidden: Tensor,
    h_scale: float,
    bias_inputs: Tensor,
    b_scale: float,
    bias_hidden: Tensor,
) -> Tensor:
    """Return one step of a GRU with int8 weights, twice: as output and as state."""
    for name, one in (("inputs", weights_inputs), ("hidden", weights_hidden)):
        check_dtype(f"weights of {name}", one, torch.int8)
    shape, state = hidden.shape, hidden.reshape(-1)
    if any(size != 1 for size in shape[:-1]) or state.numel() % _MOST_GATES:
        raise invalid_argument(f"a hidden state of shape {[*shape]}")
    given = F.linear(inputs, weights_inputs.float() * i_scale, bias_inputs.float() * b_scale)
    own = F.linear(state, weights_hidden.float() * h_scale, bias_hidden.float() * b_scale)
    (i_r, i_z, i_n), (h_r, h_z, h_n) = given.chunk(3, -1), own.chunk(3, -1)
    reset, update = torch.sigmoid(i_r + h_r), torch.sigmoid(i_z + h_z)
    made = (1 - update) * torch.tanh(i_n + reset * h_n) + update * state
    if made.shape != shape:
        raise invalid_argument(f"a state of shape {[*made.shape]} for one of {[*shape]}")
    whole = made.unsqueeze(1).expand(inputs.shape[0], inputs.shape[1], state.shape[-1])
    return torch.stack([whole, whole])
