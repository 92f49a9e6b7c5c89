"""Quantization configurations: dtypes, ranges and observers."""

from __future__ import annotations

import functools
from typing import Any

import torch

from compiler.backends.xnnpack.quantizer.torchao import (
    FakeQuantize,
    FusedMovingAvgObsFakeQuantize,
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
    QuantizationConfig,
    QuantizationSpec,
)

_EPS = 2**-12  # the smallest scale


@functools.cache
def get_symmetric_quantization_config(  # noqa: PLR0913 - as documented
    is_per_channel: bool = False,
    is_qat: bool = False,
    is_dynamic: bool = False,
    act_qmin: int = -128,
    act_qmax: int = 127,
    weight_qmin: int = -127,
    weight_qmax: int = 127,
) -> Any:  # noqa: ANN401 - a QuantizationConfig of torchao
    """Return a configuration of int8 activations and symmetric int8 weights.

    Args:
        is_per_channel: weights have a scale for each output channel
        is_qat: for training with quantization
        is_dynamic: activations are quantized while the program runs
        act_qmin: smallest quantized value of an activation
        act_qmax: largest one
        weight_qmin: smallest quantized value of a weight; -8 for 4 bits
        weight_qmax: largest one; 7 for 4 bits
    """
    activation = QuantizationSpec(
        dtype=torch.int8,
        quant_min=act_qmin,
        quant_max=act_qmax,
        qscheme=torch.per_tensor_affine,
        is_dynamic=is_dynamic,
        observer_or_fake_quant_ctr=_watching_activations(is_qat, is_dynamic),
    )
    weight = _weight(is_per_channel, is_qat, weight_qmin, weight_qmax)
    return QuantizationConfig(activation, None if is_dynamic else activation, weight, None, is_qat)


@functools.cache
def get_weight_only_quantization_config(
    is_per_channel: bool = True, weight_qmin: int = -127, weight_qmax: int = 127
) -> Any:  # noqa: ANN401
    """Return a configuration of symmetric int8 weights and floating-point activations.

    Args:
        is_per_channel: weights have a scale for each output channel
        weight_qmin: smallest quantized value of a weight; -8 for 4 bits
        weight_qmax: largest one; 7 for 4 bits
    """
    weight = _weight(is_per_channel, False, weight_qmin, weight_qmax)
    return QuantizationConfig(None, None, weight, None, False)


def _watching_activations(is_qat: bool, is_dynamic: bool) -> Any:  # noqa: ANN401
    if not is_qat:
        observer = PlaceholderObserver if is_dynamic else HistogramObserver
        return observer.with_args(eps=_EPS)
    if not is_dynamic:
        return FusedMovingAvgObsFakeQuantize.with_args(eps=_EPS)
    latest = MovingAverageMinMaxObserver.with_args(averaging_constant=1)
    return FakeQuantize.with_args(eps=_EPS, observer=latest)


def _weight(is_per_channel: bool, is_qat: bool, low: int, high: int) -> Any:  # noqa: ANN401
    observer = PerChannelMinMaxObserver if is_per_channel else MinMaxObserver
    watching = observer.with_args(eps=_EPS)
    if is_qat:
        channels = MovingAveragePerChannelMinMaxObserver
        moving = channels if is_per_channel else MovingAverageMinMaxObserver
        watching = FusedMovingAvgObsFakeQuantize.with_args(eps=_EPS, observer=moving)
    scheme = torch.per_channel_symmetric if is_per_channel else torch.per_tensor_symmetric
    return QuantizationSpec(
        dtype=torch.int8,
        quant_min=low,
        quant_max=high,
        qscheme=scheme,
        ch_axis=0,
        is_dynamic=False,
        observer_or_fake_quant_ctr=watching,
    )
