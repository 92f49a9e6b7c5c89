"""The precisions a rule can be about."""

from __future__ import annotations

from enum import Enum


class ConfigPrecisionType(Enum):
    """Floating point, static quantization, or dynamic quantization."""

    FP32 = 1
    STATIC_QUANT = 2
    DYNAMIC_QUANT = 3
