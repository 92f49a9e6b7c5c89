"""The names of torchao that the quantizer uses; its modules have no type annotations."""

from __future__ import annotations

from typing import Any

from compiler.quantize.quiet_imports import import_quietly

try:
    _pt2e: Any = import_quietly("torchao.quantization.pt2e")
    _home: Any = import_quietly("torchao.quantization.pt2e.quantizer")
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "quantization needs torchao, which is not installed: pip install torchao", name="torchao"
    ) from error

FakeQuantize: Any = _pt2e.FakeQuantize
FusedMovingAvgObsFakeQuantize: Any = _pt2e.FusedMovingAvgObsFakeQuantize
HistogramObserver: Any = _pt2e.HistogramObserver
MinMaxObserver: Any = _pt2e.MinMaxObserver
MovingAverageMinMaxObserver: Any = _pt2e.MovingAverageMinMaxObserver
MovingAveragePerChannelMinMaxObserver: Any = _pt2e.MovingAveragePerChannelMinMaxObserver
PerChannelMinMaxObserver: Any = _pt2e.PerChannelMinMaxObserver
PlaceholderObserver: Any = _pt2e.PlaceholderObserver
QuantizationAnnotation: Any = _home.QuantizationAnnotation
QuantizationConfig: Any = _home.QuantizationConfig
QuantizationSpec: Any = _home.QuantizationSpec
Quantizer: Any = _home.Quantizer
SharedQuantizationSpec: Any = _home.SharedQuantizationSpec
get_module_name_filter: Any = _home.get_module_name_filter
OperatorConfig: Any = _home.OperatorConfig
ANNOTATION = "quantization_annotation"  # where a node's metadata holds its annotation
