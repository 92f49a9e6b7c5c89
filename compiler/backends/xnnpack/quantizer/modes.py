"""The quantizer with a configuration for each mode of quantization."""

from __future__ import annotations

from typing import Any

from compiler.backends.xnnpack.quantizer.configs import (
    get_symmetric_quantization_config,
    get_weight_only_quantization_config,
)
from compiler.backends.xnnpack.quantizer.quantizer import XNNPACKQuantizer


def quantizer_and_configs(*, per_tensor: bool) -> tuple[XNNPACKQuantizer, dict[str, Any]]:
    """Return a new quantizer, and its configurations by mode; ``none`` does not quantize operators.

    Args:
        per_tensor: one scale for a weight, instead of one for each of its channels
    """
    per_channel = not per_tensor
    return XNNPACKQuantizer(), {
        "static": get_symmetric_quantization_config(is_per_channel=per_channel),
        "dynamic": get_symmetric_quantization_config(is_per_channel=per_channel, is_dynamic=True),
        "weight-only": get_weight_only_quantization_config(is_per_channel=per_channel),
        "none": None,
    }
