"""Names outside `executorch` that its documents import and that torch 2.13 no longer has.

Quantization by export has moved from torch to torchao; a renamed object is written
`old=new`. `etscope port` rewrites them as it does the names of the package.
"""

from __future__ import annotations

from functools import lru_cache

from inspector.compat.names import NamePlace

_PT2E = "torchao.quantization.pt2e"
_QUANTIZER_NAMES = (
    "ComposableQuantizer DerivedQuantizationSpec EdgeOrNode FixedQParamsQuantizationSpec "
    "QuantizationAnnotation QuantizationSpec QuantizationSpecBase Quantizer SharedQuantizationSpec"
)

_ROWS: tuple[tuple[str, str, str], ...] = (
    ("torch.export", "torch.export", "export_for_inference=export export_for_training=export"),
    (
        "torch.ao.quantization",
        _PT2E,
        "allow_exported_model_train_eval move_exported_model_to_eval move_exported_model_to_train",
    ),
    (
        "torch.ao.quantization.quantize_pt2e",
        f"{_PT2E}.quantize_pt2e",
        "convert_pt2e prepare_pt2e prepare_qat_pt2e",
    ),
    ("torch.ao.quantization.quantizer", f"{_PT2E}.quantizer", _QUANTIZER_NAMES),
    ("torch.ao.quantization.quantizer.quantizer", f"{_PT2E}.quantizer", _QUANTIZER_NAMES),
    (
        "torch.ao.quantization.quantizer.composable_quantizer",
        f"{_PT2E}.quantizer",
        "ComposableQuantizer",
    ),
    (
        "torch.ao.quantization.quantizer.xnnpack_quantizer",
        "compiler.backends.xnnpack.quantizer",
        "XNNPACKQuantizer get_symmetric_quantization_config",
    ),
    (
        "torch.ao.quantization.quantizer.xnnpack_quantizer_utils",
        f"{_PT2E}.quantizer",
        "OperatorConfig OperatorPatternType QuantizationConfig get_bias_qspec get_input_act_qspec "
        "get_output_act_qspec get_weight_qspec",
    ),
    (
        "torch.ao.quantization.quantizer.utils",
        f"{_PT2E}.quantizer.utils",
        "annotate_input_qspec_map annotate_output_qspec",
    ),
    ("torch.ao.quantization.pt2e.graph_utils", _PT2E, "find_sequential_partitions"),
)

# Modules that torch no longer has, and where their contents are.
GONE_MODULES: dict[str, str] = {
    "torch.ao.quantization.quantize_pt2e": f"{_PT2E}.quantize_pt2e",
    "torch.ao.quantization.quantizer": f"{_PT2E}.quantizer",
    "torch.ao.quantization.pt2e": _PT2E,
}

# Names without a replacement to import, and the code to write instead.
GONE_NAMES: dict[str, str] = {
    "torch._export.capture_pre_autograd_graph": "write torch.export.export(...).module()",
}

# Packages imported only for what they register, which is not needed here.
NOT_NEEDED: dict[str, str] = {
    "executorch.kernels": "all kernels of this runtime are there without it",
}

# Loggers whose lines have a place here.
LOGGERS: dict[str, str] = {
    "executorch.backends.xnnpack.partition": "compiler.backends.xnnpack.partition",
}


@lru_cache(maxsize=1)
def moved_places() -> dict[tuple[str, str], NamePlace]:
    """Return the successor of each removed (module of torch, name)."""
    found: dict[tuple[str, str], NamePlace] = {}
    for old, new, names in _ROWS:
        for name in names.split():
            documented, _, own = name.partition("=")
            found[old, documented] = NamePlace(new, own or documented)
    return found
