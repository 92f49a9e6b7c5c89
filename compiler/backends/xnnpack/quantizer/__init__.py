"""The quantizer of XNNPACK for torchao's PT2E flow; importing it needs torchao."""

from compiler.backends.xnnpack.quantizer.configs import (
    get_symmetric_quantization_config,
    get_weight_only_quantization_config,
)
from compiler.backends.xnnpack.quantizer.modes import quantizer_and_configs
from compiler.backends.xnnpack.quantizer.quantizer import XNNPACKQuantizer

__all__ = [
    "XNNPACKQuantizer",
    "get_symmetric_quantization_config",
    "get_weight_only_quantization_config",
    "quantizer_and_configs",
]
