"""XNNPACK: partitioners by rules, and the payload writer."""

from compiler.backends.xnnpack.backend import XnnpackBackend
from compiler.backends.xnnpack.partitioner import (
    XnnpackDynamicallyQuantizedPartitioner,
    XnnpackFloatingPointPartitioner,
    XnnpackPartitioner,
    XnnpackQuantizedPartitioner,
)
from compiler.backends.xnnpack.precision import ConfigPrecisionType

__all__ = [
    "ConfigPrecisionType",
    "XnnpackBackend",
    "XnnpackDynamicallyQuantizedPartitioner",
    "XnnpackFloatingPointPartitioner",
    "XnnpackPartitioner",
    "XnnpackQuantizedPartitioner",
]
